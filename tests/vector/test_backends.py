"""Every backend plays the same episodes as sync, in any order of stepping, sending and receiving."""

from __future__ import annotations

import importlib.util
import json
import math
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixture_envs import MALFORMED

from gem.core import Info
from gem.errors import EnvFailed
from gem.vector import VectorEnv, make_vec

MISSING_RAY = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is missing")
RAY = pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.exhaustive, MISSING_RAY])  # shorter in test_ray.py
WORKERS = ["async", "thread", "process"]
MODES = ["same_step", "next_step", "disabled"]
IDS = [f"fixture:{name}-v0" for name in ("Walker", "Walker-thread", "Waiting", "Walker-process", "Walker", "Waiting")]
# One slot per kind of fault. Sync survives all of them.
FAULTS = [
    {(1, 1): "raise", (3, 2): "raise"},
    {(0, 0): "infra", (2, 1): "exit"},
    {(1, 0): "raise", (2, 0): "raise"},
    {},
]

Entry = tuple[Any, ...]


class Player:
    """Steps every slot a number of times and records the results.

    Actions depend only on the slot's episode and turn; the order of slots depends only on `chance`.
    """

    def __init__(self, env: VectorEnv, chance: random.Random, seed: int = 5) -> None:
        self.env, self.chance = env, chance
        self.traces: list[list[Entry]] = [[] for _ in range(env.num_envs)]
        self.clock = [(0, 0)] * env.num_envs  # (episodes ended, turn)
        self.over: set[int] = set()
        self.begin(seed)

    def begin(self, seed: int) -> None:
        observations, infos = self.env.reset(seed=seed)
        for slot, (observation, info) in enumerate(zip(observations, infos, strict=True)):
            self.traces[slot].append((observation, info.get("failure")))

    def play(self, steps: int) -> list[list[Entry]]:
        due = [len(trace) + steps for trace in self.traces]
        while busy := [slot for slot, trace in enumerate(self.traces) if len(trace) < due[slot]]:
            self.move([slot for slot in busy if slot not in self.env.pending])
        return self.traces

    def move(self, idle: list[int]) -> None:
        what = self.chance.choice(["step", "send", "recv"])
        if self.env.pending and (what == "recv" or not idle):
            self.keep(*self.env.recv(min_envs=self.chance.randint(1, len(self.env.pending))))
        elif idle:
            self.start(what, self.chance.sample(idle, self.chance.randint(1, len(idle))))

    def start(self, what: str, slots: list[int]) -> None:
        ended = [slot for slot in slots if slot in self.over]
        if self.env.autoreset == "disabled" and ended:
            self.env.send_reset(ended)
            return
        actions = {slot: "{}.{}".format(*self.clock[slot]) for slot in slots}
        if what == "step":
            self.keep(list(actions), self.env.step(actions))
        else:
            self.env.send(list(actions.values()), ids=list(actions))

    def keep(self, slots: list[int], step: Any) -> None:
        for slot, *answer in zip(slots, *step, strict=True):
            self.traces[slot].append(entry(*answer))
            episode, turn = self.clock[slot]
            over = bool(answer[2] or answer[3])
            begins = slot in self.over
            self.clock[slot] = (episode + 1, 0) if over else (episode, 0 if begins else turn + 1)
            (self.over.add if over and self.env.autoreset != "same_step" else self.over.discard)(slot)


def entry(observation: Any, reward: float, terminated: bool, truncated: bool, info: Info) -> Entry:
    final = info.get("final_info", {})
    failure = info.get("failure"), final.get("failure")
    reward = "no reward" if math.isnan(reward) else float(reward)
    return (
        observation,
        reward,
        bool(terminated),
        bool(truncated),
        info.get("final_obs"),
        final.get("stop_reason"),
        failure,
    )


def open_vec(backend: str, env_ids: Any, **options: Any) -> VectorEnv:
    if backend != "sync":
        options.setdefault("num_workers", 2)
    else:
        options.pop("timeout", None)
    return make_vec(env_ids, backend=backend, **options)


@pytest.fixture(scope="module")
def vectors(fixture_ids: None) -> Iterator[Any]:
    """Vectors of IDS by backend and mode. They stay open for the module, because starting workers takes time."""
    opened: dict[tuple[str, str], VectorEnv] = {}

    def vec(backend: str, autoreset: str = "same_step") -> VectorEnv:
        if (backend, autoreset) not in opened:
            opened[backend, autoreset] = open_vec(backend, IDS, autoreset=autoreset)
        return opened[backend, autoreset]

    yield vec
    for env in opened.values():
        env.close()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["sync", *WORKERS, RAY])
