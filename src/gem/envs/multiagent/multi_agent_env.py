"""Multi-agent environments under their published path. New code should use gem.multiagent."""

from gem.multiagent import AgentSelector, MultiAgentEnv

__all__ = ["AgentSelector", "MultiAgentEnv"]
