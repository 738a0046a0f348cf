"""Keys in terminal tasks, and the policy that types its commands. They need level ns and pyte."""

import pickle

import pytest

import gem
from gem.envs.computers.keys import KeysOracle, read_keys
from gem.envs.computers.terminal.env import TerminalEnv
from gem.errors import BadValue, SandboxError


def make(env_id, **options):
    try:
        return gem.make(env_id, keys=True, **options)
    except SandboxError as e:
        pytest.skip(str(e))


@pytest.fixture
def env(machines):
    pytest.importorskip("pyte")
    with make("terminal:Files", columns=60, rows=10, max_turns=200) as made:
        made.reset(seed=1)
        yield made


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("<keys>ls</keys>", (b"ls", 0.0, 0)),
        ("so <keys>ls</keys> and <keys>Enter</keys>", (b"ls\r", 0.0, 3)),
        ("<keys wait=5></keys><keys wait='2'>x</keys>", (b"", 5.0, 0)),
        ("<keys>ls", None),
        ("<keys wait=x>ls</keys>", None),
        ("<bash>ls</bash>", None),
    ],
)
def test_the_keys_of_a_reply_are_read_in_order(reply, expected):
    assert read_keys(reply) == expected


def test_a_reply_full_of_opening_tags_is_read_quickly():
    assert read_keys("<keys>" * 200_000) is None
    assert read_keys("</keys>" + "<keys " * 200_000) is None


def test_the_screen_and_the_cursor_are_the_observation(env):
    step = env.step("<keys>echo $((6 * 7))\n</keys>")
    while "\n42\n" not in step.observation and not step.truncated:
        step = env.step('<keys wait="0.2"></keys>')
    assert step.observation.startswith("<screen>\n") and "cursor in row " in step.observation
    assert step.info == {} and step.reward == 0.0


def test_the_first_action_of_a_reply_counts(env):
    assert "bash_output" in env.step("<bash>ls</bash><keys>ls</keys>").observation
    assert "<screen>" in env.step("<keys>ls</keys><bash>ls</bash>").observation
    assert "<keys>" in env.step("nothing").observation


def test_a_closed_terminal_is_announced_and_the_next_one_is_empty(env):
    step = env.step("<keys>exit\n</keys>")
    while "the terminal closed" not in step.observation and not step.truncated:
        step = env.step('<keys wait="0.2"></keys>')
    assert "exit" not in env.step("<keys></keys>").observation


def test_the_rules_name_the_keys_and_a_copy_starts_without_a_terminal(env):
    assert "<keys>" in env.rules()
    copied = pickle.loads(pickle.dumps(env))
    assert "<screen>" in copied.step("<keys>Enter</keys>").observation
    with pytest.raises(BadValue, match="background processes"):
        copied.get_state()
    copied.close()


def test_without_the_option_keys_are_no_action(machines):
    with gem.make("terminal:Files") as env:
        assert "<keys>" not in env.reset(seed=1)[0]
        assert env.step("<keys>ls</keys>").info == {"invalid": "no_action"}


def test_the_size_of_the_screen_is_checked(machines):
    pytest.importorskip("pyte")
    with pytest.raises(BadValue, match="columns and rows"):
        TerminalEnv("Files", keys=True, columns=1)


@pytest.mark.parametrize(("family", "seed"), [("Files", 1), ("Text", 2), ("Logs", 3)])
def test_the_policy_that_types_solves_tasks(machines, family, seed):
    pytest.importorskip("pyte")
    with make(f"terminal:{family}", max_turns=100, level=1) as env:
        observation, _ = env.reset(seed=seed)
        oracle = KeysOracle(env)
        while True:
            step = env.step(oracle.act(observation))
            if step.terminated or step.truncated:
                break
            observation = step.observation
        assert step.reward == 1.0, step