def test_episodes_do_not_depend_on_backend_or_order(vectors, backend):
    for mode in MODES:
        expected = Player(vectors("sync", mode), random.Random(0)).play(30)
        assert any(answer[3] for trace in expected for answer in trace[1:])
        for order in (1, 2):
            assert Player(vectors(backend, mode), random.Random(order)).play(30) == expected


@pytest.mark.parametrize("backend", WORKERS)
def test_statistics_match_sync(backend):
    def stats(name: str, order: int) -> Any:
        with open_vec(name, IDS) as env:
            Player(env, random.Random(order)).play(20)
            return env.stats()

    theirs, ours = stats(backend, 1), stats("sync", 0)
    for env_id, own in ours.items():
        assert theirs[env_id].reward == pytest.approx(own.reward)
        theirs[env_id].reward = own.reward
    assert theirs == ours


@pytest.mark.parametrize("backend", [*WORKERS, RAY])
def test_failures_are_the_same_on_every_backend_in_every_order(backend):
    def play(name: str, order: int) -> list[list[Entry]]:
        kinds = ["Faulty", "Faulty-thread", "Faulty-process", "Faulty"]
        ids = [f"fixture:{kind}-v0" for kind in kinds]
        own = [{"faults": faults, "longest": 3} for faults in FAULTS]
        with open_vec(name, ids, vec_kwargs=own, on_failure="restart") as env:
            return Player(env, random.Random(order)).play(15)

    expected = play("sync", 0)
    assert sum(answer[1] == "no reward" for trace in expected for answer in trace[1:]) == 6
    assert play(backend, 1) == expected


def completed(traces: list[list[Entry]]) -> list[dict[str, list[Entry]]]:
    """Per slot: the results of each completed episode that did not fail, by its first observation."""
    by_slot = []
    for (begun, *_), *steps in traces:
        episodes: dict[str, list[Entry]] = {}
        answers: list[Entry] = []
        for answer in steps:
            answers.append(answer[1:6])
            if answer[2] or answer[3]:
                if answer[1] != "no reward":
                    episodes[begun] = answers
                begun, answers = answer[0], []
        by_slot.append(episodes)
    return by_slot


# Faults besides exceptions that each backend has to survive.
TROUBLE = [("thread", "hang"), ("async", "hang"), ("process", "late"), ("process", "die")]
RAY_TROUBLE = [pytest.param("ray", kind, marks=RAY.marks) for kind in ("late", "die")]


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "kind"), [*TROUBLE, *RAY_TROUBLE])
def test_hangs_and_deaths_fail_their_own_episode_and_change_no_other(backend, kind, tmp_path, clock):
    log = tmp_path / "faults"
    faults = [{(1, 1): kind}, {}, {(3, 1): "raise"}, {}]
    own = [{"faults": m, "longest": 3, "log": str(log)} for m in faults]

    def play(name: str, vec_kwargs: Any, steps: int) -> list[list[Entry]]:
        ids = "fixture:Faulty-process-v0" if kind == "die" else "fixture:Faulty-thread-v0"
        with open_vec(name, ids, vec_kwargs=vec_kwargs, on_failure="restart", timeout=1000.0) as env:
            return Player(env, random.Random(1)).play(steps)

    expected = completed(play("sync", [{"longest": 3}] * 4, 80))
    traces = play(backend, own, 20)
    for slot, episodes in enumerate(completed(traces)):
        assert len(episodes) >= 3
        assert episodes.items() <= expected[slot].items()
    assert failed_episodes(traces) >= noted(log)
    assert noted(log) == {(0, 1), (2, 3)}


def failed_episodes(traces: list[list[Entry]]) -> set[tuple[int, int]]:
    """(slot, episode) of the failed episodes."""
    failed = set()
    ends: dict[int, int] = defaultdict(int)
    for slot, (_, *steps) in enumerate(traces):
        for answer in steps:
            if answer[2] or answer[3]:
                if answer[1] == "no reward":
                    failed.add((slot, ends[slot]))
                ends[slot] += 1
    return failed


def noted(log: Path) -> set[tuple[int, int]]:
    """(slot, episode) of the faults in the log. Slot i has seed 5 + i."""
    lines = [line.split() for line in log.read_text().splitlines()]
    return {(int(seed) - 5, int(episode)) for seed, episode, *_ in lines}


@pytest.mark.parametrize("backend", [*WORKERS, RAY])
def test_a_state_can_be_restored_on_another_backend(vectors, backend):
    here, there = vectors("sync"), vectors(backend)
    alone = Player(here, random.Random(0))
    expected = [trace[8:] for trace in alone.play(20)]
    player = Player(here, random.Random(0))
    player.play(7)
    there.set_state(json.loads(json.dumps(here.get_state())))
    player.env = there
    player.play(7)
    here.set_state(json.loads(json.dumps(there.get_state())))
    player.env = here
    assert [trace[8:] for trace in player.play(6)] == expected


