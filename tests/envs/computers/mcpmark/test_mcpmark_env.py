"""Tasks of MCPMark: reading them, verification in a machine, and play on the real server where it is installed."""

import json
import os
import pickle
import shutil

import pytest

import gem
from gem.datasets import MissingData
from gem.envs.computers.mcpmark.checkout import read_tasks
from gem.envs.computers.mcpmark.filesystem import PROGRAM, FolderService
from gem.envs.computers.mcpmark.verify import verify_files
from gem.errors import BadValue, EpisodeOver, MissingDependency, SandboxError
from gem.sandbox import make_sandbox

VERIFY = "import os, sys, pathlib\nsys.exit(not pathlib.Path(os.environ['FILESYSTEM_TEST_DIR'], 'done').exists())\n"


def write_task(root, name="filesystem/easy/shop/one", verify=VERIFY, **meta):
    folder = root / "tasks" / name
    folder.mkdir(parents=True)
    meta = {"task_id": "one", "category_id": name.split("/")[2], **meta}
    (folder / "meta.json").write_text(json.dumps(meta))
    (folder / "description.md").write_text("Create the file done.")
    (folder / "verify.py").write_text(verify)
    state = root / "test_environments" / meta["category_id"]
    state.mkdir(parents=True, exist_ok=True)
    (state / "a.txt").write_text("one")
    return folder


@pytest.fixture
def TaskEnv():
    pytest.importorskip("mcp")
    from gem.envs.computers.mcpmark.mcpmark_env import TaskEnv

    return TaskEnv


# ---- reading


def test_tasks_are_chosen_by_a_part_of_their_names_or_a_pattern(tmp_path):
    for name in ("filesystem/easy/shop/one", "filesystem/standard/shop/two", "github/easy/repo/three"):
        write_task(tmp_path, name)
    assert [task.name for task in read_tasks(f"{tmp_path}#easy/shop")] == ["filesystem/easy/shop/one"]
    assert [task.name for task in read_tasks(f"{tmp_path}#*/shop/t*")] == ["filesystem/standard/shop/two"]
    with pytest.raises(BadValue, match="service github is not supported"):
        read_tasks(str(tmp_path))
    with pytest.raises(BadValue, match="no tasks match 'four' among 3"):
        read_tasks(f"{tmp_path}#four")


def test_a_checkout_may_be_in_the_folder_of_data(tmp_path, monkeypatch):
    write_task(tmp_path / "mark")
    monkeypatch.setenv("GEM_DATA", str(tmp_path))
    assert len(read_tasks("mark")) == 1
    with pytest.raises(MissingData, match="not a checkout"):
        read_tasks("absent")


def test_a_task_that_cannot_be_read_is_named(tmp_path):
    folder = write_task(tmp_path, category_id="../up")
    with pytest.raises(BadValue, match=r"filesystem/easy/shop/one .* cannot be read"):
        read_tasks(str(tmp_path))
    (folder / "meta.json").write_text('{"category_id": "shop"}')
    (folder / "verify.py").unlink()
    with pytest.raises(BadValue, match=r"no verify\.py"):
        read_tasks(str(tmp_path))


def test_missing_first_files_are_named_with_their_address(tmp_path):
    write_task(tmp_path, meta_data={"stateUrl": "https://example.com/shop.zip"})
    shutil.rmtree(tmp_path / "test_environments")
    (task,) = read_tasks(str(tmp_path))
    with pytest.raises(MissingData, match=r"unpack .*//example\.com/shop\.zip"):
        task.require_state()
    (tmp_path / "other" / "shop").mkdir(parents=True)
    assert read_tasks(str(tmp_path), str(tmp_path / "other"))[0].require_state().is_dir()


# ---- verification


def fault(tmp_path, verify, timeout=60.0):
    write_task(tmp_path, verify=verify)
    (task,) = read_tasks(str(tmp_path))
    return verify_files(task, task.require_state(), timeout)


@pytest.mark.parametrize(
    "lost", ["test_environments/shop", "tasks/filesystem/easy/shop/one", "tasks/filesystem/easy/shop/one/verify.py"]
)
def test_files_of_the_host_that_are_gone_are_no_verdict(tmp_path, lost):
    write_task(tmp_path)
    (task,) = read_tasks(str(tmp_path))
    state = task.require_state()
    path = tmp_path / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(SandboxError):
        verify_files(task, state, 60.0)


