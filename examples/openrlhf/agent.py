"""The --train.agent_func_path of OpenRLHF."""

from gem.integrations.openrlhf import GemExecutor as AgentExecutor

__all__ = ["AgentExecutor"]
