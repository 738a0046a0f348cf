"""PythonCodeTool: published observations, sessions, limits and errors."""

from __future__ import annotations

import asyncio
import copy
import pickle

import pytest

from gem.core import Env, Step
from gem.errors import BadValue, SandboxError
from gem.messages import ToolCall, ToolErrorType
from gem.sandbox import Sandbox
from gem.tools.python import tool as python_code_tool
from gem.tools.python.tool import PythonCodeTool, extract_code
from gem.tools.tool_env_wrapper import ToolEnvWrapper


@pytest.fixture
def tool():
    tool = PythonCodeTool(timeout=60)
    yield tool
    tool.close()


@pytest.fixture
def notebook():
    tool = PythonCodeTool(timeout=60, stateful=True)
    yield tool
    tool.close()


def run(tool, code):
    return tool.call(ToolCall("python", {"code": code}))


def test_published_calls_have_published_observations(tool):
    action = "<think>reckon</think><python>print(6 * 7)</python> and so on"
    assert tool.execute_action(action) == (True, False, "Code execution result: 42\n\n", action[: -len(" and so on")])
    assert tool.execute_action("```python\nprint(1)\n```")[2] == "Code execution result: 1\n\n"
    assert tool.execute_action(r"\boxed{42}") == (False, True, "", "")


def test_the_published_helper_finds_the_code(tool):
    assert tool._parse_action("x <python>1</python> y") == ("1", "x <python>1</python>", True)
    assert tool._parse_action("x ```python\n1\n``` y <python>2</python>") == ("1\n", "x ```python\n1\n```", True)
    assert tool._parse_action("no call") == ("", "", False)


def test_an_error_is_shown_after_the_output(tool):
    result = run(tool, "print('before')\n1/0")
    assert result.error is ToolErrorType.ERROR
    assert result.text.startswith("Code execution result: before\n\nTraceback (most recent call last):\n")
    assert result.text.endswith("ZeroDivisionError: division by zero\n")


def test_only_the_last_line_of_an_error_can_be_shown():
    result = run(PythonCodeTool(keep_error_last_line=True), "print('before')\n1/0")
    assert result.text == "Code execution result: before\n\nZeroDivisionError: division by zero\n"


def test_an_undefined_name_is_an_error(tool):
    assert "NameError: name 'maths' is not defined" in run(tool, "print(maths.pi)").text
    assert "NameError: name 'math' is not defined" in run(tool, "print(math.pi)\nprint(maths.pi)").text


def test_a_script_that_forgot_a_usual_import_runs_again_with_it(tool):
    assert run(tool, "print(math.sqrt(16))").text == "Code execution result: 4.0\n\n"
    call = ToolCall("python", {"code": "print(Counter('aab')['a'])"})
    assert asyncio.run(tool.acall(call)).text == "Code execution result: 2\n\n"


def test_the_time_limit_is_enforced_and_reported(limit_after_output):
    result = run(PythonCodeTool(timeout=60), "print('working', flush=True)\nwhile True: pass")
    assert result.error is ToolErrorType.TIMEOUT
    assert result.text == "Code execution result: working\n\n[timed out after 60 s]\n"


@pytest.mark.parametrize("stateful", [False, True])
@pytest.mark.parametrize("written", [500, 100_000, 1_000_000])
def test_long_output_is_cut_and_states_by_how_much(stateful, written):
    tool = PythonCodeTool(output_bytes=200, stateful=stateful)
    result = run(tool, f"print('a' * {written}, end=''); print('last words', end='')")
    tool.close()
    assert result.ok
    assert f"\n[... {written + 10 - 200} bytes cut ...]\n" in result.text
    assert result.text.endswith("last words\n")
    assert len(result.text) < 300


def test_endless_output_is_stopped(tool):
    result = run(tool, "while True: print('x' * 100_000)")
    assert result.error is ToolErrorType.ERROR
    assert "[killed: output limit exceeded]" in result.text
    assert len(result.text) < 9_000


def test_memory_is_limited():
    assert run(PythonCodeTool(memory_bytes=256 << 20), "x = bytearray(1 << 30)").error is ToolErrorType.ERROR


def test_invalid_utf8_is_replaced(tool):
    assert "\ufffd" in run(tool, r"import sys; sys.stdout.buffer.write(b'\xff\n')").text


@pytest.mark.parametrize("code", ["", " \n", "# nothing\n   # at all"])
def test_blank_code_is_an_empty_call(tool, code):
    assert run(tool, code).error is ToolErrorType.EMPTY


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("\n```python\nprint(1)\n```\n", "print(1)\n"),
        ("\n    x = 1\n    print(x)\n", "\nx = 1\nprint(x)\n"),
        ("if 1:\n    print(1)", "if 1:\n    print(1)"),
        ("print('''\n```\n''')", "print('''\n```\n''')"),
    ],
)
def test_an_enclosing_fence_or_indentation_is_removed(text, script):
    assert extract_code(text) == script


def test_scripts_share_no_variables_by_default(tool):
    run(tool, "x = 1")
    assert "NameError" in run(tool, "print(x)").text


