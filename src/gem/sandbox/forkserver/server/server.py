"""The fork server: a process with preloaded libraries that forks a child for each run.

The server is single-threaded, so that forking is safe, and imports no part of gem except this package. Its parent
process waits for the server to exit and then cleans up, even if the server was killed. The server and all its runs end
when the host closes its end of the control socket; the kernel closes the socket if the host dies.
"""

from __future__ import annotations

import contextlib
import errno
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

from gem.sandbox.forkserver import linux
from gem.sandbox.forkserver.entry import case_runner
from gem.sandbox.forkserver.entry.program import FLUSH, install_flush_handler, prelude
from gem.sandbox.forkserver.isolation.lockdown import ON_LINUX, BasicLevel, LsmLevel
from gem.sandbox.forkserver.isolation.namespaces import NamespaceLevel
from gem.sandbox.forkserver.limits import monitor, processes
from gem.sandbox.forkserver.limits.cgroup import Cgroup, Groups, open_groups
from gem.sandbox.forkserver.limits.monitor import RunMonitor
from gem.sandbox.forkserver.protocol import IDLE_S, MAX_FDS, REQUEST_BYTES, RunRequest, ServerSettings, read_job
from gem.sandbox.forkserver.server.warmup import warm_up

LEVELS: dict[str, Callable[[ServerSettings], BasicLevel | NamespaceLevel]] = {
    "ns": NamespaceLevel,
    "lsm": LsmLevel,
    "basic": BasicLevel,
}
ENTRIES = {  # entry → module and function
    "program": ("gem.sandbox.forkserver.entry.program", "run"),
    "exec": ("gem.sandbox.forkserver.entry.program", "run_command"),
    "tests": ("gem.sandbox.forkserver.entry.case_runner", "run"),
    "session": ("gem.sandbox.forkserver.entry.cells", "run"),
    "machine": ("gem.sandbox.forkserver.entry.machine_init", "run"),
}
WITH_INIT = ("exec",)  # many signals do not kill process 1, so a command must not be process 1
FLUSH_S = 0.02  # time for a program that timed out to flush its streams
MORE_TASKS = 1  # tasks of gem itself in the cgroup of a run
FAILED = 125  # exit code of a child that could not start its program


def main(control_fd: int, settings: ServerSettings) -> NoReturn:
    """Run the fork server until the host closes the control socket. If setup fails, send the reason to the host."""
    control = socket.socket(fileno=control_fd)
    level = LEVELS[settings.level](settings)
    pid, groups = 0, None
    try:
        for name, _ in ENTRIES.values():
            importlib.import_module(name)  # the folder of this package is hidden later
        _raise_descriptor_limit()
        os.environ.pop("LD_BIND_NOW", None)  # intended only for this process, not for programs
        os.environ.update(PATH=settings.path, HOME="/", LANG="C.UTF-8", LC_ALL="C.UTF-8")
        os.umask(0o022)
        if settings.cgroups and ON_LINUX:
            groups = open_groups()  # as descriptors: no folder of cgroups is left to programs (183_change_the_cgroup)
            linux.allow_out_of_memory_kills()
        level.isolate_server()
        pid = os.fork()
        if pid == 0:
            level.set_up()
            _serve(control, level, groups)
        control.close()
        _wait_for(pid)
    except BaseException as e:
        _send(control, **failure(e))
    finally:
        if pid:
            level.clean_up()
        if groups:
            groups.remove()
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


def _serve(control: socket.socket, level: BasicLevel | NamespaceLevel, groups: Groups | None) -> NoReturn:
    server = Server(control, level, groups)
    _send(control, ready=level.base)
    try:
        server.serve()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the parent may have died as well; nothing may stay behind
        for run in list(server.runs.values()):  # the host has died, or has closed the sandbox
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
    prelude()
    gc.collect()
    gc.freeze()


def _send(where: socket.socket, **message: Any) -> None:
    """Send a message to the host. If the host has died, the server learns that by reading."""
    with contextlib.suppress(OSError):
        where.sendall(json.dumps(message).encode() + b"\n")


def failure(error: BaseException) -> dict[str, Any]:
    """Describe an error of the setup for the host: a text, and errno and the failed call if the kernel refused it."""
    call = getattr(error, "filename", None)
    return {
        "failed": f"{type(error).__name__}: {error}",
        "errno": getattr(error, "errno", None),
        "call": None if call is None else str(call),
    }


