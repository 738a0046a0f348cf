"""Create sandboxes by name."""

from __future__ import annotations

import atexit
import inspect
import os
import sys
import threading
from collections.abc import Mapping
from typing import Any

from gem._internal.imports import resolve
from gem.errors import BadValue, SandboxError, UnknownArgument, did_you_mean
from gem.sandbox.base import Sandbox
from gem.sandbox.results import Limits

# Backend name → "module:class". Each class takes limits= and its own options as keyword arguments.
BACKENDS = {
    "zygote": "gem.sandbox.forkserver:ZygoteSandbox",
    "bubblewrap": "gem.sandbox.command.bubblewrap:BubblewrapSandbox",
    "docker": "gem.sandbox.containers.sandbox:DockerSandbox",
    "podman": "gem.sandbox.containers.sandbox:PodmanSandbox",
    "remote": "gem.sandbox.remote.client:RemoteSandbox",
    "subprocess": "gem.sandbox.command.subprocess_:SubprocessSandbox",
}
# sandbox_type= of the published interface → backend name. All other sandbox types are named like the backend.
PUBLISHED_NAMES = {"none": "subprocess", "bwrap": "bubblewrap"}
_shared: dict[tuple[str, str], Sandbox] = {}
_lock = threading.Lock()


def backend_of_published_name(sandbox_type: str) -> str:
    """Convert a sandbox_type of the published interface to a backend name; "auto" is returned unchanged.

    Raises:
        BadValue: if there is no such sandbox_type.
    """
    known = ["auto", *PUBLISHED_NAMES, *BACKENDS]
    if sandbox_type not in known:
        raise BadValue(f"no sandbox_type {sandbox_type!r}{did_you_mean(sandbox_type, known)}  ({', '.join(known)})")
    return PUBLISHED_NAMES.get(sandbox_type, sandbox_type)


def make_sandbox(backend: str = "auto", *, limits: Limits | None = None, **options: Any) -> Sandbox:
    """Create a sandbox. The caller is responsible for closing the sandbox.

    Args:
        backend: a name in BACKENDS; "auto" means "zygote", the local sandbox. "subprocess" does not isolate programs
            and is only used if named explicitly.
        limits: default limits of every run. None means Limits().
        options: options of the backend, for example ``level="ns" | "lsm" | "basic"`` and ``require="ns"`` for zygote,
            ``image=`` for docker and podman, ``url=`` for remote. Without ``level``, zygote uses GEM_SANDBOX_LEVEL, or
            the highest level that isolates programs on this machine.

    Raises:
        BadValue: if the backend is unknown or a required option is missing.
        UnknownArgument: if the backend has no such option.
        SandboxError: if the backend is not installed, or the level is not available. If no level isolates programs on
            this machine, the message lists what to do; level "basic" is used only if it is named.
    """
    name = "zygote" if backend == "auto" else backend
    if name not in BACKENDS:
        raise BadValue(
            f"no sandbox {backend!r}{did_you_mean(backend, BACKENDS)}  (available: auto, {', '.join(BACKENDS)})"
        )
    if name == "zygote" and sys.platform == "win32":
        raise SandboxError(
            'the local sandbox requires Linux; use make_sandbox("docker"), "podman" or "remote". '
            "GEM_SANDBOX_LEVEL=basic, without isolation, works only on Linux and macOS"
        )
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
            raise UnknownArgument(f"sandbox {name!r} has no option {option!r}{near}  (options: {takes})")
    required = [key for key, parameter in parameters.items() if parameter.default is parameter.empty]
    if missing := [key for key in required if key not in options]:
        raise BadValue(f"sandbox {name!r} requires the option {missing[0]}=")


def get_sandbox(backend: str = "auto", *, level: str = "auto") -> Sandbox:
    """Return the sandbox of this process for the given backend and level, creating the sandbox on first use.

    The sandbox is shared by all callers and closed at exit. If the sandbox was closed earlier, a new one is created. A
    forked process creates its own sandbox.

    Args:
        backend: see make_sandbox.
        level: level of the zygote backend; see make_sandbox.

    Raises:
        BadValue, SandboxError: see make_sandbox.
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
    """Reset the state of a forked process. Its parent owns the sandboxes, and a parent thread may hold the lock."""
    global _lock
    _lock = threading.Lock()
    _shared.clear()


os.register_at_fork(after_in_child=_forget_shared)