def test_a_forked_child_that_exits_leaves_the_folder(tmp_path):
    service = FolderService()
    child = os.fork()
    if not child:
        service.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0 and service.folder.is_dir()
    service.close()
    assert not service.folder.exists()


def test_exit_status_0_is_solved_and_1_is_not(tmp_path, machines):
    assert fault(tmp_path / "1", "print('fine')") == ""
    assert fault(tmp_path / "2", "import sys; print('no file'); sys.exit(1)") == "not solved: no file"


def test_the_verifier_sees_its_own_files_and_the_state_and_no_network(tmp_path, machines):
    source = (
        "import os, pathlib, socket\n"
        "assert pathlib.Path(__file__).with_name('description.md').exists()\n"
        "assert pathlib.Path(os.environ['FILESYSTEM_TEST_DIR'], 'a.txt').read_text() == 'one'\n"
        "try:\n    socket.socket()\nexcept PermissionError:\n    pass\nelse:\n    raise SystemExit(1)\n"
    )
    assert fault(tmp_path, source) == ""


@pytest.mark.parametrize(
    ("verify", "reason"),
    [
        ("{}['x']", "KeyError: 'x'"),
        ("import os; os._exit(7)", "exit status 7"),
        ("import os; os.kill(os.getpid(), 9)", "exit status 137"),
        ("while True: pass", "timeout"),
        ("syntax error", "SyntaxError"),
    ],
)
def test_a_verifier_that_fails_twice_scores_0_with_the_reason(tmp_path, machines, verify, reason):
    shown = fault(tmp_path, verify, timeout=0.5 if "while" in verify else 60.0)
    assert shown.startswith("verify.py failed twice") and reason in shown


def test_a_verifier_changes_nothing_outside_its_machine(tmp_path, machines):
    assert fault(tmp_path, "import os, shutil; shutil.rmtree(os.environ['FILESYSTEM_TEST_DIR'])") == ""
    assert (tmp_path / "test_environments" / "shop" / "a.txt").read_text() == "one"


# ---- the environment


def test_an_episode_starts_with_fresh_files_and_ends_with_a_reply(tmp_path, TaskEnv, machines):
    write_task(tmp_path)
    with TaskEnv(str(tmp_path)) as env:
        observation, info = env.reset(seed=0)
        assert "Create the file done." in observation and info["task"] == "filesystem/easy/shop/one"
        (env.service.folder / "done").write_text("")
        with env.spawn(same_state=True) as fork:
            assert env.step("Done.").reward == 1.0 and fork.step("Done.").reward == 1.0
        with pytest.raises(EpisodeOver):
            env.step("Done.")
        env.reset(seed=0)
        assert [path.name for path in env.service.folder.iterdir()] == ["a.txt"]
        step = env.step("Done.")
        assert (step.reward, step.terminated) == (0.0, True) and "not solved" in step.info["explanation"]


def test_a_copy_has_the_files_and_closing_removes_them(tmp_path, TaskEnv):
    write_task(tmp_path)
    env = TaskEnv(str(tmp_path))
    env.reset(seed=0)
    (env.service.folder / "b.txt").write_text("b")
    with pickle.loads(pickle.dumps(env)) as copy:
        assert (copy.service.folder / "b.txt").read_text() == "b" and copy.service.folder != env.service.folder
    folder = env.service.folder
    env.close()
    assert not folder.exists()
    env.reset(seed=0)
    assert (env.service.folder / "a.txt").exists()
    env.close()


