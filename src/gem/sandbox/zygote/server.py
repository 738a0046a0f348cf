"""The fork server: a process with preloaded libraries that forks a child for each run.

The server is single-threaded, so that forking is safe, and imports no part of gem except this package. Its parent
process waits for the server to exit and then cleans up, even if the server was killed. The server and all its runs end
when the host closes its end of the control socket; the kernel closes the socket if the host dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import json
import math
import os
import resource
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from gem.sandbox.zygote import linux, procfs
from gem.sandbox.zygote.lockdown import ON_LINUX, BasicLevel, LsmLevel
from gem.sandbox.zygote.monitor import RunMonitor
from gem.sandbox.zygote.namespaces import NamespaceLevel
from gem.sandbox.zygote.program import FLUSH, install_flush_handler
from gem.sandbox.zygote.protocol import MAX_FDS, REQUEST_BYTES, RunRequest, ServerSettings, read_job
from gem.sandbox.zygote.warmup import warm_up

LEVELS: dict[str, Callable[[ServerSettings], BasicLevel | NamespaceLevel]] = {
    "ns": NamespaceLevel,
    "lsm": LsmLevel,
    "basic": BasicLevel,
}
ENTRIES = {
    "program": "gem.sandbox.zygote.program",
    "exec": "gem.sandbox.zygote.command",
    "tests": "gem.sandbox.zygote.batch_driver",
    "session": "gem.sandbox.zygote.cells",
}
WITH_INIT = ("exec",)  # many signals do not kill process 1, so a command must not be process 1
FLUSH_S = 0.02  # time for a program that timed out to flush its streams
FAILED = 125  # exit code of a child that could not start its program


def main(control_fd: int, settings: ServerSettings) -> NoReturn:
    """Run the fork server until the host closes the control socket. If setup fails, send the reason to the host."""
    control = socket.socket(fileno=control_fd)
    level = LEVELS[settings.level](settings)
    pid = 0
    try:
        for name in ENTRIES.values():
            importlib.import_module(name)  # the folder of this package may not be readable later
        _raise_descriptor_limit()
        os.environ.pop("LD_BIND_NOW", None)  # intended only for this process, not for programs
        os.environ.update(PATH=settings.path, HOME="/", LANG="C.UTF-8", LC_ALL="C.UTF-8")
        os.umask(0o022)
        level.isolate_server()
        pid = os.fork()
        if pid == 0:
            level.set_up()
            _serve(control, level, settings)
        control.close()
        _wait_for(pid)
    except BaseException as e:
        with contextlib.suppress(OSError):
            _send(control, failed=f"{type(e).__name__}: {e}")
    finally:
        if pid:
            level.clean_up()
        os._exit(0)


def _raise_descriptor_limit() -> None:
    """Raise the soft limit on descriptors to the hard limit, because the server holds one descriptor per run."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _wait_for(server: int) -> None:
    while True:
        try:
            if os.wait()[0] == server:
                return
        except ChildProcessError:
            return


def _serve(control: socket.socket, level: BasicLevel | NamespaceLevel, settings: ServerSettings) -> NoReturn:
    server = Server(control, level)
    _send(control, ready=level.base)
    try:
        server.serve()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for run in list(server.runs.values()):
            server.kill(run)
        level.clean_up()
        os._exit(0)


def load(modules: Iterable[str]) -> None:
    """Import modules, warm up, and freeze all objects so that garbage collection in children skips them."""
    for name in modules:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    sys.dont_write_bytecode = True
    install_flush_handler()
    warm_up()
    gc.collect()
    gc.freeze()


def _send(where: socket.socket, **message: Any) -> None:
    where.sendall(json.dumps(message).encode() + b"\n")


@dataclass(eq=False)
class Run:
    """A run in progress.

    Args:
        init: id of process 1 of the run if that is not the program, else None.
        why: the Status for which the run is being killed; None if no reason is known.
        killed_at: time.monotonic() at which a run that was signaled to flush its streams is killed; infinite otherwise.
    """

    pid: int
    init: int | None
    channel: socket.socket
    folder: str
    monitor: RunMonitor
    why: str | None = None
    killed_at: float = math.inf


