"""ShellTool: a shell beside any environment. It needs level ns."""

import pytest

import gem
from gem.messages import ToolCall, ToolErrorType
from gem.tools.machine.shell import ShellTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper

pytestmark = pytest.mark.usefixtures("machines")


def test_a_shell_keeps_its_state_during_an_episode_and_loses_it_at_reset():
    with ToolEnvWrapper(gem.make("game:GuessTheNumber-v0"), tools=[ShellTool()]) as env:
        env.reset(seed=0)
        env.step("<bash>cd /tmp; echo 5 > n; export A=1</bash>")
        assert "5\n/tmp 1" in env.step("<bash>cat n; echo $PWD $A</bash>")[0]
        env.reset(seed=0)
        assert "exit status 1" in env.step("<bash>cat /tmp/n</bash>")[0]


def test_a_fork_continues_with_the_files_of_the_episode():
    with ToolEnvWrapper(gem.make("game:GuessTheNumber-v0"), tools=[ShellTool()]) as env:
        env.reset(seed=0)
        env.step("<bash>echo kept > n</bash>")
        with env.spawn(same_state=True) as fork:
            env.step("<bash>rm n</bash>")
            assert "kept" in fork.step("<bash>cat n</bash>")[0]


def test_failures_and_time_outs_are_results():
    patient, hasty = ShellTool(timeout=60), ShellTool(timeout=0.3)
    failed = patient.call(ToolCall("bash", {"command": "false"}))
    late = hasty.call(ToolCall("bash", {"command": "sleep 60"}))
    assert (failed.error, late.error) == (ToolErrorType.ERROR, ToolErrorType.TIMEOUT)
    assert "timed out" in str(late)
    patient.close()
    hasty.close()
