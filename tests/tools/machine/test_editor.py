"""EditorTool: view, create, replace and insert, beside any environment. It needs level ns."""

import pickle

import pytest

import gem
from gem.errors import BadValue
from gem.messages import ToolCall, ToolErrorType
from gem.tools.machine.editor import NAME, EditorTool
from gem.tools.machine.shell import ShellTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper
from gem.wrappers import get_wrapper_fns

pytestmark = pytest.mark.usefixtures("machines")


@pytest.fixture
def tool():
    made = ShellTool(editor=True)
    yield made
    made.close()


def edit(tool, command, path, **arguments):
    return tool.call(ToolCall(NAME, {"command": command, "path": path, **arguments}))


def shell(tool, command):
    return tool.call(ToolCall("bash", {"command": command})).text


def test_a_file_is_created_viewed_and_edited(tool):
    assert edit(tool, "create", "src/a.py", file_text="x = 1\ny = 2\n").text == "Wrote /home/user/src/a.py."
    assert edit(tool, "view", "src/a.py").text == "     1  x = 1\n     2  y = 2"
    replaced = edit(tool, "str_replace", "/home/user/src/a.py", old_str="y = 2", new_str="y = 3\nz = 4")
    assert replaced.text == "Edited /home/user/src/a.py:\n     1  x = 1\n     2  y = 3\n     3  z = 4"
    edit(tool, "insert", "src/a.py", insert_line=0, insert_text="# start")
    edit(tool, "insert", "src/a.py", insert_line=4, insert_text="# end\n")
    assert shell(tool, "cat src/a.py") == "# start\nx = 1\ny = 3\nz = 4\n# end\n"


def test_relative_paths_start_at_the_folder_of_the_shell(tool):
    shell(tool, "mkdir deep; cd deep")
    edit(tool, "create", "../b.txt", file_text="b")
    assert shell(tool, "cat /home/user/b.txt") == "b\n"


def test_a_folder_is_listed_two_levels_deep_without_hidden_files(tool):
    shell(tool, "mkdir -p d/e/f; touch d/1 d/e/2 d/e/f/3 d/.hidden")
    assert edit(tool, "view", "d").text == "/home/user/d/\n1\ne/\ne/2\ne/f/"


def test_a_range_of_lines_is_viewed(tool):
    shell(tool, "seq 10 > n")
    assert edit(tool, "view", "n", view_range=[9, -1]).text == "     9  9\n    10  10"
    assert edit(tool, "view", "n", view_range=[2, 2]).text == "     2  2"
    for wrong in ([0, 3], [5, 4], [11, -1], [1]):
        assert not edit(tool, "view", "n", view_range=wrong).ok


def test_a_text_is_replaced_only_if_it_occurs_once(tool):
    edit(tool, "create", "n", file_text="a\na\nb")
    twice, never = (edit(tool, "str_replace", "n", old_str=old, new_str="c") for old in ("a", "d"))
    assert "occurs 2 times" in twice.text and "does not occur" in never.text
    assert {twice.error, never.error} == {ToolErrorType.ERROR}
    assert edit(tool, "str_replace", "n", old_str="b").ok
    assert shell(tool, "cat n") == "a\na\n"


def test_an_edit_keeps_mode_links_and_bytes_and_sets_the_time(tool):
    shell(tool, r"printf 'one\r\n\xff two' > run; chmod 750 run; ln -s run link; touch -d 2001-01-01 run")
    assert edit(tool, "str_replace", "link", old_str="two", new_str="2").ok
    assert edit(tool, "insert", "run", insert_line=1, insert_text="x").ok
    assert shell(tool, "stat -c %a run; readlink link; od -An -c run; find run -newermt 2002-01-01") == (
        "750\nrun\n   o   n   e  \\r  \\n   x  \\n 377       2\nrun\n"
    )


def test_mistakes_are_results_with_the_reason(tool):
    shell(tool, "mkdir d; touch empty")
    mistakes = {
        "No such file": edit(tool, "view", "missing"),
        "Is a directory": edit(tool, "create", "d", file_text=""),
        "Read-only file system": edit(tool, "create", "/usr/x", file_text=""),
        "needs insert_line and insert_text": edit(tool, "insert", "x"),
        "must be from 0 to 0": edit(tool, "insert", "empty", insert_line=1, insert_text=""),
        "must not be empty": edit(tool, "str_replace", "empty", old_str=""),
        "cannot encode": edit(tool, "create", "e", file_text="\ud800"),
        "must name a file": edit(tool, "view", " "),
    }
    for reason, result in mistakes.items():
        assert not result.ok and reason in result.text


def test_a_long_file_is_cut_in_the_middle():
    tool = EditorTool(output_bytes=100)
    edit(tool, "create", "n", file_text="a" * 500 + "z")
    shown = edit(tool, "view", "n").text
    assert len(shown) < 200 and "characters cut" in shown and shown.endswith("z")
    tool.close()


def test_the_wrapper_refuses_arguments_of_the_wrong_type():
    with ToolEnvWrapper(gem.make("game:GuessTheNumber-v0"), tools=[EditorTool()]) as env:
        env.reset(seed=0)
        call = {
            "id": "1",
            "type": "function",
            "function": {"name": NAME, "arguments": '{"command": "undo", "path": "a"}'},
        }
        step = env.step({"role": "assistant", "content": "", "tool_calls": [call]})
        assert step.info["invalid"] == "bad_arguments"
        assert not env.tools[0].own_state()  # no machine was started


def test_a_terminal_task_is_edited_on_its_own_machine():
    wrap = get_wrapper_fns("shell_and_editor_tool")[0]
    with wrap(gem.make("terminal:Files")) as env:
        env.reset(seed=0)
        tool = env.tools[0]
        edit(tool, "create", "note", file_text="kept")
        assert env.unwrapped.machine().read("note") == b"kept" and tool.own_state() is None
        with pickle.loads(pickle.dumps(env)) as copy:
            assert shell(copy.tools[0], "cat note") == "kept\n"
            assert copy.unwrapped.machine().read("note") == b"kept"


def test_a_fork_continues_with_the_edited_files():
    with get_wrapper_fns("editor_tool")[0](gem.make("game:GuessTheNumber-v0")) as env:
        env.reset(seed=0)
        edit(env.tools[0], "create", "n", file_text="1")
        with env.spawn(same_state=True) as fork:
            edit(env.tools[0], "create", "n", file_text="2")
            assert edit(fork.tools[0], "view", "n").text == "     1  1"


def test_the_limit_of_output_must_be_positive():
    with pytest.raises(BadValue):
        EditorTool(output_bytes=0)
