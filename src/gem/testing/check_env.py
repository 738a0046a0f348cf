"""Does an environment keep its promises? Every broken one at once, and what could not be told.

>>> report = check_env("game:GuessTheNumber-v0-easy", episodes=20)
>>> report.ok
True
"""

from __future__ import annotations

import operator
import time
from collections.abc import Iterable
from typing import Any

from gem.errors import BadValue
from gem.seeding import check_seed
from gem.testing import checks_actions, checks_api, checks_build, checks_chance, checks_secrets, checks_state
from gem.testing.checks_score import FLOORS, oracle
from gem.testing.lab import Lab
from gem.testing.promise import Promise
from gem.testing.report import Report, Result
from gem.testing.subject import Subject, subject_of
from gem.testing.watch import GlobalStreams

# In the order in which they are tried: what others need comes before them.
PROMISES: tuple[Promise, ...] = (
    checks_build.construction,
    checks_api.protocol,
    checks_build.imports,
    checks_build.unknown_argument,
    checks_api.types,
    checks_api.fresh_info,
    checks_api.reserved_info_keys,
    checks_api.rewards,
    checks_api.reward_range,
    checks_api.endings,
    checks_api.after_the_end,
    checks_actions.any_text,
    checks_actions.sampled_legal,
    checks_chance.step_determinism,
    checks_chance.seed_determinism,
    checks_chance.global_streams,
    checks_chance.isolation,
    checks_chance.episode_sequence,
    checks_build.other_process,
    checks_actions.sampled_apart,
    checks_state.json_state,
    checks_state.fork,
    checks_state.pickling,
    oracle,
    *FLOORS.values(),
    checks_secrets.secrets,
)


def check_env(env_or_id: Any, *, seeds: int | Iterable[int] = 10, episodes: int = 50) -> Report:
    """Try every promise of an environment.

    Args:
        env_or_id: a registered id; an EnvSpec, registered or not; an Env, which is not touched, but others are built
            with its arguments; a class of Env that needs no arguments; or a factory of an Env. What is declared of it
            (reward range, oracle, floors) comes from its spec, so an EnvSpec gets the most checked.
        seeds: those played for promises about single episodes, or how many: 0, 1, 2, …
        episodes: over which means and rates are taken: oracle, floors, secrets.

    An environment that raises does not make this raise; the caller's mistakes do: UnknownEnv, BadValue. The global
    random streams are left as they were.
    """
    start = time.perf_counter()
    seeds = _seeds(seeds)
    if operator.index(episodes) < 1:
        raise BadValue(f"episodes must be at least 1, got {episodes}")
    streams, subject = GlobalStreams(), subject_of(env_or_id)
    try:
        lab = Lab(subject, seeds, episodes)
        results = [promise.judge(lab) for promise in PROMISES]
    finally:
        streams.restore()
    results += _unknown_floors(subject)
    return Report(subject.name, results, seeds, episodes, time.perf_counter() - start)


def _unknown_floors(subject: Subject) -> list[Result]:
    declared = {} if subject.spec is None else subject.spec.floors
    says = "This policy earns no more than the declared floor."
    reason = f"no policy of this name is known here; there are {', '.join(FLOORS)}"
    return [Result(f"floor-{name}", says, "unchecked", reason) for name in declared if name not in FLOORS]


def _seeds(seeds: int | Iterable[int]) -> list[int]:
    chosen = list(range(seeds)) if isinstance(seeds, int) else [check_seed(seed) for seed in seeds]
    if not chosen:
        raise BadValue(f"seeds must name at least one seed, got {seeds!r}")
    return chosen
