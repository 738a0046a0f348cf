"""check_env(): test an environment against every requirement of the gem.Env contract.

>>> report = check_env("game:GuessTheNumber-v0-easy", episodes=20)
>>> report.ok
True
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Any

from gem._internal.counts import check_count
from gem.errors import BadValue
from gem.seeding import check_seed
from gem.testing.check import Check, CheckReport, CheckResult, run_checks
from gem.testing.env import construction as env_construction
from gem.testing.env import determinism as env_determinism
from gem.testing.env import interface as env_interface
from gem.testing.env import process as env_process
from gem.testing.env import scores as env_scores
from gem.testing.env import secrets as env_secrets
from gem.testing.env.harness import Harness
from gem.testing.env.side_effects import GlobalStreams
from gem.testing.env.target import EnvTarget, env_target

# A check must come after the checks that it needs.
CHECKS: tuple[Check[Harness], ...] = (
    env_construction.construction,
    env_interface.protocol,
    env_construction.imports,
    env_construction.unknown_argument,
    env_interface.types,
    env_interface.fresh_info,
    env_interface.reserved_info_keys,
    env_interface.rewards,
    env_interface.reward_range,
    env_interface.endings,
    env_interface.stop_reason,
    env_interface.explanation,
    env_interface.turn_limit,
    env_interface.episode_over,
    env_interface.any_text,
    env_interface.sampled_legal,
    env_process.process_state,
    env_process.stdout,
    env_process.files,
    env_determinism.step_determinism,
    env_determinism.seed_determinism,
    env_determinism.seed_diversity,
    env_process.wall_clock,
    env_determinism.global_streams,
    env_determinism.isolation,
    env_determinism.episode_sequence,
    env_construction.other_process,
    env_determinism.sampling_isolation,
    env_determinism.json_state,
    env_determinism.fork,
    env_determinism.pickling,
    env_scores.oracle,
    *env_scores.BASELINES.values(),
    env_scores.reachable_maximum,
    env_secrets.secrets,
)


def check_env(
    env_or_id: Any,
    *,
    seeds: int | Iterable[int] = 10,
    episodes: int = 50,
    thorough: bool = False,
    seconds: float | None = None,
) -> CheckReport:
    """Run every check on an environment.

    At the end, the state of the global random streams and the settings of the process are restored.

    Args:
        env_or_id: a registered id; an EnvSpec, registered or not; an Env; an Env class that needs no arguments; or a
            function without arguments that returns an Env. An Env is not modified: the checks build new instances with
            the same arguments. The reward range, the oracle and the baseline scores come from the spec, so more checks
            apply to an EnvSpec than to a class.
        seeds: seeds of the recorded rollouts; an integer n stands for the seeds 0 to n - 1.
        episodes: number of episodes used to estimate means and rates.
        thorough: also measure for about ten seconds whether memory, file descriptors, threads, processes and time grow.
        seconds: approximate time, after which the checks play fewer rollouts and baselines. None means no limit; what
            is checked then does not depend on the speed of the machine.

    Returns:
        A report with one result per check. Exceptions raised by the environment are reported as failures.

    Raises:
        UnknownEnv: no environment has this id.
        BadValue: seeds or episodes is out of range, or env_or_id has an unsupported type.
    """
    start = time.perf_counter()
    seeds = _seed_list(seeds)
    check_count("episodes", episodes)
    streams, target = GlobalStreams(), env_target(env_or_id)
    harness = Harness(target, seeds, episodes, seconds=math.inf if seconds is None else seconds)
    harness.checks_left = len(CHECKS)
    try:
        results = run_checks((*CHECKS, *(env_process.GROWTH if thorough else ())), harness, case=harness.case)
    finally:
        streams.restore()
        harness.process_state.restore()
    results += _unknown_baselines(target)
    return CheckReport(target.name, results, seeds, episodes, time.perf_counter() - start)


def _unknown_baselines(target: EnvTarget) -> list[CheckResult]:
    declared = {} if target.spec is None else target.spec.baseline_scores
    description = "This policy scores no more than the declared baseline."
    reason = f"unknown policy; available: {', '.join(env_scores.BASELINES)}"
    return [
        CheckResult(f"baseline-{name}", description, "unchecked", reason)
        for name in declared
        if name not in env_scores.BASELINES
    ]


def _seed_list(seeds: int | Iterable[int]) -> list[int]:
    chosen = list(range(seeds)) if isinstance(seeds, int) else [check_seed(seed) for seed in seeds]
    if not chosen:
        raise BadValue(f"seeds must contain at least one seed, got {seeds!r}")
    return chosen
