"""The files of rewards that a Harbor verifier leaves."""

import os

import pytest

from gem.envs.computers.containers.rewards import RewardMissing, read_rewards, scalar


@pytest.mark.parametrize(
    ("name", "text", "rewards", "reward"),
    [
        ("reward.txt", "1\n", {"reward": 1.0}, 1.0),
        ("reward.txt", " 0.25 ", {"reward": 0.25}, 0.25),
        ("reward.json", '{"score": 1}', {"score": 1.0}, 1.0),
        ("reward.json", '{"a": 0.5, "reward": 0}', {"a": 0.5, "reward": 0.0}, 0.0),
    ],
)
def test_a_reward_is_the_number_or_the_key_reward_or_the_only_key(tmp_path, name, text, rewards, reward):
    (tmp_path / name).write_text(text)
    assert read_rewards(tmp_path) == rewards and scalar(rewards) == reward


def test_json_comes_before_text(tmp_path):
    (tmp_path / "reward.txt").write_text("1")
    (tmp_path / "reward.json").write_text('{"reward": 0}')
    assert read_rewards(tmp_path) == {"reward": 0.0}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("reward.txt", ""),
        ("reward.txt", "solved"),
        ("reward.txt", "nan"),
        ("reward.txt", "1e999"),
        ("reward.json", " "),
        ("reward.json", "[1]"),
        ("reward.json", "{}"),
        ("reward.json", '{"reward": "1"}'),
        ("reward.json", '{"reward": true}'),
        ("reward.json", '{"reward": NaN}'),
        ("reward.json", '{"reward": 1e999}'),
        ("reward.json", "{"),
    ],
)
def test_anything_else_is_a_missing_reward(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(RewardMissing, match=name.replace(".", r"\.")):
        read_rewards(tmp_path)


def test_several_keys_without_reward_are_refused():
    with pytest.raises(RewardMissing, match="a, b"):
        scalar({"a": 1.0, "b": 0.0})


def test_links_and_pipes_are_not_read(tmp_path):
    (tmp_path / "one").write_text("1")
    (tmp_path / "reward.txt").symlink_to(tmp_path / "one")
    with pytest.raises(RewardMissing, match="no regular file"):
        read_rewards(tmp_path)
    (tmp_path / "reward.txt").unlink()
    os.mkfifo(tmp_path / "reward.txt")
    with pytest.raises(RewardMissing, match="no regular file"):
        read_rewards(tmp_path)


def test_without_files_there_is_no_reward(tmp_path):
    with pytest.raises(RewardMissing, match="neither"):
        read_rewards(tmp_path)