def test_a_missing_server_is_named_with_the_command_that_installs_it(TaskEnv, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv(PROGRAM, raising=False)
    with pytest.raises(MissingDependency, match="npm install -g @modelcontextprotocol/server-filesystem"):
        gem.make("mcpmark:Files")


# ---- our own tasks


def apply(folder, name, arguments):
    """Do what the calls of the references mean, where the server is not installed."""
    if name == "create_directory":
        (folder / arguments["path"]).mkdir()
    elif name == "move_file":
        (folder / arguments["source"]).rename(folder / arguments["destination"])
    elif name == "write_file":
        (folder / arguments["path"]).write_text(arguments["content"])
    else:
        assert name == "edit_file"
        (change,), path = arguments["edits"], folder / arguments["path"]
        assert path.read_text().count(change["oldText"]) == 1
        path.write_text(path.read_text().replace(change["oldText"], change["newText"]))


def own_seeds(TaskEnv):
    """Return a seed for each of gem's own tasks."""
    with TaskEnv() as env:
        return {env.reset(seed=seed)[1]["task"]: seed for seed in range(40)}


def test_the_reference_calls_score_1_and_doing_nothing_and_half_of_them_0(TaskEnv, machines):
    from gem.envs.computers.mcpmark.mcpmark_env import reference

    seeds = own_seeds(TaskEnv)
    assert len(seeds) == 5
    with TaskEnv() as env:
        for name, seed in seeds.items():
            for part, score in ((1.0, 1.0), (0.0, 0.0), (0.99, 0.0)):
                env.reset(seed=seed)
                calls = reference(env.task())
                for call in calls[: int(len(calls) * part)]:
                    apply(env.service.folder, *call)
                assert env.step("Done.").reward == score, (name, part)


def change(path, old, new):
    return lambda top: (top / path).write_text((top / path).read_text().replace(old, new))


def write(path, text):
    return lambda top: (top / path).write_text(text)


def move(source, target):
    return lambda top: (top / source).rename(top / target)


NEAR = {  # what is done after the reference calls
    "duplicate_drafts": (
        move("duplicates/zz.md", "drafts/zz.md"),
        move("duplicates/zz.md", "zz.md"),
        lambda top: (top / "duplicates/zz.md").unlink(),
        move("drafts/plan.md", "duplicates/plan.md"),
        write("drafts/zz.md", "Soup, bread, tea.\n"),
        lambda top: (
            move("drafts/menu.md", "duplicates/menu.md")(top),
            move("duplicates/old_menu.md", "drafts/old_menu.md")(top),
        ),
        change("drafts/plan.md", "May.\n", "May."),
        write("duplicates/list.txt", "zz.md\n"),
    ),
    "invoice_totals": (
        change("totals.json", "1756", "1755"),
        change("totals.json", "1756", "1756.0"),
        change("totals.json", "1756", '"1756"'),
        change("totals.json", ', "Dunes": 597', ""),
        change("totals.json", ', "Dunes": 597', ', "Dunes": 597, "Ember": 0'),
        change("totals.json", "Adler", "adler"),
        change("totals.json", "{", "[{"),
        change("totals.json", ",", ",\n//"),
        move("totals.json", "invoices/totals.json"),
        change("invoices/101.txt", "6 x chair", "6 x chair "),
        write("readme.txt", "Totals are in totals.json.\n"),
    ),
    "longer_timeouts": (
        change("settings/scanner.ini", "90", "30"),
        change("settings/lift.ini", "30", "10"),
        change("settings/lift.ini", "30", "031"),
        change("settings/lift.ini", "timeout = 30", "timeout=30"),
        change("settings/lift.ini", "timeout = 30", "timeout = 30 "),
        change("settings/printer.ini", "\n", "\r\n"),
        change("settings/printer.ini", "[device]", "\n[device]"),
        change("settings/printer.ini", "retries = 2\n", "retries = 2"),
        write("settings/lift.ini.bak", "[device]\n"),
        lambda top: (top / "settings/scanner.ini").unlink(),
    ),
    "notes_by_month": (
        move("archive/2025-03/alpha.txt", "archive/2025-04/alpha.txt"),
        move("archive/2025-03", "archive/2025-3"),
        move("archive", "archives"),
        move("archive/2025-03/alpha.txt", "archive/2025-03/2025-03-23-alpha.txt"),
        move("archive/2025-03/alpha.txt", "notes/alpha.txt"),
        write("notes/alpha.txt", "Date: 2025-03-23\n"),
        change("archive/2025-03/alpha.txt", "Date: 2025-03-23\n", ""),
        change("archive/2025-03/alpha.txt", "desk.\n", "desk."),
        write("archive/index.md", "2025-03\n"),
    ),
    "open_items": (
        change("todo.md", "notes/", ""),
        change("todo.md", ": ", ": TODO: "),
        change("todo.md", "notes/ember.txt: move the meeting to room 2\n", ""),
        lambda top: write("todo.md", "\n".join(reversed((top / "todo.md").read_text().split("\n"))))(top),
        change("todo.md", "notes/", "- notes/"),
        change("todo.md", "notes/alpha", "# Open items\n\nnotes/alpha"),
        change("todo.md", "\nnotes", "\n\nnotes"),
        change("todo.md", "notes/coast", "notes/bravo.txt: the lamp in room 4 flickers\nnotes/coast"),
        move("todo.md", "notes/todo.md"),
        move("todo.md", "TODO.md"),
        change("notes/alpha.txt", "TODO", "DONE"),
        change("notes/alpha.txt", "desk.\n", "desk."),
    ),
}


def test_almost_right_ends_of_our_own_tasks_score_0(TaskEnv, machines):
    from gem.envs.computers.mcpmark.mcpmark_env import reference

    with TaskEnv() as env:
        for name, seed in own_seeds(TaskEnv).items():
            for number, spoil in enumerate(NEAR[name.rpartition("/")[2]]):
                env.reset(seed=seed)
                for call in reference(env.task()):
                    apply(env.service.folder, *call)
                spoil(env.service.folder)
                assert env.step("Done.").reward == 0, (name, number)


def test_other_ways_to_the_end_of_our_own_tasks_score_1(TaskEnv, machines):
    from gem.envs.computers.mcpmark.mcpmark_env import reference

    ways = {
        "invoice_totals": lambda top: write(
            "totals.json", '{\n  "Dunes": 597, "Adler": 1756,"Cedar":632, "Brook":993}'
        )(top),
        "open_items": lambda top: write("todo.md", (top / "todo.md").read_text().rstrip())(top),
        "notes_by_month": lambda top: (top / "notes").rmdir(),
        "duplicate_drafts": lambda top: (top / "empty").mkdir(),
    }
    with TaskEnv() as env:
        for name, seed in own_seeds(TaskEnv).items():
            env.reset(seed=seed)
            for call in reference(env.task()):
                apply(env.service.folder, *call)
            ways.get(name.rpartition("/")[2], lambda top: None)(env.service.folder)
            assert env.step("Done.").reward == 1, name


def test_the_oracle_plays_on_the_real_server(TaskEnv, machines):
    from gem.envs.computers.mcpmark.mcpmark_env import Oracle

    try:
        env = gem.make("mcpmark:Files")
    except MissingDependency as e:
        pytest.skip(str(e))
    with env:
        for name, seed in own_seeds(TaskEnv).items():
            observation, _ = env.reset(seed=seed)
            assert "write_file" in observation
            player = Oracle(env.unwrapped)
            while True:
                step = env.step(player.act(observation))
                if step.terminated or step.truncated:
                    break
                observation = step.observation
                assert not step.info["tool_faults"], step
            assert step.reward == 1.0, (name, step)


def test_the_server_refuses_files_outside_its_folder(TaskEnv, machines):
    from gem.messages import ToolCall
    from gem.tools.formats import TAGS

    try:
        env = gem.make("mcpmark:Files")
    except MissingDependency as e:
        pytest.skip(str(e))
    with env:
        env.reset(seed=0)
        step = env.step(TAGS.write(ToolCall("read_text_file", {"path": "/etc/passwd"}), []))
        assert "root:" not in step.observation and step.info["tool_faults"]


def test_episodes_show_one_name_of_the_folder_and_continue_after_pickling(TaskEnv, machines):
    from gem.messages import ToolCall
    from gem.tools.formats import TAGS

    def show(env, name, path):
        return env.step(TAGS.write(ToolCall(name, {"path": path}), [])).observation

    try:
        env = gem.make("mcpmark:Files")
    except MissingDependency as e:
        pytest.skip(str(e))
    with env:
        env.reset(seed=0)
        folder = str(env.unwrapped.service.folder)
        assert "/workspace/missing" in (missing := show(env, "get_file_info", "missing")) and folder not in missing
        assert show(env, "list_directory", "/workspace") == show(env, "list_directory", ".")
        show(env, "create_directory", "/workspace/made")
        with pickle.loads(pickle.dumps(env)) as copy:
            assert "made" in show(copy, "list_directory", "/workspace")
            assert show(copy, "get_file_info", "missing") == missing
        info = show(env, "get_file_info", "made")
        assert "modified:" in info and "created:" not in info and "accessed:" not in info


def test_an_unsupported_sandbox_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("gem.envs.computers.mcpmark.verify.get_sandbox", lambda: make_sandbox("subprocess"))
    with pytest.raises(SandboxError, match=r"SubprocessSandbox has no machines.*local sandbox"):
        fault(tmp_path, VERIFY)
