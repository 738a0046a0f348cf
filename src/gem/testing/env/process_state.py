"""Settings of the process, which an environment must not change: ProcessState; and a clock that is moved forward."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import functools
import gc
import locale
import logging
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

from gem._internal.text import short_repr

CLOCK_SHIFT = datetime.timedelta(days=400, hours=11, minutes=17)


class ProcessState:
    """A snapshot of the settings of the process. Its attribute ``values`` maps the name of a setting to its value."""

    def __init__(self) -> None:
        self.values = {name: read() for name, (read, _) in _settings().items()}

    def restore(self) -> None:
        for name, (read, write) in _settings().items():
            if read() != self.values[name]:
                write(self.values[name])

    def changes(self) -> Iterator[str]:
        """Describe the settings that have changed since the snapshot, each with both values."""
        for name, now in ProcessState().values.items():
            before = self.values[name]
            if now == before:
                continue
            if isinstance(now, dict):
                key = next(key for key in {**before, **now} if before.get(key) != now.get(key))
                name, before, now = f"{name} ({key})", before.get(key), now.get(key)
            yield f"{name} from {short_repr(before)} to {short_repr(now)}"


Setting = tuple[Callable[[], Any], Callable[[Any], object]]  # (read, write)


def _settings() -> dict[str, Setting]:
    import numpy

    return {
        "the working directory": (os.getcwd, os.chdir),
        "environment variables": (lambda: dict(os.environ), _write_environment),
        "signal handlers": (_read_signal_handlers, _write_signal_handlers),
        "the recursion limit": (sys.getrecursionlimit, sys.setrecursionlimit),
        **{f"sys.{name}": _attribute(sys, name) for name in ("stdin", "stdout", "stderr")},
        "warnings.showwarning": _attribute(warnings, "showwarning"),
        "sys.path": (lambda: list(sys.path), lambda paths: sys.path.__setitem__(slice(None), paths)),
        "numpy's error state": (numpy.geterr, lambda state: numpy.seterr(**state)),
        "numpy's print options": (numpy.get_printoptions, lambda options: numpy.set_printoptions(**options)),
        "warnings filters": (lambda: list(warnings.filters), _write_warnings_filters),
        "the root logger": (_read_root_logger, _write_root_logger),
        "the umask": (_read_umask, os.umask),
        "the locale": (lambda: locale.setlocale(locale.LC_ALL), lambda name: locale.setlocale(locale.LC_ALL, name)),
        "the decimal precision": (lambda: decimal.getcontext().prec, _write_decimal_precision),
        "the default timeout of sockets": (socket.getdefaulttimeout, socket.setdefaulttimeout),
        "garbage collection": (gc.isenabled, lambda enabled: gc.enable() if enabled else gc.disable()),
    }


def _attribute(module: ModuleType, name: str) -> Setting:
    return functools.partial(getattr, module, name), functools.partial(setattr, module, name)


def _write_environment(variables: dict[str, str]) -> None:
    for name in [name for name in os.environ if name not in variables]:
        del os.environ[name]
    os.environ.update(variables)


def _read_signal_handlers() -> dict[str, Any]:
    return {signal.Signals(number).name: signal.getsignal(number) for number in signal.Signals}


def _write_signal_handlers(handlers: dict[str, Any]) -> None:
    if threading.current_thread() is threading.main_thread():
        for name, handler in handlers.items():
            if handler is not None and signal.getsignal(signal.Signals[name]) != handler:
                signal.signal(signal.Signals[name], handler)


def _write_warnings_filters(filters: list[Any]) -> None:
    warnings.filters[:] = filters  # type: ignore[index]
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # invalidates the registries of warnings that were shown once


def _read_root_logger() -> dict[str, Any]:
    root = logging.getLogger()
    lists = {"handlers": list(root.handlers), "filters": list(root.filters)}
    return {"level": root.level, "disabled level": root.manager.disable, **lists}


def _write_root_logger(values: dict[str, Any]) -> None:
    root = logging.getLogger()
    root.setLevel(values["level"])
    root.handlers[:], root.filters[:] = values["handlers"], values["filters"]
    logging.disable(values["disabled level"])


def _read_umask() -> int:
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def _write_decimal_precision(precision: int) -> None:
    decimal.getcontext().prec = precision


@contextlib.contextmanager
def shifted_clock(modules: Iterable[ModuleType]) -> Iterator[None]:
    """Move the clock of ``time`` and ``datetime`` forward by CLOCK_SHIFT, also for names that the modules imported.

    Clocks that measure durations, such as time.monotonic(), are not moved.
    """
    fakes = _shifted_functions()
    places = {id(module): vars(module) for module in (time, datetime, *modules)}.values()
    changed = [(names, name, value) for names in places for name, value in names.items() if id(value) in fakes]
    try:
        for names, name, value in changed:
            names[name] = fakes[id(value)]
        yield
    finally:
        for names, name, value in changed:
            names[name] = value


def _shifted_functions() -> dict[int, Any]:
    """Return the replacements of clock functions and classes, by the id of the original."""
    seconds, time_ns, now = CLOCK_SHIFT.total_seconds(), time.time_ns, time.time
    formats = {name: getattr(time, name) for name in ("localtime", "gmtime", "ctime")}

    class SameInstances(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, cls.__mro__[1])

    class Date(datetime.date, metaclass=SameInstances):
        @classmethod
        def today(cls) -> Any:
            return cls.__mro__[1].today() + CLOCK_SHIFT  # type: ignore[attr-defined]

    class DateTime(datetime.datetime, metaclass=SameInstances):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return cls.__mro__[1].now(tz) + CLOCK_SHIFT  # type: ignore[attr-defined]

        @classmethod
        def utcnow(cls) -> Any:
            return cls.now(datetime.timezone.utc).replace(tzinfo=None)

        @classmethod
        def today(cls) -> Any:
            return cls.now()

    fakes: dict[Any, Any] = {
        time.time: lambda: now() + seconds,
        time.time_ns: lambda: time_ns() + int(seconds * 1e9),
        time.strftime: lambda form, *when, real=time.strftime: real(form, *(when or (time.localtime(),))),
        time.asctime: lambda *when, real=time.asctime: real(*(when or (time.localtime(),))),
        datetime.date: Date,
        datetime.datetime: DateTime,
    }
    for name, real in formats.items():
        fakes[getattr(time, name)] = lambda at=None, real=real: real(now() + seconds if at is None else at)
    return {id(original): fake for original, fake in fakes.items()}
