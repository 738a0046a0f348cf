"""Harbor folders, built and played by an engine of containers. Only with -m containers."""

import shutil
from pathlib import Path

import pytest

import gem
from gem.envs.computers.containers.container_env import Oracle
from gem.errors import BadValue, SandboxError
from gem.sandbox.containers import machine as container_machine

pytestmark = pytest.mark.containers
TASKS = Path(__file__).parent / "tasks" / "harbor"
NAMES = sorted(path.parent.name for path in TASKS.rglob("task.toml"))


@pytest.fixture(scope="module")
def options(debian, engine):
    return {"image_map": {"ubuntu:*": debian, "registry.example/*": debian}, "engine": engine}


def play(env, *commands):
    """Reset, run commands, finish, and return the last step."""
    env.reset(seed=0)
    for command in commands:
        step = env.step(f"<bash>{command}</bash>")
        if step.terminated or step.truncated:
            return step
    return env.step("<finish>")


@pytest.mark.parametrize("name", NAMES)
def test_the_solution_scores_1_and_doing_nothing_0(name, options):
    with gem.make(f"harbor:{TASKS}#{name}", **options) as env:
        observation, info = env.reset(seed=0)
        assert info["task"] == name
        oracle, step = Oracle(env), None
        while step is None or not (step.terminated or step.truncated):
            step = env.step(oracle.act(observation))
        assert step.reward == 1.0 and step.info["stop_reason"] == "solved", step
        idle = play(env)
        assert idle.reward == 0.0 and idle.terminated, idle
        assert idle.info["explanation"] == idle.info["verifier"] != ""


def test_tests_and_solution_are_absent_while_the_agent_works(options):
    with gem.make(f"harbor:{TASKS}#hello", **options) as env:
        env.reset(seed=0)
        step = env.step("<bash>ls -A /tests /logs/verifier; ls /solution; cat /proc/net/dev | grep -c :</bash>")
        assert "test.sh" not in step.observation and "No such file" in step.observation


def test_a_verifier_without_a_reward_is_repeated_and_the_reason_is_shown(options):
    with gem.make(f"harbor:{TASKS}#no-reward", **options) as env:
        step = play(env, "echo 1 > /logs/verifier/reward.txt", "touch /tests/x")
        assert step.reward == 0.0 and "no reward, twice" in step.info["verifier"]


def test_a_verifier_without_a_reward_that_has_a_user_of_its_own_is_repeated_too(options, tmp_path):
    folder = shutil.copytree(TASKS / "no-reward", tmp_path / "no-reward")
    with open(folder / "task.toml", "a") as toml:
        toml.write('\n[verifier]\nuser = "nobody"\n')
    with gem.make(f"harbor:{folder}", **options) as env:
        step = play(env, "echo 1 > /logs/verifier/reward.txt")
        assert step.reward == 0.0 and "the control verifier works" in step.info["verifier"]


@pytest.mark.parametrize("call", ["commit", "cp"])
def test_an_engine_that_cannot_save_or_read_a_container_is_an_error_and_not_a_reward(call, options, monkeypatch):
    name = "hello" if call == "commit" else "separate-image"
    with gem.make(f"harbor:{TASKS}#{name}", **options) as env:
        env.reset(seed=0)
        engine = env.machine().engine
        command = engine.command
        broken = lambda *given: command(call, "--no-such-flag", *given[1:]) if given[0] == call else command(*given)  # noqa: E731
        monkeypatch.setattr(engine, "command", broken)
        with pytest.raises(SandboxError, match="no-such-flag"):
            env.step("<finish>")


def test_a_user_of_the_verifier_who_does_not_exist_is_an_error_and_not_a_reward(options, tmp_path):
    folder = shutil.copytree(TASKS / "hello", tmp_path / "hello")
    with open(folder / "task.toml", "a") as toml:
        toml.write('\n[verifier]\nuser = "nobody-here"\n')
    with gem.make(f"harbor:{folder}", **options) as env, pytest.raises(SandboxError, match="nobody-here"):
        play(env)


def test_a_link_in_an_artifact_does_not_lead_to_the_tests(options):
    with gem.make(f"harbor:{TASKS}#separate-image", **options) as env:
        step = play(env, "mkdir -p out; ln -s /tests/expected out/a; touch out/b out/c")
        assert step.reward == 0.0


def test_chained_links_in_an_artifact_do_not_lead_to_the_tests(options):
    commands = "mkdir -p out/x/y/z; cd out; ln -s ../.. x/y/l2; ln -s ../l2/../../tests/expected x/y/z/m; "
    with gem.make(f"harbor:{TASKS}#separate-image", **options) as env:
        step = play(env, f"{commands} ln -s x/y/z/m a; touch b c")
        assert step.reward == 0.0


def test_the_image_for_a_second_run_is_removed(options):
    with gem.make(f"harbor:{TASKS}#hello", **options) as env:
        before = list(container_machine._images)
        assert play(env, "echo hello > hello.txt").reward == 1.0
        assert container_machine._images == before


def test_an_outage_of_the_engine_is_an_error_and_not_a_reward(options, monkeypatch):
    with gem.make(f"harbor:{TASKS}#hello", **options) as env:
        env.reset(seed=0)
        machine = env.machine()
        step = env.step("<bash>true</bash>")
        with monkeypatch.context() as patch:
            patch.setattr(machine.engine, "storage", ("--no-such-flag",))
            with pytest.raises(SandboxError):
                machine._close_shell()
                env.step("<bash>true</bash>")
        assert not machine.ended and not step.terminated


def test_a_container_that_ends_scores_0(options):
    with gem.make(f"harbor:{TASKS}#hello", **options) as env:
        env.reset(seed=0)
        machine = env.machine()
        env.step("<bash>true</bash>")
        machine.engine.ask("kill", machine.name)
        step = env.step("<bash>true</bash>")
        assert step.terminated and step.reward == 0.0 and "has ended" in step.info["verifier"]


def test_all_keys_of_reward_json_are_shown(options):
    with gem.make(f"harbor:{TASKS}#several-keys", **options) as env:
        step = play(env, "printf 'a\\nb\\n' > lines; touch more")
        assert step.info["rewards"] == {"reward": 0.0, "sorted": 1.0, "clean": 0.0}


def test_a_reward_may_lie_between_0_and_1(options):
    with gem.make(f"harbor:{TASKS}#finished-image", **options) as env:
        assert play(env, "touch one").reward == 0.5


def test_an_episode_is_saved_and_restored(options):
    with gem.make(f"harbor:{TASKS}#hello", **options) as env:
        env.reset(seed=0)
        env.step("<bash>echo hello > hello.txt</bash>")
        with env.spawn(same_state=True) as copy:
            assert copy.step("<finish>").reward == 1.0


def test_the_time_of_the_task_ends_the_episode(options):
    with gem.make(f"harbor:{TASKS}#custom-user", **options) as env:
        env.reset(seed=0)
        folder, task = env.tasks[0]
        env.tasks[0] = folder, type(task)(**{**vars(task), "agent_timeout_s": 1.0})
        step = env.step("<bash>sleep 60</bash>")
        assert step.truncated and "time is over" in step.observation and step.reward == 0.0


def test_a_missing_image_is_named(options):
    with gem.make(f"harbor:{TASKS}#hello", image_map={}) as env:
        env.reset(seed=0)
        with pytest.raises(gem.errors.SandboxError, match="image_map"):
            env.step("<bash>ls</bash>")


def test_a_path_without_tasks_is_an_error():
    with pytest.raises(BadValue, match=r"no folder .*task\.toml .*none"):
        gem.make(f"harbor:{TASKS}#none")
