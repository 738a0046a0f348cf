"""Checks of determinism and saved state: equal seeds give equal episodes, and copies of an episode continue equally."""

from __future__ import annotations

import copy
import json
import math
import pickle
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from gem._internal.text import short_repr
from gem.core import Step, position_of
from gem.testing.check import CheckFailed, Unchecked, check
from gem.testing.env.harness import Harness, TrackedEnv
from gem.testing.env.side_effects import GlobalStreams, seed_global_streams
from gem.testing.env.target import import_path, literal
from gem.testing.plain_data import canonical, repr_near_difference

DIVERSITY_TURNS = 10  # number of steps by which episodes with different seeds are compared
MIN_DIVERSITY_SEEDS = 20
# Besides neighbouring seeds, pairs with these distances are compared: multiples of all numbers up to 22, of all powers
# of two up to 2**24, and of all powers of ten up to 10**8.
SEED_STRIDES = (math.lcm(*range(1, 23)), 2**24, 10**8)
MAX_CHANCE = 1e-9  # the check fails if so many pairs with equal episodes are less probable than this
OTHER_GLOBAL_SEED = 123_456  # the global streams are set to this seed between the calls of an episode


@check("step-determinism", "A step depends only on the state and the action.", needs=("protocol",))
def step_determinism(harness: Harness) -> str | None:
    def body(seed: int, actions: Sequence[str]) -> None:
        env = harness.build()
        env.reset(seed)
        half = len(actions) // 2
        env.run(actions[:half])
        if env.over:
            return
        one, other = (_deepcopy(harness, env, name) for name in ("one", "other"))
        streams = GlobalStreams()
        expected = one.run(actions[half:])
        streams.restore()
        other.expect_steps(actions[half:], expected, one.name)

    harness.for_each_rollout(body)
    return None


@check("seed-determinism", "The same seed and actions give the same episode.", needs=("protocol", "step-determinism"))
def seed_determinism(harness: Harness) -> str | None:
    starts = set()

    def body(seed: int, actions: Sequence[str]) -> None:
        streams = GlobalStreams()
        env, twin = harness.build(), harness.build("twin")
        start = env.reset_plain(seed)
        starts.add(canonical(start))
        expected = env.run(actions)
        streams.restore()
        twin.expect_reset(seed, start, env.name)
        twin.expect_steps(actions, expected, env.name)
        streams.restore()
        env.expect_reset(seed, start[:1], env.name)  # without info, which may describe the previous episode
        env.expect_steps(actions, expected, env.name)

    harness.for_each_rollout(body)
    return f"{len(starts)} different first observations over {len(harness.seeds)} seeds"


