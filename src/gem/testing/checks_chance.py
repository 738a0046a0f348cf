"""Chance: the same seed gives the same episode, whatever runs beside it."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from gem.testing.lab import Broken, Lab, Player, Unchecked
from gem.testing.plain import canonical
from gem.testing.promise import promise
from gem.testing.watch import GlobalStreams, seed_globals

DISTURBANCE = 123_456  # seeds the global streams between the calls of an episode


@promise("step-determinism", "A step depends on state and action alone: copies answer alike.")
def step_determinism(lab: Lab) -> str | None:
    def body(seed: int, actions: Sequence[str]) -> None:
        player = lab.fresh()
        player.reset(seed)
        half = len(actions) // 2
        player.play(actions[:half])
        if player.over:
            return
        one, other = (_copied(lab, player, name) for name in ("one", "other"))
        streams = GlobalStreams()
        expected = one.play(actions[half:])
        streams.restore()
        other.repeat(actions[half:], expected, one.name)

    lab.each(body)
    return None


@promise("seed-determinism", "The same seed and actions give the same episode.", needs=("protocol", "step-determinism"))
def seed_determinism(lab: Lab) -> str | None:
    starts = set()

    def body(seed: int, actions: Sequence[str]) -> None:
        streams = GlobalStreams()
        player, twin = lab.fresh(), lab.fresh("twin")
        start = player.begin(seed)
        starts.add(canonical(start))
        expected = player.play(actions)
        streams.restore()
        twin.start_as(seed, start, player.name)
        twin.repeat(actions, expected, player.name)
        streams.restore()
        player.start_as(seed, start[:1], player.name)  # its info may tell of the episode before
        player.repeat(actions, expected, player.name)

    lab.each(body)
    return f"{len(starts)} different first observations over {len(lab.seeds)} seeds"


@promise(
    "episode-sequence",
    "The episode after reset() is the same whatever was played in the one before it.",
    needs=("protocol", "seed-determinism", "step-determinism", "global-streams"),
)
def episode_sequence(lab: Lab) -> str | None:
    def body(seed: int, actions: Sequence[str]) -> None:
        player, twin = lab.fresh(), lab.fresh("twin")
        player.reset(seed)
        twin.reset(seed)
        player.play(actions)
        start = player.begin()
        twin.start_as(None, start[:1], player.name)  # info may tell of the episode before
        twin.repeat(actions, player.play(actions), player.name)

    lab.each(body)
    return None


@promise(
    "isolation",
    "Other environments, built and played in between, change no episode.",
    needs=("protocol", "seed-determinism", "step-determinism"),
)
def isolation(lab: Lab) -> str | None:
    def body(seed: int, actions: Sequence[str]) -> None:
        streams = GlobalStreams()
        player, twin = lab.fresh(), lab.fresh("twin")
        start = player.begin(seed)
        expected = player.play(actions)
        streams.restore()
        twin.start_as(seed, start, player.name)
        other = None
        for turn, step in enumerate(expected):
            streams = GlobalStreams()  # what comes over the global streams is the business of "global-streams"
            if other is None or other.over:
                other = lab.fresh("other")
                other.reset(seed + turn + 1)
            other.step(actions[turn])
            streams.restore()
            twin.repeat(actions[turn : turn + 1], [step], player.name)

    lab.each(body)
    return None


@promise(
    "global-streams",
    "No episode depends on the global streams of random and numpy, or draws from them.",
    needs=("protocol", "step-determinism"),
)
def global_streams(lab: Lab) -> str | None:
    seeds_them = type(lab.fresh().env.unwrapped).__module__.partition(".")[0] != "gem"
    lab.each(lambda seed, actions: _leaves_alone(lab, seed, actions, seeds_them))
    if "seed-determinism" in lab.broken:
        raise Unchecked("no call draws from them; whether they decide episodes shows once 'seed-determinism' passes")
    lab.each(lambda seed, actions: _ignores(lab, seed, actions))
    return "gem.Env.reset(seed) seeds them for every class defined outside gem; that is allowed" if seeds_them else None


def _leaves_alone(lab: Lab, seed: int, actions: Sequence[str], seeds_them: bool) -> None:
    player, before = lab.fresh(), GlobalStreams()
    player.reset(seed)
    if seeds_them and before.moved():
        before = GlobalStreams()
        seed_globals(seed)  # gem.Env's doing, and all that may have been done
        _unmoved(lab, before)
    _unmoved(lab, before)
    for action in actions:
        if player.over:
            break
        player.step(action)
        _unmoved(lab, before)
    if lab.samples:
        player.reset()
        player.sample()
        _unmoved(lab, before)


def _unmoved(lab: Lab, streams: GlobalStreams) -> None:
    if stream := streams.moved():
        raise Broken(f"{lab.script[-1]} draws from the global stream {stream}, or seeds it")


def _ignores(lab: Lab, seed: int, actions: Sequence[str]) -> None:
    player, twin = lab.fresh(), lab.fresh("twin")
    start = player.begin(seed)
    expected = player.play(actions)
    lab.call(f"random.seed({DISTURBANCE})", seed_globals, DISTURBANCE)
    twin.start_as(seed, start, player.name)
    for action, step in zip(actions, expected, strict=False):
        lab.call(f"random.seed({DISTURBANCE})", seed_globals, DISTURBANCE)
        twin.repeat([action], [step], player.name)


def _copied(lab: Lab, player: Player, name: str) -> Player:
    code = f"{name} = copy.deepcopy({player.name})"
    try:
        env = lab.call(code, copy.deepcopy, player.env, passes=Exception)
    except Exception as e:  # locks, files and sockets have no copies, and need have none
        raise Unchecked(f"it cannot be copied: {type(e).__name__}: {e}") from e
    return lab.adopt(name, env, like=player)
