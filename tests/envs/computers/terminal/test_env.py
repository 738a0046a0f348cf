"""Terminal tasks: reference solutions score 1, doing nothing and almost solving them score 0. They need level ns."""

import importlib
import pickle
import random
import shutil
from dataclasses import replace

import pytest

import gem
from gem.envs.computers.commands import read_command
from gem.envs.computers.shell_env import Oracle, require_programs
from gem.envs.computers.task import CANARY, first_fault, start_task
from gem.envs.computers.terminal.env import FAMILIES, TerminalEnv
from gem.envs.computers.verify import verify
from gem.errors import BadValue, EpisodeOver, SandboxError
from gem.evaluation import EvalEnv, evaluate
from gem.sandbox import Limits, get_sandbox
from gem.sandbox.forkserver.host.probe import SHELL_PATH
from gem.sandbox.machine import HOME, FileEntry

MODULES = [importlib.import_module(name) for name in FAMILIES.values()]
TEMPLATES = [template for module in MODULES for template in module.TEMPLATES]


def lacks_programs(module):
    return any(shutil.which(name, path=SHELL_PATH) is None for name in module.PROGRAMS)


templates = pytest.mark.parametrize(
    "template",
    [
        pytest.param(template, marks=pytest.mark.skipif(lacks_programs(module), reason=f"needs {module.PROGRAMS}"))
        for module in MODULES
        for template in module.TEMPLATES
    ],
    ids=lambda template: template.__name__,
)


pytestmark = pytest.mark.usefixtures("machines")


@pytest.fixture
def env():
    with gem.make("terminal:Files", level=1) as made:
        made.reset(seed=1)
        yield made


def start(files):
    return get_sandbox().machine(files=files, limits=Limits(wall_s=20, output_bytes=8_000))


def fault_after(task, *commands):
    with start_task(task, start) as machine:
        for command in commands:
            assert machine.exec(command).status.value in ("ok", "error")
        return verify(task, machine, start)


# ---- the tasks


def check_scores(template, seeds):
    for seed in seeds:
        task = template(random.Random(seed), 1 + seed % 3)
        assert fault_after(task, *task.solution) == "", seed
        assert fault_after(task) != "", seed


@templates
def test_the_reference_solution_scores_1_and_doing_nothing_0(template):
    check_scores(template, [2])


@pytest.mark.exhaustive
@templates
def test_the_reference_solution_scores_1_and_doing_nothing_0_on_100_seeds(template):
    check_scores(template, range(100))


@templates
def test_a_solution_that_is_almost_right_scores_0(template):
    task = template(random.Random(1), 2)
    assert len(task.near_misses) >= 5
    assert fault_after(task, task.near_misses[0]) != ""


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(3))
@templates
def test_solutions_that_are_almost_right_score_0(template, seed):
    task = template(random.Random(seed), 1 + seed)
    for script in task.near_misses:
        assert fault_after(task, script) != "", script


def check_distinct(template, count):
    tasks = [template(random.Random(seed), 2) for seed in range(count)]
    shown = {
        repr((task.instruction, sorted(task.files.items()), task.setup, task.checks, task.service)) for task in tasks
    }
    assert len(shown) == count


@templates
def test_tasks_differ_and_depend_only_on_the_seed(template):
    check_distinct(template, 20)
    assert template(random.Random(7), 2) == template(random.Random(7), 2)


@pytest.mark.exhaustive
@templates
def test_400_tasks_of_a_template_differ(template):
    check_distinct(template, 400)


def test_there_are_enough_templates():
    assert len(TEMPLATES) >= 30