@pytest.mark.parametrize("backend", WORKERS)
def test_a_state_of_one_slot_continues_in_other_slots(backend):
    with open_vec(backend, ["game:GuessTheNumber-v0-easy"] * 3, autoreset="disabled") as env:
        env.reset([1, 2, 3])
        env.step({0: r"\boxed{1}", 1: r"\boxed{2}", 2: "unreadable"})
        (state,) = env.get_slot_states([0])
        env.set_slot_states({1: json.loads(json.dumps(state)), 2: json.loads(json.dumps(state))})
        step = env.step([r"\boxed{9}"] * 3)
    assert len({json.dumps(observation) for observation in step.observations_B}) == 1
    assert step.rewards_B.tolist() == [step.rewards_B[0]] * 3


@pytest.mark.parametrize("backend", ["thread", "async"])
def test_closing_an_idle_vector_leaves_no_thread_or_process(backend, caplog):
    for _ in range(30):  # the order in which threads end varies
        with open_vec(backend, ["fixture:Walker-thread-v0", "fixture:Waiting-v0"]) as env:
            env.reset()
            env.step(["a", "a"])
    assert caplog.text == ""


ALL = [(name, "fixture:Misbehaving-v0") for name in ("sync", "thread", "process")]
ALL += [("async", f"fixture:Misbehaving{how}-v0") for how in ("", "Waiting")]
ALL_BACKENDS = pytest.mark.parametrize(
    ("backend", "env_id"),
    [*ALL, pytest.param("ray", "fixture:Misbehaving-v0", marks=RAY.marks)],
)


@ALL_BACKENDS
def test_a_malformed_step_fails_its_slot_alone(backend, env_id):
    with open_vec(backend, [env_id] * 3, autoreset="next_step", longest=50, on_failure="restart") as vec:
        for action in MALFORMED:
            vec.reset(seed=0)
            step = vec.step(["a", action, "a"])
            assert [math.isnan(reward) for reward in step.rewards_B] == [False, True, False]
            assert step.truncated_B.tolist() == [False, True, False]
            assert action.split("=")[0] in step.infos_B[1]["failure"]
            vec.reset()
            vec.step(["a"] * 3)  # a slot that fails several times in a row is given up


@ALL_BACKENDS
def test_a_malformed_step_raises_env_failed_and_keeps_the_other_steps(backend, env_id):
    with open_vec(backend, [env_id] * 3, longest=50) as vec:
        vec.reset(seed=0)
        with pytest.raises(EnvFailed, match=r"slot 1 .*step\(\) .*reward '1'"):
            vec.step(["a", "reward '1'", "a"])
        assert sorted(vec.recv(min_envs=2).ids_B) == [0, 2]


@pytest.mark.parametrize("on_failure", ["raise", "restart"])
@ALL_BACKENDS
def test_a_keyboard_interrupt_of_an_environment_is_raised_and_fails_its_slot_alone(backend, env_id, on_failure):
    with open_vec(backend, [env_id] * 3, autoreset="disabled", longest=50, on_failure=on_failure) as vec:
        vec.reset(seed=0)
        with pytest.raises(KeyboardInterrupt):
            vec.step(["a", "ctrl-c", "a"])
        if on_failure == "raise":
            with pytest.raises(EnvFailed, match=r"slot 1 .*interrupted by KeyboardInterrupt"):
                vec.recv(min_envs=3)
            assert sorted(vec.recv(min_envs=2).ids_B) == [0, 2]
        else:
            received = vec.recv(min_envs=3)
            assert [
                slot for slot, info in zip(received.ids_B, received.step.infos_B, strict=True) if "failure" in info
            ] == [1]
        assert vec.reset(seed=0)[0] == [f"episode 0 of seed {seed}" for seed in range(3)]
        assert vec.step(["a"] * 3).truncated_B.tolist() == [False] * 3


@pytest.mark.parametrize("backend", ["sync", "async", "thread", "process"])
def test_an_environment_variable_sets_terminated_at_limits_and_after_failures(backend, monkeypatch):
    ids = ["game:GuessTheNumber-v0-easy", "fixture:Faulty-v0"]
    arguments = [{"max_turns": 1}, {"faults": {(0, 1): "infra"}}]
    monkeypatch.setenv("GEM_END_ON_TRUNCATION", "1")
    env = make_vec(ids, vec_kwargs=arguments, backend=backend)
    monkeypatch.delenv("GEM_END_ON_TRUNCATION")  # make_vec has read it
    with env:
        env.reset(seed=1)
        step = env.step([r"\boxed{99}", "x"])
        assert step.terminated_B.tolist() == step.truncated_B.tolist() == [True, True]
        assert [info["final_info"]["stop_reason"] for info in step.infos_B] == ["max_turns", "failed"]
