"""Building an environment: what it does to the process, what it costs, and whether another process plays alike."""

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
from gem.testing import watch
from gem.testing.lab import Broken, Lab, Unchecked
from gem.testing.plain import around, canonical
from gem.testing.promise import promise

CHILD_SECONDS = 120
CHILD_PLAYS = 5


@promise("construction", "Building it prints nothing, opens no connection and draws no global randomness.", needs=())
def construction(lab: Lab) -> str | None:
    streams = watch.GlobalStreams()
    with watch.watch() as seen:
        try:
            lab.fresh()
        except Broken as e:
            if not seen.connections:
                raise Unchecked(e.what) from e  # the check "protocol" reports it
    _quiet("building it", seen.printed.getvalue(), seen.connections)
    if stream := streams.moved():
        raise Broken(f"building it draws from the global stream {stream}, or seeds it")
    return None


@promise(
    "import",
    "Importing it prints nothing and opens no connection; gem itself imports no package.",
    needs=("construction", "protocol"),
)
def imports(lab: Lab) -> str | None:
    found = _child(lab)
    _quiet("importing it", found["printed"], found["connections"])
    return judge_cost(found)


@promise(
    "other-process", "Another process, with another hash seed, plays the same episodes.", needs=("seed-determinism",)
)
def other_process(lab: Lab) -> str | None:
    for play, told in zip(lab.plays, _child(lab)["told"], strict=False):
        lab.scene()
        lab.script.append("# in a process with PYTHONHASHSEED=0 and in one with PYTHONHASHSEED=1:")
        player = lab.fresh()
        _same(canonical(player.reset(play.seed)), told[0])
        for action, there in zip(play.actions, told[1:], strict=False):
            _same(canonical(tuple(player.step(action))), there)
    return None


def _same(here: str, there: str) -> None:
    if here != there:
        raise Broken(f"another process answers {around(there, here)}, this one {around(here, there)}")


@promise("unknown-argument", "A misspelt constructor argument is a TypeError.")
def unknown_argument(lab: Lab) -> str | None:
    player = lab.fresh()
    code = f"{player.name}.spawn(no_such_argument=1)"
    try:
        lab.call(code, player.env.spawn, no_such_argument=1, passes=TypeError)
    except TypeError:
        return None
    raise Broken(f"{code} is accepted")


def judge_cost(found: Mapping[str, Any]) -> str:
    """What the child process measured, in words. Raises Broken when `import gem` loaded what it should not."""
    gem, env = found["gem"], found["env"]
    if gem["third_party"]:
        raise Broken(f"import gem loads {', '.join(gem['third_party'])}")
    brings = ", ".join(env["third_party"]) or "no other package"
    return (
        f"import gem: {gem['modules']} modules, {gem['seconds']:.3f} s; this environment: {env['modules']} more, "
        f"{env['seconds']:.3f} s, with {brings}"
    )


def _quiet(doing: str, printed: str, connections: list[str]) -> None:
    if printed:
        raise Broken(f"{doing} prints {short_repr(printed)}")
    if connections:
        raise Broken(f"{doing} connects to {', '.join(connections)}")


def _child(lab: Lab) -> Mapping[str, Any]:
    """What a process of its own found, once per lab. Raises Unchecked where it cannot build the environment."""
    if lab.child is None:
        lab.child = _run_child(lab)
    return lab.child


def _run_child(lab: Lab) -> Mapping[str, Any]:
    subject = lab.subject
    if subject.entry is None:
        raise Unchecked("another process could not import it: it is local to a function, or defined in __main__")
    plays = [(play.seed, list(play.actions)) for play in lab.plays[:CHILD_PLAYS]]
    try:
        arguments = pickle.dumps((subject.args, dict(subject.kwargs)))
    except Exception as e:  # pickle raises what the arguments raise
        raise Unchecked(f"its arguments cannot be sent to another process: {type(e).__name__}: {e}") from e
    hash_seed = "1" if os.environ.get("PYTHONHASHSEED") == "0" else "0"
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    try:
        done = subprocess.run(
            [sys.executable, str(Path(watch.__file__))],
            input=pickle.dumps({"entry": subject.entry, "arguments": arguments, "plays": plays}),
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths},
            timeout=CHILD_SECONDS,
        )
    except subprocess.TimeoutExpired as e:
        raise Unchecked(f"another process took over {CHILD_SECONDS} s") from e
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise Unchecked(f"another process could not play it: {' '.join(last)}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