def test_a_missing_program_is_one_clear_line():
    with pytest.raises(SandboxError, match=r"terminal:Git .*no-such-program.*install") as caught:
        require_programs("terminal:Git", ["bash", "no-such-program"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_files_of_tasks_carry_the_canary(module):
    assert CANARY in module.__doc__


def test_links_and_unwanted_files_are_found():
    task = TEMPLATES[0](random.Random(0), 1)
    moved = [FileEntry(f"{HOME}/{path}", text.encode()) for path, text in task.expected.items()]
    assert first_fault(task, moved) == ""
    assert "should not exist" in first_fault(task, [*moved, FileEntry(f"{HOME}/inbox/more", b"")])
    path = next(iter(task.expected))
    linked = [entry for entry in moved if entry.path != f"{HOME}/{path}"]
    assert "not a regular file" in first_fault(task, [*linked, FileEntry(f"{HOME}/{path}", b"/tmp/x", "link")])


def test_the_last_newline_counts_in_first_files_only():
    task = TEMPLATES[0](random.Random(0), 1)
    moved = [FileEntry(f"{HOME}/{path}", text.encode()) for path, text in task.expected.items()]
    cut = FileEntry(moved[0].path, moved[0].content.removesuffix(b"\n"))
    assert "the content of" in first_fault(task, [cut, *moved[1:]])
    assert first_fault(replace(task, files={}), [cut, *moved[1:]]) == ""


def test_files_of_git_are_never_unwanted():
    task = replace(TEMPLATES[0](random.Random(0), 1), expected={}, complete=("repo",))
    assert first_fault(task, [FileEntry(f"{HOME}/repo/.git/config", b"")]) == ""
    assert "should not exist" in first_fault(task, [FileEntry(f"{HOME}/repo/notes", b"")])


# ---- the environment


@pytest.mark.parametrize("family", FAMILIES)
def test_the_oracle_solves_an_episode(family):
    if lacks_programs(MODULES[list(FAMILIES).index(family)]):
        pytest.skip("a program is missing")
    with gem.make(f"terminal:{family}") as env:
        observation, _ = env.reset(seed=3)
        assert observation.startswith(env.task().instruction)
        oracle, total, over = Oracle(env.unwrapped), 0.0, False
        while not over:
            observation, reward, terminated, truncated, info = env.step(oracle.act(observation))
            total, over = total + reward, terminated or truncated
        assert (total, terminated, str(info["stop_reason"])) == (1.0, True, "solved")
        with pytest.raises(EpisodeOver):
            env.step("<finish>")


def test_finishing_at_once_scores_0_and_says_why(env):
    step = env.step("I am done. <finish>")
    assert (step.reward, step.terminated, str(step.info["stop_reason"])) == (0.0, True, "lost")
    assert step.info["verifier"] == step.info["explanation"] != ""


def test_commands_share_one_shell_and_failures_do_not_end_the_episode(env):
    assert "exit status 1" in env.step("<bash>cd /tmp; export A=5; false</bash>").observation
    step = env.step("<bash>\npwd; echo $A\n</bash> and then <bash>exit 9</bash>")
    assert step.observation == "<bash_output>\n/tmp\n5\n</bash_output>\nexit status 0"
    assert not step.terminated and step.info == {"exit_status": 0}


def test_a_reply_without_a_command_is_invalid_and_uses_a_turn(env):
    step = env.step("ls -l")
    assert step.info == {"invalid": "no_action"} and "<bash>" in step.observation and env.state.turn == 1


def test_the_number_of_failing_commands_can_be_limited():
    with gem.make("terminal:Text", max_failures=2) as env:
        env.reset(seed=0)
        assert not env.step("<bash>false</bash>").terminated
        step = env.step("<bash>false</bash>")
        assert step.terminated and str(step.info["stop_reason"]) == "lost"


def test_at_the_turn_limit_the_files_count():
    for commands, reward in (([], 0.0), (None, 1.0)):
        with gem.make("terminal:Files", max_turns=1) as env:
            env.reset(seed=2)
            chosen = env.task().solution if commands is None else ["ls"]
            step = env.step(f"<bash>{chosen[0]}</bash>")
            assert (step.reward, step.truncated) == (reward, reward == 0.0)


def test_a_command_that_times_out_is_an_observation(limit_after_output):
    with gem.make("terminal:Files", timeout=60.0) as env:
        env.reset(seed=0)
        assert "[timed out after 60 s]" in env.step("<bash>echo started; sleep 600</bash>").observation
        assert "fine" in env.step("<bash>echo fine</bash>").observation


def test_processes_of_the_agent_cannot_change_files_while_they_are_verified(env):
    loop = "while :; do for f in inbox/*; do echo x > $f; done; done"
    env.step(f"<bash>({loop}) >/dev/null 2>&1 & setsid bash -c 'while :; do touch inbox/new; done' &</bash>")
    assert env.step("<finish>").reward == 0.0


def test_files_that_cannot_be_read_are_the_agents_fault():
    with gem.make("terminal:Files", limits=Limits(wall_s=20, disk_bytes=1 << 20)) as env:
        env.reset(seed=0)
        env.step("<bash>truncate -s 1M a; truncate -s 1M b; truncate -s 1M c</bash>")
        step = env.step("<finish>")
        assert step.reward == 0.0 and "cannot be read" in step.info["verifier"]


def test_an_episode_is_forked_with_its_files_and_variables(env):
    env.step("<bash>echo mine > kept; export A=1; cd /tmp</bash>")
    look = "<bash>cat ~/kept; echo $A; pwd</bash>"
    with env.spawn(same_state=True) as fork, pickle.loads(pickle.dumps(env)) as copied:
        env.step("<bash>rm ~/kept</bash>")
        for other in (fork, copied):
            assert other.step(look).observation == "<bash_output>\nmine\n1\n/tmp\n</bash_output>\nexit status 0"


def test_an_episode_with_background_processes_cannot_be_saved(env):
    env.step("<bash>sleep 100 &</bash>")
    with pytest.raises(BadValue, match="background processes"):
        env.get_state()


@pytest.mark.parametrize(
    "arguments", [{"family": "Filez"}, {"level": 4}, {"max_turns": 0}, {"timeout": 0.0}, {"timeout": 500.0}]
)
def test_arguments_out_of_range_are_errors(arguments):
    with pytest.raises(BadValue):
        TerminalEnv(**{"family": "Files", **arguments})


def test_a_level_without_machines_is_one_clear_line(monkeypatch):
    try:
        lower = get_sandbox(level="lsm")
    except SandboxError as e:
        pytest.skip(str(e))
    monkeypatch.setattr("gem.envs.computers.shell_env.get_sandbox", lambda: lower)
    with pytest.raises(SandboxError, match="podman") as caught:
        gem.make("terminal:Files")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "command", "seconds"),
    [
        ("ls -l", "ls -l", None),
        ("cmd: ls -l\ntimeout_secs: 5", "ls -l", 5.0),
        ("\ncmd: 'it''s'\n", "it's", None),
        ('cmd: "a\\nb"\ntimeout_secs: 900', "a\nb", 120.0),
        ("cmd: |\n  cat <<EOF\n    x\n  EOF\ntimeout_secs: 2", "cat <<EOF\n  x\nEOF", 2.0),
        ("cmd: a\ntimeout_secs: 1.2.3", "a", None),
    ],
)
def test_the_published_yaml_is_read(body, command, seconds):
    assert read_command(body) == (command, seconds)


# ---- many episodes at once


@pytest.mark.slow
@pytest.mark.parametrize("kwargs", [{}, {"keys": True, "max_turns": 200}], ids=["commands", "keys"])
def test_reference_agents_solve_many_episodes_at_a_time_and_again(kwargs):
    if kwargs:
        pytest.importorskip("pyte")
    families = ["Files", "Text", "Logs", "Processes"]  # which need no program that may be missing
    envs = [EvalEnv(id=f"terminal:{family}", kwargs={"level": 1, **kwargs}) for family in families]
    for _ in range(1 if kwargs else 2):
        report = evaluate("oracle", envs, limit=2 if kwargs else 4, concurrency=32, retries=0)
        assert [(report[env.id].solved.value, report[env.id].failed) for env in envs] == [(1.0, 0)] * len(envs)