class Server:
    """Forks runs when the host requests them, monitors the runs, and reports how they ended."""

    def __init__(self, control: socket.socket, level: BasicLevel | NamespaceLevel) -> None:
        self.control, self.level = control, level
        self.loaded = False
        self.runs: dict[int, Run] = {}
        self.next_check = math.inf  # value of time.monotonic()
        self.selector = selectors.DefaultSelector()
        self.selector.register(control, selectors.EVENT_READ)
        self.woken, waker = socket.socketpair()
        for end in (self.woken, waker):
            end.setblocking(False)
        self.selector.register(self.woken, selectors.EVENT_READ)
        self.waker = waker
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, _stop)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)

    def serve(self) -> None:
        """Handle requests and monitor runs until the host closes the control socket."""
        while True:
            for key, _ in self.selector.select(self._poll_timeout()):
                if key.fileobj is self.control:
                    if not self._accept():
                        return
                elif key.fileobj is self.woken:
                    self._reap()
                elif isinstance(key.data, Run) and key.data.pid in self.runs:
                    self._receive(key.data)
            self._check_runs()

    # ---- starting

    def _accept(self) -> bool:
        """Receive a request and start the run. Returns False if the host closed the control socket."""
        try:
            data, fds, _, _ = socket.recv_fds(self.control, REQUEST_BYTES, MAX_FDS)
        except ConnectionError:
            return False
        if not data:
            return False
        channel = socket.socket(fileno=fds.pop(0))
        try:
            self._start(RunRequest.of(data), channel, fds)
        except OSError as e:
            with contextlib.suppress(OSError):
                _send(channel, failed=f"the fork server could not start a run: {e}")
            channel.close()
        finally:
            for fd in fds:
                os.close(fd)
        return True

    def _load_once(self) -> None:
        if not self.loaded:
            self.loaded = True
            load(self.level.settings.modules)
            self.level.prepare()
            # Computed here, because iterating over sys.modules in a child copies pages. The modules are referenced here
            # so that children do not free them.
            self.own_modules = {name: found for name, found in sys.modules.items() if name.partition(".")[0] == "gem"}

    def _start(self, request: RunRequest, channel: socket.socket, fds: list[int]) -> None:
        self._load_once()
        with contextlib.suppress(OSError):  # the host may have died
            _send(channel, started=True)
        folder = self.level.new_folder()
        try:
            pid, init = self.level.fork(with_init=request.entry in WITH_INIT)
        except OSError:
            self.level.clear(folder)
            raise
        if pid == 0:
            self._become_program(request, channel.fileno(), fds, folder)
        run = self.runs[pid] = Run(pid, init, channel, folder, RunMonitor(request, folder))
        self.next_check = min(self.next_check, run.monitor.due)
        self.selector.register(channel, selectors.EVENT_READ, run)

    def _become_program(self, request: RunRequest, report: int, fds: list[int], folder: str) -> NoReturn:
        """Isolate this child process and run the entry. Errors before the entry runs are reported as setup failures."""
        try:
            signal.set_wakeup_fd(-1)
            for signum in (signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(signum, signal.SIG_DFL)
            job, *given = fds
            options, files = read_job(job)
            report = _rearranged(given, report)
            self.level.isolate(request, folder, files)
            run = sys.modules[ENTRIES[request.entry]].run
            for name in self.own_modules:  # a program that imports gem must get the complete package
                del sys.modules[name]
            os.close(report)
        except BaseException as e:
            os.write(report, json.dumps({"failed": f"{type(e).__name__}: {e}"}).encode() + b"\n")
            os._exit(FAILED)
        try:
            run(options, range(len(given)))
        finally:
            os._exit(FAILED)

    # ---- ending

    def _receive(self, run: Run) -> None:
        """Read the host's reason for killing a run, and end the run. Closing the socket gives no reason."""
        try:
            why = run.channel.recv(64)
        except ConnectionError:
            why = b""
        if not why:
            self.selector.unregister(run.channel)
        self.end(run, why.decode() or None)

    def end(self, run: Run, why: str | None) -> None:
        """Kill a run. If the reason is a timeout, first signal the program to flush its streams, and kill it later."""
        run.why = run.why or why
        if why == "timeout" and FLUSH and run.monitor.request.entry not in WITH_INIT and run.killed_at == math.inf:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(run.pid, FLUSH)
            run.killed_at = time.monotonic() + FLUSH_S
            self.next_check = min(self.next_check, run.killed_at)
        else:
            self.kill(run)

    def kill(self, run: Run) -> None:
        self.level.kill(run.init or run.pid)

    def _reap(self) -> None:
        """Reap all processes that have ended."""
        with contextlib.suppress(BlockingIOError):
            self.woken.recv(4096)
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid in self.runs:
                    self._finish(self.runs[pid], status, usage)
        if self.level.settings.level != "ns":
            self._kill_orphans()

    def _finish(self, run: Run, status: int, usage: resource.struct_rusage) -> None:
        """Kill the remaining processes of a run whose program has ended, remove its files, and report its exit."""
        self.level.kill(run.init or run.pid)
        cpu_s = usage.ru_utime + usage.ru_stime + self._reap_rest(run)
        self.level.clear(run.folder)
        del self.runs[run.pid]
        code = os.waitstatus_to_exitcode(status)
        if code == -signal.SIGSYS:
            code = -signal.SIGKILL  # the seccomp filter ends process 1 with SIGSYS if it sends itself SIGKILL
        with contextlib.suppress(KeyError):
            self.selector.unregister(run.channel)
        with contextlib.suppress(OSError):
            peak = usage.ru_maxrss * (1024 if ON_LINUX else 1)
            _send(run.channel, ended={"code": code, "cpu_s": cpu_s, "max_rss_bytes": peak, "why": run.why})
        run.channel.close()

    def _reap_rest(self, run: Run) -> float:
        """Wait for the remaining processes of a killed run and return their CPU seconds."""
        cpu_s = 0.0
        with contextlib.suppress(ChildProcessError):
            while True:
                _, _, usage = os.wait4(run.init or -run.pid, 0)
                cpu_s += usage.ru_utime + usage.ru_stime
        return cpu_s

    def _kill_orphans(self) -> None:
        """Kill orphaned processes that left the process group of their run."""
        for pid in set(procfs.children(os.getpid())) - set(self.runs):
            found = procfs.process(pid)
            if found is not None and found.group not in self.runs:
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)

    # ---- monitoring

    def _check_runs(self) -> None:
        """Kill runs that exceed a limit, and runs whose time to flush has passed."""
        now = time.monotonic()
        if now < self.next_check:
            return
        due = [run for run in self.runs.values() if run.monitor.due <= now and run.why is None]
        orphans = list(map(procfs.process, set(procfs.children(os.getpid())) - set(self.runs))) if due else []
        for run in due:
            adopted = [p.pid for p in orphans if p is not None and p.group == run.pid]
            run.monitor.roots = [run.pid, *adopted] if run.init is None else [run.pid, run.init]
            why = run.monitor.check(len(self.runs))
            if why is not None:
                self.end(run, why)
        for run in self.runs.values():
            if run.killed_at <= now:
                run.killed_at = math.inf
                self.kill(run)
        times = (run.monitor.due if run.why is None else run.killed_at for run in self.runs.values())
        self.next_check = min(times, default=math.inf)

    def _poll_timeout(self) -> float | None:
        """Return the seconds until the next check of a run, or None if no check is scheduled."""
        return None if self.next_check == math.inf else max(0.0, self.next_check - time.monotonic())


def _rearranged(given: list[int], report: int) -> int:
    """Renumber ``given`` and then ``report`` from 0, and close all others. Returns the number of ``report``."""
    above = len(given) + 64
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above) for fd in (*given, report)]
    for number, fd in enumerate(high):
        os.dup2(fd, number, inheritable=number < 3)
    linux.close_from(len(high))
    return len(given)


def _stop(*_: object) -> NoReturn:
    raise SystemExit