@check(
    "seed-diversity",
    "Different seeds give different episodes, and so do consecutive resets without a seed.",
    needs=("protocol", "seed-determinism", "step-determinism"),
)
def seed_diversity(harness: Harness) -> str | None:
    actions = max(harness.rollouts, key=lambda rollout: len(rollout.actions)).actions[:DIVERSITY_TURNS]
    env = harness.build()
    count = max(2 * harness.episodes, len(harness.seeds))
    if count < MIN_DIVERSITY_SEEDS:
        raise Unchecked(f"{count} seeds are too few to compare; at least {MIN_DIVERSITY_SEEDS} are needed")
    episodes = {seed: _fingerprint(harness, env, seed, actions) for seed in range(count)}
    different = len(set(episodes.values()))
    if different == 1:
        if env.env.instances() == 1:
            return "instances() declares a single episode"
        failure = _same_episodes(harness, env, count)
        _set_script(harness, 0, 1)
        raise failure
    for stride in SEED_STRIDES:
        for seed in range(count // 4):
            episodes[seed + stride] = _fingerprint(harness, env, seed + stride, actions)
    frequency = Counter(map(episodes.__getitem__, range(count)))
    chance = sum(n * (n - 1) for n in frequency.values()) / (count * (count - 1))  # that two episodes are equal
    for distance in (*range(1, count // 2 + 1), *SEED_STRIDES):
        pairs = [(seed, seed + distance) for seed in range(count) if seed + distance in episodes]
        equal = [pair for pair in pairs if episodes[pair[0]] == episodes[pair[1]]]
        if _binomial_tail(len(pairs), len(equal), chance or 1 / count**2) < MAX_CHANCE:
            _set_script(harness, *equal[0])
            rate = f"{len(equal)} of {len(pairs)} pairs of seeds that differ by {distance:,} give the same episode"
            raise CheckFailed(f"{rate}; expected by chance: {chance:.1%}")
    env.reset(0)
    following = {_fingerprint(harness, env, None, actions) for _ in range(count)}
    if len(following) == 1 and chance ** (count - 1) < MAX_CHANCE:
        _set_script(harness, 0, "", "")
        raise CheckFailed(f"reset() without a seed gives the same episode {count} times in a row")
    return f"{different} different episodes over {count} seeds"


@check(
    "global-streams",
    "Episodes neither depend on nor draw from the global streams of random and numpy.",
    needs=("protocol", "step-determinism"),
)
def global_streams(harness: Harness) -> str | None:
    may_seed = type(harness.build().env.unwrapped).__module__.partition(".")[0] != "gem"
    harness.for_each_rollout(lambda seed, actions: _require_no_draws(harness, seed, actions, may_seed))
    if "seed-determinism" in harness.failed:
        raise Unchecked("no call draws from them; whether episodes depend on them needs 'seed-determinism' to pass")
    harness.for_each_rollout(lambda seed, actions: _require_independence(harness, seed, actions))
    return "gem.Env.reset(seed) seeds them for classes defined outside gem, which is allowed" if may_seed else None


@check(
    "isolation",
    "Building and playing other environments in between does not change an episode.",
    needs=("protocol", "seed-determinism", "step-determinism"),
)
def isolation(harness: Harness) -> str | None:
    def body(seed: int, actions: Sequence[str]) -> None:
        streams = GlobalStreams()
        env, twin = harness.build(), harness.build("twin")
        start = env.reset_plain(seed)
        expected = env.run(actions)
        streams.restore()
        twin.expect_reset(seed, start, env.name)
        other = None
        for turn, step in enumerate(expected):
            streams = GlobalStreams()  # the check "global-streams" reports effects of the global streams
            if other is None or other.over:
                other = harness.build("other")
                other.reset(seed + turn + 1)
            other.step(actions[turn])
            streams.restore()
            twin.expect_steps(actions[turn : turn + 1], [step], env.name)

    harness.for_each_rollout(body)
    return None


@check(
    "episode-sequence",
    "An episode after reset() does not depend on the actions taken in the previous episode.",
    needs=("protocol", "seed-determinism", "step-determinism", "global-streams"),
)
def episode_sequence(harness: Harness) -> str | None:
    def body(seed: int, actions: Sequence[str]) -> None:
        env, twin = harness.build(), harness.build("twin")
        env.reset(seed)
        twin.reset(seed)
        env.run(actions)
        start = env.reset_plain()
        twin.expect_reset(None, start[:1], env.name)  # without info, which may describe the previous episode
        twin.expect_steps(actions, env.run(actions), env.name)

    harness.for_each_rollout(body)
    return None


@check(
    "sampling-isolation",
    "Sampling actions does not change the episode, and equal seeds sample equal actions.",
    needs=("protocol", "seed-determinism", "step-determinism"),
)
def sampling_isolation(harness: Harness) -> str | None:
    def body(seed: int, actions: Sequence[str]) -> None:
        env, twin, other = harness.build(), harness.build("twin"), harness.build("other")
        streams = GlobalStreams()
        start = env.reset_plain(seed)
        expected = env.run(actions)
        streams.restore()
        twin.expect_reset(seed, start, env.name)
        sampled = twin.sample()
        streams.restore()
        other.reset(seed)
        if (again := other.sample()) != sampled:
            samples = f"twin samples {literal(sampled)} and other {literal(again)}"
            raise CheckFailed(f"after reset(seed={seed}), {samples}")
        for action, step in zip(actions, expected, strict=False):
            twin.sample()
            twin.expect_steps([action], [step], env.name)

    if not harness.samples_actions:
        raise Unchecked("the environment cannot sample actions")
    harness.for_each_rollout(body)
    return None


@check(
    "json-state",
    "get_state() survives JSON, and after set_state() the episode continues identically.",
    needs=("protocol", "step-determinism"),
)
def json_state(harness: Harness) -> str | None:
    def body(seed: int, actions: Sequence[str]) -> None:
        env, rest = _play_half(harness, seed, actions)
        state = harness.call(f"state = {env.name}.get_state()", env.env.get_state, optional=True)
        try:
            text = harness.call("text = json.dumps(state)", json.dumps, state, expected=(TypeError, ValueError))
        except (TypeError, ValueError) as e:
            raise CheckFailed(f"get_state() is not JSON-serializable: {e}") from e
        twin, turn = harness.build("twin"), env.turn
        _restore(harness, twin, text, env)
        restored = canonical(harness.call("twin.get_state()", twin.env.get_state))
        if restored != (saved := canonical(json.loads(text))):
            got, wanted = repr_near_difference(restored, saved), repr_near_difference(saved, restored)
            raise CheckFailed(f"twin's state is {got} after set_state({wanted})")
        streams = GlobalStreams()
        expected = _require_same_continuation(env, [twin], rest)
        if json.dumps(state) != text:
            raise CheckFailed("the value returned by get_state() changed during later steps")
        _restore(harness, env, text, env)
        env.turn, env.over = turn, not expected
        streams.restore()
        env.expect_steps(rest, expected, env.name)

    harness.for_each_rollout(body)
    return None


@check(
    "fork",
    "spawn(same_state=True) returns forks that continue identically and independently.",
    needs=("protocol", "step-determinism", "json-state"),
)
def fork(harness: Harness) -> str | None:
    def body(seed: int, actions: Sequence[str]) -> None:
        env, rest = _play_half(harness, seed, actions)
        forks = []
        for name in ("fork", "second"):
            code = f"{name} = {env.name}.spawn(same_state=True)"
            forked = harness.call(code, env.env.spawn, same_state=True, optional=True)
            if forked is env.env:
                raise CheckFailed("spawn(same_state=True) returned the environment itself")
            forks.append(harness.track(name, forked, like=env))
        _require_same_continuation(env, forks, rest)

    harness.for_each_rollout(body)
    return None


@check(
    "pickle",
    "An environment can be pickled during an episode, and the copy continues identically.",
    needs=("protocol", "step-determinism"),
)
def pickling(harness: Harness) -> str | None:
    if import_path(cls := type(harness.build().env)) is None:
        raise Unchecked(f"pickle cannot find {cls.__qualname__}, which is defined in a function or in __main__")

    def body(seed: int, actions: Sequence[str]) -> None:
        env, rest = _play_half(harness, seed, actions)
        code = f"twin = pickle.loads(pickle.dumps({env.name}))"
        twin = harness.call(code, lambda: pickle.loads(pickle.dumps(env.env)))
        _require_same_continuation(env, [harness.track("twin", twin, like=env)], rest)

    harness.for_each_rollout(body)
    return None


def _fingerprint(harness: Harness, env: TrackedEnv, seed: int | None, actions: Sequence[str]) -> str:
    """Reset the environment and play. Returns everything that the episode shows and hides, as text."""
    del harness.script[1:]
    start = env.reset_plain(seed)
    hidden = harness.call(f"{env.name}.secrets()", env.env.secrets)
    return canonical([start, hidden, [tuple(step) for step in env.run(actions)]])


def _set_script(harness: Harness, *seeds: object) -> None:
    harness.script[1:] = [line for seed in seeds for line in (f"print(env.reset({seed}))", "print(env.secrets())")]


def _same_episodes(harness: Harness, env: TrackedEnv, count: int) -> CheckFailed | Unchecked:
    """Return a failure if the environment has something to draw; otherwise the task may be the same by design."""
    same = f"{count} seeds give the same episode"
    generators: list[random.Random] = []
    seed_generator = random.Random.seed

    def record(generator: random.Random, *args: Any, **kwargs: Any) -> None:
        generators.append(generator)
        seed_generator(generator, *args, **kwargs)

    random.Random.seed = record  # type: ignore[method-assign,assignment]
    try:
        env.reset(count)
    finally:
        random.Random.seed = seed_generator  # type: ignore[method-assign]
    inner = env.env.unwrapped
    if (recorded := position_of(env.env)[0]) not in (count, None):
        return CheckFailed(f"{same}: reset(seed={count}) starts an episode with the seed {recorded}")
    if hidden := env.env.secrets():
        return CheckFailed(f"{same}, with the secret {short_repr(hidden[0])}")
    if any(generator is not inner.rng and generator is not inner._action_rng for generator in generators):
        return CheckFailed(f"{same}: reset() draws from a random generator of its own, not from self.rng")
    return Unchecked(f"{same}; define instances() to return 1 if the environment has a single task")


def _binomial_tail(n: int, k: int, p: float) -> float:
    """Return the probability of at least k successes in n trials."""
    return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))


def _require_no_draws(harness: Harness, seed: int, actions: Sequence[str], may_seed: bool) -> None:
    env, before = harness.build(), GlobalStreams()
    env.reset(seed)
    if may_seed and before.changed():
        before = GlobalStreams()
        seed_global_streams(seed)  # gem.Env.reset() seeds in the same way; any other change is a failure
        _require_unchanged(harness, before)
    _require_unchanged(harness, before)
    for action in actions:
        if env.over:
            break
        env.step(action)
        _require_unchanged(harness, before)
    if harness.samples_actions:
        env.reset()
        env.sample()
        _require_unchanged(harness, before)


def _require_unchanged(harness: Harness, streams: GlobalStreams) -> None:
    if stream := streams.changed():
        raise CheckFailed(f"{harness.script[-1]} draws from or seeds the global stream {stream}")


def _require_independence(harness: Harness, seed: int, actions: Sequence[str]) -> None:
    env, twin = harness.build(), harness.build("twin")
    start = env.reset_plain(seed)
    expected = env.run(actions)
    harness.call(f"random.seed({OTHER_GLOBAL_SEED})", seed_global_streams, OTHER_GLOBAL_SEED)
    twin.expect_reset(seed, start, env.name)
    for action, step in zip(actions, expected, strict=False):
        harness.call(f"random.seed({OTHER_GLOBAL_SEED})", seed_global_streams, OTHER_GLOBAL_SEED)
        twin.expect_steps([action], [step], env.name)


def _deepcopy(harness: Harness, env: TrackedEnv, name: str) -> TrackedEnv:
    code = f"{name} = copy.deepcopy({env.name})"
    try:
        copied = harness.call(code, copy.deepcopy, env.env, expected=Exception)
    except Exception as e:  # environments may hold locks, files or sockets, which cannot be copied
        raise Unchecked(f"copy.deepcopy() fails: {type(e).__name__}: {e}") from e
    return harness.track(name, copied, like=env)


def _play_half(harness: Harness, seed: int, actions: Sequence[str]) -> tuple[TrackedEnv, list[str]]:
    """Play the first half of the actions in a new environment. Returns the environment and the other actions."""
    env = harness.build()
    env.reset(seed)
    half = len(actions) // 2
    env.run(actions[:half])
    return env, list(actions[half:])


def _require_same_continuation(env: TrackedEnv, copies: Sequence[TrackedEnv], actions: Sequence[str]) -> list[Step]:
    """Play the actions in each copy and in the original. Returns the steps. Raises CheckFailed if the steps differ."""
    streams = GlobalStreams()
    expected = copies[0].run(actions)
    for other in (*copies[1:], env):
        streams.restore()
        other.expect_steps(actions, expected, copies[0].name)
    return expected


def _restore(harness: Harness, env: TrackedEnv, text: str, like: TrackedEnv) -> None:
    code = f"{env.name}.set_state(json.loads(text))"
    harness.call(code, env.env.set_state, json.loads(text), optional=True)
    env.turn, env.over = like.turn, like.over