@dataclass(eq=False)
class Run:
    """A run in progress.

    Args:
        init: id of process 1 of the run if that is not the program, else None.
        why: the Status for which the run is being killed; None if no reason is known.
        killed_at: time.monotonic() at which a run that was signaled to flush its streams is killed; infinite otherwise.
        stopped_at: time.monotonic() at which the processes of an idle run are stopped; infinite otherwise.
        stopped: ids of the processes that were stopped because the run is idle; None while it may run.
        received: the part of a word that the host has sent so far.
        cells: number of cells that have started.
        user: user id of the run; None if it is that of the server.
        group: None if no cgroup can be made.
    """

    pid: int
    init: int | None
    channel: socket.socket
    folder: str
    monitor: RunMonitor
    why: str | None = None
    killed_at: float = math.inf
    stopped_at: float = math.inf
    stopped: list[int] | None = None
    received: bytes = b""
    cells: int = 0
    user: int | None = None
    group: Cgroup | None = None


class Server:
    """Forks runs when the host requests them, monitors the runs, and reports how they ended."""

    def __init__(self, control: socket.socket, level: BasicLevel | NamespaceLevel, groups: Groups | None) -> None:
        self.control, self.level, self.groups = control, level, groups
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
            data, fds, flags, _ = socket.recv_fds(self.control, REQUEST_BYTES, MAX_FDS)
        except ConnectionError:
            return False
        if not data:
            return False
        if not fds:  # no room for any; the host sees that the socket of the run is closed
            return True
        channel = socket.socket(fileno=fds.pop(0))
        try:
            if flags & socket.MSG_CTRUNC:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), "recvmsg")
            self._start(RunRequest.of(data), channel, fds)
        except Exception as e:
            _send(channel, **failure(e))
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
        _send(channel, started=True)
        group = None
        if self.groups:
            # Files may be in memory, so their limit is added. RLIMIT_NPROC is exact where each run has its own user.
            tasks = request.processes + MORE_TASKS
            group = self.groups.take(memory_bytes=request.memory_bytes + request.disk_bytes, tasks=tasks)
        user, folder = None, ""
        try:
            user = self.level.users.take() if self.level.users else None
            folder = self.level.new_folder()
            pid, init = self.level.fork(with_init=request.entry in WITH_INIT)
        except OSError:
            self._release(folder, user, group)
            raise
        if pid == 0:
            self._become_program(request, channel.fileno(), fds, folder, user, group)
        watch = RunMonitor(request, pid, folder, group, sees_files=self.level.sees_files)
        if request.entry == monitor.TESTS:  # a new test has this socket until it closes the descriptors of its runner
            watch.own_socket = os.fstat(fds[1 + case_runner.CHANNEL]).st_ino
        run = self.runs[pid] = Run(pid, init, channel, folder, watch, user=user, group=group)
        self.next_check = min(self.next_check, run.monitor.due)
        self.selector.register(channel, selectors.EVENT_READ, run)

    def _release(self, folder: str, user: int | None, group: Cgroup | None) -> None:
        """Remove the files of a run whose processes have ended, and make its user and cgroup available to others."""
        if folder:
            self.level.clear(folder, user)
        if self.level.users and user is not None:
            self.level.users.give_back(user)
        if self.groups and group:
            with contextlib.suppress(OSError):  # the group may have been removed by others
                self.groups.give_back(group)

    def _become_program(
        self, request: RunRequest, report: int, fds: list[int], folder: str, user: int | None, group: Cgroup | None
    ) -> NoReturn:
        """Isolate this child process and run the entry. Errors before the entry runs are reported as setup failures."""
        try:
            signal.set_wakeup_fd(-1)
            for signum in (signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(signum, signal.SIG_DFL)
            job, *given = fds
            if group:
                group.enter()  # before the folders of cgroups are out of reach
                if request.entry == monitor.TESTS and (usage := group.open_usage()) and (events := group.open_events()):
                    given += usage, events
            options, files = read_job(job)
            report = _rearranged(given, report)
            self.level.isolate(request, folder, files, user)
            module, function = ENTRIES[request.entry]
            run = getattr(sys.modules[module], function)
            for name in self.own_modules:  # a program that imports gem must get the complete package
                del sys.modules[name]
            os.close(report)  # a program could report that it failed to start: an error instead of a wrong answer
        except BaseException as e:
            os.write(report, json.dumps(failure(e)).encode() + b"\n")
            os._exit(FAILED)
        try:
            run(options, range(len(given)))
        finally:
            os._exit(FAILED)  # never return into the loop of the server

    # ---- words of the host

    def _receive(self, run: Run) -> None:
        """Read what the host says about a run; see protocol.py. Closing the socket ends the run."""
        try:
            part = run.channel.recv(4096)
        except ConnectionError:
            part = b""
        if not part:
            self.selector.unregister(run.channel)
            self.end(run, None)
        *lines, run.received = (run.received + part).split(b"\n")
        for line in lines:
            word, _, argument = line.decode().partition(" ")
            if word == "kill":
                self.end(run, argument)
            elif word == "busy":
                self._continue(run)
                run.cells += 1
                run.monitor.allow(float(argument))
                self.next_check = min(self.next_check, run.monitor.due)
            elif word == "idle":
                run.stopped_at = time.monotonic() + IDLE_S
                self.next_check = min(self.next_check, run.stopped_at)
            elif word in ("interrupt", "kill-children"):
                (self._interrupt if word == "interrupt" else self._kill_children)(run)
                _send(run.channel, done=word)

    def _continue(self, run: Run) -> None:
        run.stopped_at = math.inf
        if run.group and run.group.frozen:
            run.group.thaw()
        elif run.stopped is not None:
            processes.resume(run.stopped)
            run.stopped = None

    def _stop_idle(self, run: Run) -> None:
        """Stop the processes of an idle run, so that what a cell has left behind does not compute between cells."""
        run.stopped_at = math.inf
        run.monitor.due = math.inf
        if run.group and "freeze" in run.group.holds:
            run.group.freeze()
        else:
            self._find_roots([run])
            run.stopped = processes.stop(run.monitor.roots)

    def _interrupt(self, run: Run) -> None:
        """Interrupt the program and the commands that it waits for."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(run.pid, signal.SIGINT)

    def _kill_children(self, run: Run) -> None:
        if run.group:
            os.kill(run.pid, signal.SIGSTOP)  # so that it does not fork meanwhile
            run.group.wait_until_empty(but=run.pid)
            os.kill(run.pid, signal.SIGCONT)
        else:
            self._find_roots([run])
            processes.kill_all(run.monitor.roots, but=run.pid)

    # ---- ending

    def end(self, run: Run, why: str | None) -> None:
        """Kill a run. If the reason is a timeout, first signal the program to flush its streams, and kill it later."""
        run.why = run.why or why
        if why == "timeout" and FLUSH and run.monitor.request.entry not in WITH_INIT and run.killed_at == math.inf:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(run.pid, FLUSH)  # ignoring it wins FLUSH_S at most (10_sleeps_with_signals_blocked)
            run.killed_at = time.monotonic() + FLUSH_S
            self.next_check = min(self.next_check, run.killed_at)
        else:
            self.kill(run)

    def kill(self, run: Run) -> None:
        self.level.kill(run.init or run.pid)
        if run.group:
            with contextlib.suppress(OSError):  # the group may have been removed by others
                run.group.kill()

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
        if self.level.settings.level != "ns" and not self.groups:
            self._kill_orphans()

    def _finish(self, run: Run, status: int, usage: resource.struct_rusage) -> None:
        """Kill the remaining processes of a run whose program has ended, remove its files, and report its exit."""
        # In this order: a process that is alive could write to the folder while it is emptied, and use the cgroup or
        # the user of the next run (22_daemon_acts_later, 70_children_flood_after_the_end, 84_orphans_and_zombies).
        self.kill(run)
        cpu_s = usage.ru_utime + usage.ru_stime + self._reap_rest(run)
        cpu_s = self._left_group(run, cpu_s, killed=os.WIFSIGNALED(status))
        if self.level.settings.level != "ns" and run.group is None:
            self._kill_orphans()  # a test of a killed test runner, which could write to the folder
        self._release(run.folder, run.user, run.group)
        del self.runs[run.pid]
        code = os.waitstatus_to_exitcode(status)
        if code == -signal.SIGSYS:
            code = -signal.SIGKILL  # the seccomp filter ends process 1 with SIGSYS if it sends itself SIGKILL
        with contextlib.suppress(KeyError):
            self.selector.unregister(run.channel)
        peak = usage.ru_maxrss * (1024 if ON_LINUX else 1)
        _send(run.channel, ended={"code": code, "cpu_s": cpu_s, "max_rss_bytes": peak, "why": run.why})
        run.channel.close()

    def _left_group(self, run: Run, cpu_s: float, *, killed: bool) -> float:
        """Empty the cgroup of a run. Returns the CPU seconds of the run: at least ``cpu_s`` if there is no group."""
        if run.group is None:
            return max(cpu_s, run.monitor.cpu_s)
        with contextlib.suppress(OSError):  # the group may have been removed by others
            run.group.wait_until_empty()
            cpu_s = run.group.cpu_s() or cpu_s
            if run.group.killed_for_memory() and (killed or run.monitor.request.entry != monitor.TESTS):
                run.why = run.why or "memory"
        return cpu_s

    def _reap_rest(self, run: Run) -> float:
        """Wait for the remaining processes of a killed run and return their CPU seconds."""
        cpu_s = 0.0
        with contextlib.suppress(ChildProcessError):
            while True:
                _, _, usage = os.wait4(run.init or -run.pid, 0)
                cpu_s += usage.ru_utime + usage.ru_stime
        return cpu_s

    def _kill_orphans(self) -> None:
        """Kill orphaned processes that left the process group of their run, and their children.

        Only where neither a pid namespace nor a cgroup holds them (12_spinning_orphans, 82_runs_from_its_hunter).
        """
        while strays := [orphan.pid for orphan in self._orphans() if orphan.group not in self.runs]:
            for pid in strays:
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)

    def _orphans(self) -> list[processes.ProcessInfo]:
        """Return the children of this server that are not the first process of a run."""
        found = map(processes.process, set(processes.children(os.getpid())) - set(self.runs))
        return [orphan for orphan in found if orphan is not None]

    # ---- monitoring

    def _check_runs(self) -> None:
        """Kill runs that exceed a limit, and runs whose time to flush has passed."""
        now = time.monotonic()
        if now < self.next_check:
            return
        due = [run for run in self.runs.values() if run.monitor.due <= now and run.why is None]
        self._find_roots([run for run in due if run.group is None])
        for run in due:
            try:
                why = run.monitor.check(len(self.runs))
            except OSError as e:
                why = "killed"
                _send(run.channel, **failure(e))
            if why is not None:
                self.end(run, why)
            elif run.monitor.cell_exceeded():
                _send(run.channel, exceeded=run.cells)
        for run in self.runs.values():
            if run.killed_at <= now:
                run.killed_at = math.inf
                self.kill(run)
            if run.stopped_at <= now:
                self._stop_idle(run)
        times = (
            min(run.monitor.due, run.stopped_at) if run.why is None else run.killed_at for run in self.runs.values()
        )
        self.next_check = min(times, default=math.inf)

    def _find_roots(self, runs: list[Run]) -> None:
        """Find the processes from which the others of each run descend, including orphans adopted by this server."""
        orphans = self._orphans() if runs else []
        for run in runs:
            adopted = [orphan.pid for orphan in orphans if orphan.group == run.pid]
            run.monitor.roots = [run.pid, *adopted] if run.init is None else [run.pid, run.init]

    def _poll_timeout(self) -> float | None:
        """Return the seconds until the next check of a run, or None if no check is scheduled."""
        return None if self.next_check == math.inf else max(0.0, self.next_check - time.monotonic())


def _rearranged(given: list[int], report: int) -> int:
    """Renumber ``given`` and then ``report`` from 0, and close all others. Returns the number of ``report``.

    The server has the sockets of all runs, by which a program could end them and forge their results, and folders of
    cgroups (20_forged_messages, 32_hunt_descriptors, 183_change_the_cgroup).
    """
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, len(given) + 1) for fd in (*given, report)]
    for number, fd in enumerate(high):
        os.dup2(fd, number, inheritable=number < 3)
    linux.close_from(len(high))
    return len(given)


def _stop(*_: object) -> NoReturn:
    raise SystemExit
