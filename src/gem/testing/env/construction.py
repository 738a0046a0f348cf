"""Checks of construction: side effects, import cost, unknown arguments, and equal episodes in another process."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gem._internal.text import short_repr
from gem.testing.check import CheckFailed, Unchecked, check
from gem.testing.env import side_effects
from gem.testing.env.harness import Harness
from gem.testing.plain_data import canonical, repr_near_difference

PROBE_TIMEOUT_S = 120
PROBE_ROLLOUTS = 5  # recorded rollouts that the other process replays


@check("construction", "Construction prints nothing, opens no connection and draws no global randomness.")
def construction(harness: Harness) -> str | None:
    streams = side_effects.GlobalStreams()
    with side_effects.observe_side_effects() as effects:
        try:
            harness.build()
        except CheckFailed as e:
            if not effects.connections:
                raise Unchecked(e.detail) from e  # the check "protocol" reports this failure
    _require_no_effects("construction", effects.printed.getvalue(), effects.connections)
    if stream := streams.changed():
        raise CheckFailed(f"construction draws from or seeds the global stream {stream}")
    return None


@check(
    "import",
    "Importing it prints nothing and opens no connection; `import gem` loads no third-party package.",
    needs=("construction", "protocol"),
)
def imports(harness: Harness) -> str | None:
    findings = probe(harness)
    _require_no_effects("importing it", findings["printed"], findings["connections"])
    return describe_import_cost(findings)


@check("other-process", "Another process with another hash seed plays the same episodes.", needs=("seed-determinism",))
def other_process(harness: Harness) -> str | None:
    for rollout, outputs in zip(harness.rollouts, probe(harness)["outputs"], strict=False):
        harness.new_case()
        harness.script.append("# run with PYTHONHASHSEED=0 and again with PYTHONHASHSEED=1:")
        env = harness.build()
        _require_same(canonical(env.reset(rollout.seed)), outputs[0])
        for action, output in zip(rollout.actions, outputs[1:], strict=False):
            _require_same(canonical(tuple(env.step(action))), output)
    return None


@check("unknown-argument", "An unknown constructor argument raises TypeError.", needs=("protocol",))
def unknown_argument(harness: Harness) -> str | None:
    env = harness.build()
    code = f"{env.name}.spawn(no_such_argument=1)"
    try:
        harness.call(code, env.env.spawn, no_such_argument=1, expected=TypeError)
    except TypeError:
        return None
    raise CheckFailed(f"{code} raises nothing")


def describe_import_cost(findings: Mapping[str, Any]) -> str:
    """Format the import costs that the other process measured.

    Raises:
        CheckFailed: `import gem` loaded a third-party package.
    """
    gem, env = findings["gem"], findings["env"]
    if gem["third_party"]:
        raise CheckFailed(f"import gem loads {', '.join(gem['third_party'])}")
    packages = ", ".join(env["third_party"]) or "no third-party package"
    return (
        f"import gem: {gem['modules']} modules, {gem['seconds']:.3f} s; this environment: {env['modules']} more, "
        f"{env['seconds']:.3f} s, with {packages}"
    )


def _require_same(here: str, there: str) -> None:
    if here != there:
        expected, got = repr_near_difference(here, there), repr_near_difference(there, here)
        raise CheckFailed(f"another process returns {got}, this one {expected}")


def _require_no_effects(action: str, printed: str, connections: list[str]) -> None:
    if printed:
        raise CheckFailed(f"{action} prints {short_repr(printed)}")
    if connections:
        raise CheckFailed(f"{action} connects to {', '.join(connections)}")


def probe(harness: Harness, *, growth_seconds: float = 0) -> Mapping[str, Any]:
    """Run side_effects.main() in another process and return its findings. Later calls return or raise the same.

    Args:
        growth_seconds: above 0, the process runs growth.measure() instead of replaying rollouts.

    Raises:
        Unchecked: the other process cannot build or play the environment.
    """
    if growth_seconds not in harness.probes:
        try:
            harness.probes[growth_seconds] = _run_probe(harness, growth_seconds)
        except Unchecked as e:
            harness.probes[growth_seconds] = e
    findings = harness.probes[growth_seconds]
    if isinstance(findings, Unchecked):
        raise findings
    return findings


def _run_probe(harness: Harness, growth_seconds: float) -> Mapping[str, Any]:
    target = harness.target
    if target.entry is None:
        raise Unchecked("another process cannot import it: it is defined in a function or in __main__")
    rollouts = [(rollout.seed, list(rollout.actions)) for rollout in harness.rollouts[:PROBE_ROLLOUTS]]
    env = target.build()
    env_id = getattr(env, "env_id", None)  # the entry point alone does not set it, and episodes depend on it
    env.close()
    if growth_seconds:
        longest = max([*harness.rollouts, *harness.long_rollouts], key=lambda rollout: len(rollout.actions))
        rollouts.append((longest.seed, list(longest.actions)))
    try:
        arguments = pickle.dumps((target.args, dict(target.kwargs)))
    except Exception as e:  # pickle raises whatever the arguments raise
        raise Unchecked(f"its arguments cannot be pickled: {type(e).__name__}: {e}") from e
    job = {"entry": target.entry, "arguments": arguments, "env_id": env_id}
    job |= {"rollouts": rollouts, "growth_seconds": growth_seconds}
    hash_seed = "1" if os.environ.get("PYTHONHASHSEED") == "0" else "0"
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    try:
        process = subprocess.run(
            [sys.executable, "-W", "ignore", str(Path(side_effects.__file__))],
            input=pickle.dumps(job),
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths},
            timeout=PROBE_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as e:
        raise Unchecked(f"another process timed out after {PROBE_TIMEOUT_S} s") from e
    if process.returncode != 0:
        last_line = process.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise Unchecked(f"another process could not play it: {' '.join(last_line)}")
    findings: dict[str, Any] = json.loads(process.stdout)
    return findings