class TestNotebook:
    def test_variables_are_kept_until_the_episode_ends(self, notebook):
        run(notebook, "x = 20")
        assert run(notebook, "x + 1").text == "Code execution result: 21\n\n"
        notebook.reset()
        assert "NameError" in run(notebook, "x").text

    def test_an_interrupted_cell_keeps_variables_and_says_so(self, notebook, limit_after_output):
        run(notebook, "x = 20")
        result = run(notebook, "print('working')\nwhile True: pass")
        assert result.error is ToolErrorType.TIMEOUT
        assert "[timed out after 60 s] [variables are kept]" in result.text
        assert run(notebook, "x").text == "Code execution result: 20\n\n"

    def test_a_memory_error_keeps_variables_and_says_so(self, notebook):
        run(notebook, "x = 20")
        result = run(notebook, "raise MemoryError")
        assert result.error is ToolErrorType.ERROR
        assert "[memory limit exceeded] [variables are kept]" in result.text
        assert run(notebook, "x").text == "Code execution result: 20\n\n"

    def test_a_crash_loses_variables_and_says_so(self, notebook, monkeypatch):
        monkeypatch.setattr("gem.sandbox.forkserver.host.session.HANGUP_S", 60.0)
        run(notebook, "x = 20")
        result = run(notebook, "import os; os.kill(os.getpid(), 9)")
        assert result.error is ToolErrorType.ERROR
        told = "[killed by signal 9] [all variables are lost; the next cell starts a new interpreter]"
        assert result.text == f"Code execution result: \n{told}\n"
        assert "NameError" in run(notebook, "x").text

    @pytest.mark.parametrize("sandbox_type", ["auto", "none"])
    def test_a_cell_that_exits_its_interpreter_is_an_error(self, sandbox_type):
        tool = PythonCodeTool(stateful=True, sandbox_type=sandbox_type)
        assert run(tool, "import os; os._exit(0)").error is ToolErrorType.ERROR
        assert run(tool, "print(1)").ok
        tool.close()

    def test_tools_do_not_share_sessions(self, notebook):
        other = notebook.spawn()
        run(notebook, "x = 1")
        assert "NameError" in run(other, "x").text
        other.close()

    def test_a_fork_has_the_variables_and_is_independent(self, notebook):
        for code in ("x = [1]", "x.append(2)", "1/0"):
            run(notebook, code)
        fork = notebook.spawn()
        fork.set_own_state(notebook.own_state())
        run(fork, "x.append(3)")
        assert run(fork, "x").text == "Code execution result: [1, 2, 3]\n\n"
        assert run(notebook, "x").text == "Code execution result: [1, 2]\n\n"
        fork.close()

    def test_the_prompt_says_that_variables_are_kept(self, notebook, tool):
        assert "Variables are kept" in notebook.instruction_string()
        assert "Each script runs separately" in tool.instruction_string()

    def test_close_is_idempotent_and_the_next_call_starts_a_session(self, notebook):
        run(notebook, "x = 1")
        notebook.close()
        notebook.close()
        assert run(notebook, "1").text == "Code execution result: 1\n\n"


def test_acall_gives_the_same_results(tool, notebook):
    for each in (tool, notebook):
        for code in ("print(1)", "", "1/0"):
            answer = asyncio.run(each.acall(ToolCall("python", {"code": code})))
            assert answer == run(each, code) or "Traceback" in answer.text


def test_isolation_can_be_switched_off():
    assert run(PythonCodeTool(sandbox_type="none"), "print(1)").text == "Code execution result: 1\n\n"


@pytest.mark.parametrize(
    ("options", "says"),
    [({"sandbox_type": "bwarp"}, "did you mean 'bwrap'"), ({"timeout": 0}, "wall_s"), ({"output_bytes": 0}, "output")],
)
def test_invalid_settings_raise(options, says):
    with pytest.raises(BadValue, match=says):
        PythonCodeTool(**options)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda tool: pickle.loads(pickle.dumps(tool))])
def test_a_copy_has_the_variables_but_not_the_process(notebook, copied):
    run(notebook, "x = 1")
    other = copied(notebook)
    assert (other.stateful, other.timeout, other._session) == (True, 60, None)
    assert run(other, "x += 1; x").text == "Code execution result: 2\n\n"
    assert run(notebook, "x").text == "Code execution result: 1\n\n"
    other.close()


class One(Env):
    def reset(self, seed=None):
        super().reset(seed)
        self.state = 0
        return "Reckon.", {}

    def step(self, action):
        return Step("ok", 1.0, terminated=True)


def test_a_dead_sandbox_raises_and_gives_no_reward(monkeypatch):
    class Dead(Sandbox):
        def run(self, program, **options):
            raise SandboxError("it died")

        exec = session = report = close = run

    monkeypatch.setattr(python_code_tool, "get_sandbox", lambda backend: Dead())
    env = ToolEnvWrapper(One(), [PythonCodeTool()], tool_reward=1.0)
    env.reset()
    with pytest.raises(SandboxError, match="it died"):
        env.step("<python>print(1)</python>")
    assert env.tool_counts.uses == 0


def test_environments_do_not_share_a_notebook():
    tool = PythonCodeTool(stateful=True)
    with ToolEnvWrapper(One(), [tool]) as one, ToolEnvWrapper(One(), [tool]) as two:
        one.reset()
        two.reset()
        one.step("<python>x = 1</python>")
        assert "NameError" in two.step("<python>x</python>").observation
        assert one.step("<python>x</python>").observation == "Code execution result: 1\n\n"
        fork = one.spawn(same_state=True)
        assert fork.step("<python>x</python>").observation == "Code execution result: 1\n\n"
        fork.close()
