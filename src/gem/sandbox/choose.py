"""Which sandbox: by name, or the best that holds on this machine."""

from __future__ import annotations

import atexit
import inspect
import os
import threading
from collections.abc import Mapping
from typing import Any

from gem._internal.imports import resolve
from gem.errors import BadValue, UnknownArgument, did_you_mean
from gem.sandbox.base import Limits, Sandbox

# name → "module:class"; each class takes limits= and its own options by keyword.
BACKENDS = {
    "zygote": "gem.sandbox.zygote:ZygoteSandbox",
    "bubblewrap": "gem.sandbox.bubblewrap:BubblewrapSandbox",
    "docker": "gem.sandbox.container:DockerSandbox",
    "podman": "gem.sandbox.container:PodmanSandbox",
    "remote": "gem.sandbox.remote:RemoteSandbox",
    "subprocess": "gem.sandbox.subprocess_:SubprocessSandbox",
}
# sandbox_type= of the published interface → backend; other names mean themselves.
PUBLISHED_NAMES = {"none": "subprocess", "bwrap": "bubblewrap"}
_shared: dict[tuple[str, str], Sandbox] = {}
_lock = threading.Lock()


def backend_of(sandbox_type: str) -> str:
    """The backend that a sandbox_type of the published interface names. Raises BadValue for one that names none."""
    known = ["auto", *PUBLISHED_NAMES, *BACKENDS]
    if sandbox_type not in known:
        raise BadValue(f"no sandbox_type {sandbox_type!r}{did_you_mean(sandbox_type, known)}  ({', '.join(known)})")
    return PUBLISHED_NAMES.get(sandbox_type, sandbox_type)


def make_sandbox(backend: str = "auto", *, limits: Limits | None = None, **options: Any) -> Sandbox:
    """A sandbox of one's own, to be closed.

    Args:
        backend: "auto" is "zygote", the local one; or another of BACKENDS. "subprocess" contains nothing and has to be
            asked for by this name.
        limits: the defaults of every run. None is Limits().
        options: of the backend: ``level="ns" | "lsm" | "basic"`` and ``require="ns"`` of zygote, ``image=`` of the
            containers, ``url=`` of remote.

    GEM_SANDBOX_LEVEL is the level of zygote where none is asked for.

    Raises BadValue for an unknown backend or one without an option that it needs, UnknownArgument for an option that it
    does not have, SandboxError where the one asked for cannot hold what was asked, or is not
    installed.
    """
    name = "zygote" if backend == "auto" else backend
    if name not in BACKENDS:
        raise BadValue(
            f"no sandbox {backend!r}{did_you_mean(backend, BACKENDS)}  (there are: auto, {', '.join(BACKENDS)})"
        )
    if name == "zygote" and options.get("level", "auto") == "auto":
        options["level"] = os.environ.get("GEM_SANDBOX_LEVEL") or "auto"
    backend_class = resolve(BACKENDS[name])
    _check_options(name, backend_class, options)
    sandbox: Sandbox = backend_class(limits=limits or Limits(), **options)
    return sandbox


def _check_options(name: str, backend_class: Any, options: Mapping[str, Any]) -> None:
    parameters = dict(inspect.signature(backend_class).parameters)
    parameters.pop("limits")
    for option in options:
        if option not in parameters:
            takes = ", ".join(parameters) or "none"
            near = did_you_mean(option, parameters)
            raise UnknownArgument(f"the sandbox {name} has no option {option!r}{near}  (it takes: {takes})")
    required = [key for key, parameter in parameters.items() if parameter.default is parameter.empty]
    if missing := [key for key in required if key not in options]:
        raise BadValue(f"the sandbox {name} needs {missing[0]}=")


def get_sandbox(backend: str = "auto", *, level: str = "auto") -> Sandbox:
    """The sandbox that everything in this process shares: made when first asked for, closed at exit.

    One that was closed is made anew, and a forked process makes its own.

    level: of the zygote backend; GEM_SANDBOX_LEVEL stands for "auto" where it is set.
    """
    key = (backend, level)
    with _lock:
        if key not in _shared or _shared[key].closed:
            options: dict[str, Any] = {} if level == "auto" else {"level": level}
            _shared[key] = make_sandbox(backend, **options)
        return _shared[key]


@atexit.register
def _close_shared() -> None:
    while _shared:
        _shared.popitem()[1].close()


def _forget_shared() -> None:
    """In a forked process: the sandboxes are the parent's, and so was whoever held the lock."""
    global _lock
    _lock = threading.Lock()
    _shared.clear()


os.register_at_fork(after_in_child=_forget_shared)
