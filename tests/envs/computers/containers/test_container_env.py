"""Episodes of task folders before their container is started: these tests need no engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gem.envs.computers.containers import container_env
from gem.envs.computers.containers.harbor import HarborEnv
from gem.errors import BadValue

TASKS = Path(__file__).parent / "tasks" / "harbor"


def saved(env):
    return json.loads(json.dumps(env.get_state()))


def test_the_state_of_an_episode_before_its_first_command_survives_json_and_other_data_is_refused(monkeypatch):
    monkeypatch.setattr(container_env, "find_engine", lambda name: None)
    env, other = (HarborEnv(f"{TASKS}#[hn]*", shuffle=False) for _ in range(2))
    env.reset(seed=1)
    other.reset(seed=0)
    state = saved(env)
    other.set_state(state)
    assert saved(other) == state and other.task().folder.name == "no-reward"
    for wrong in (None, {}, {**state, "machine": 3}, {**state, "machine": {"image": "x"}}):
        with pytest.raises(BadValue, match="invalid state for HarborEnv"):
            other.set_state(wrong)
        assert saved(other) == state
