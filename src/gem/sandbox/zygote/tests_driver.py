"""Many tests of one program in one sandbox: the program is compiled once, and each test is a fork of this process.

The host sends a test's number and its streams. This driver forks the test, ends it at its time limit, kills whatever it
left behind, removes its files, and reports how it ended; that report is the kernel's word, not the program's. A test
holds no descriptor of the driver's, and its fence keeps it from signalling or reading the driver and its siblings.

A page that a fork writes to is copied, and so is one that this process writes to after a fork. That is most of a test's
cost: what can be done before is, and all tests that are at hand are forked at once, to wait for a place.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import math
import os
import random
import resource
import select
import signal
import socket
import sys
import time
from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from gem.sandbox.zygote import limits, linux, program, watch
from gem.sandbox.zygote.fence import Fence
from gem.sandbox.zygote.removal import empty_folder, remove_tree
from gem.sandbox.zygote.subject import Call, Script
from gem.sandbox.zygote.tests_wire import (
    BROKEN,
    CHANNEL,
    COMPILED,
    MESSAGE_BYTES,
    SOURCE,
    TEST_FDS,
    UNCLEAN,
    Order,
    Report,
)

DEATH_S = 5.0  # for killed processes to be gone
FLUSH_S = 0.02  # for a test that took too long to flush its streams
FAILED = 125  # exit code of a fork that could not become a test
SHARED = "/dev/shm"
# The C library's, which keeps what it is given and copies nothing.
_putenv = ctypes.CDLL(None).putenv
_draw_anew = super(random.Random, random._inst).seed  # random.seed(), in C alone


def run(options: Mapping[str, Any], fds: Sequence[int]) -> NoReturn:
    """Run tests until the host hangs up.

    options: ``function`` to call, or None; ``level`` of the sandbox; tests at once in ``parallel``; and ``wall_s``,
        ``cpu_s``, ``memory_bytes`` and ``disk_bytes`` of each.
    fds: standard streams, a SOCK_SEQPACKET socket to the host, the program's source.
    """
    exit_code = 1
    try:
        driver = Driver(options, socket.socket(fileno=fds[CHANNEL]))
        driver.serve(read_all(fds[SOURCE]))
        exit_code = 0
    except Unclean:
        exit_code = UNCLEAN
    except BaseException:
        program.show_exception()
    finally:
        os._exit(exit_code)


class Unclean(Exception):
    """A test left something that could not be cleared away."""


class Place:
    """Where one test at a time runs: a folder that is empty when it starts, and a fence around it."""

    def __init__(self, folder: str, level: str) -> None:
        os.mkdir(folder, 0o700)
        self.folder = folder
        self.fence = Fence(folder, level)
        self.variables = {name: os.fsencode(folder) for name in (b"HOME", b"TMPDIR")}
        self.entries = [ctypes.create_string_buffer(b"=".join(pair)) for pair in self.variables.items()]

    def enter(self) -> None:
        """Become the one test here: in what little of Python this takes, since what is touched is copied."""
        sys.path[0] = self.folder
        for entry in self.entries:
            _putenv(entry)
        os.environ._data.update(self.variables)  # type: ignore[attr-defined]
        os.chdir(self.folder)
        self.fence.close_behind()

    def clear(self) -> None:
        """Raises Unclean."""
        try:
            os.chmod(self.folder, 0o700)
            if os.listdir(self.folder):
                empty_folder(self.folder)
                if os.listdir(self.folder):
                    raise Unclean
        except OSError as e:
            raise Unclean from e


@dataclass
class Test:
    """One under way. place: its number. start, deadline: by time.monotonic(). overdue: whether it met its deadline."""

    index: int
    pid: int
    pidfd: int
    place: int
    start: float
    deadline: float
    overdue: bool = False


class Driver:
    """Starts tests as the host asks, and waits for all of them at once."""

    def __init__(self, options: Mapping[str, Any], channel: socket.socket) -> None:
        self.options, self.channel = options, channel
        linux.adopt_orphans()
        home, level = os.getcwd(), options["level"]
        self.own = [str(number) for number in range(options["parallel"])]
        self.places = [Place(f"{home}/{name}", level) for name in self.own]
        self.shared = [SHARED] if level == "ns" else []  # folders that all tests may write to, and none of the host's
        if not self.places[0].fence.surrounds:
            self.shared.append(home)
        self.free = list(range(len(self.places)))  # those where no test runs
        self.waiting: deque[tuple[int, Sequence[int]]] = deque()  # numbers and descriptors of tests to be forked
        self.forked: deque[tuple[int, int, int]] = deque()  # numbers, process ids and bells of those that wait
        self.untidy = False  # something lies where all tests may write
        self.live: dict[int, Test] = {}  # by pidfd
        this = watch.process(os.getpid())
        self.fork = linux.fork if this is not None and this.tasks == 1 else os.fork
        self.trouble = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)  # where a fork says that it could not become a test
        self.poll = select.poll()
        self.poll.register(channel, select.POLLIN)

    def serve(self, source: bytes) -> None:
        """Returns when the program does not compile, or the host has hung up."""
        code = program.compiled(source)
        self.channel.send(BROKEN if code is None else COMPILED)
        if code is None:
            return
        function = self.options["function"]
        self.play = Script(code) if function is None else Call(code, function)
        self._set_limits()
        program.open_streams()
        gc.freeze()  # or a collection in a test would write to all of it
        while self._await():
            now = time.monotonic()
            for test in [test for test in self.live.values() if test.deadline <= now]:
                self._end_late(test)
            while self.free and not self.untidy and (self.forked or self._fork_all()):
                self._start(*self.forked.popleft())

    def _set_limits(self) -> None:
        """Those that this process can share with its tests, and the end of the descriptors."""
        lower(resource.RLIMIT_AS, self.options["memory_bytes"] + limits.image_bytes())
        lower(resource.RLIMIT_FSIZE, self.options["disk_bytes"])
        cpu_s = math.ceil(self.options["cpu_s"])
        self.cpu_limit = (cpu_s, cpu_s + 1)  # a signal at the first, death at the second
        self.last_fd = resource.getrlimit(resource.RLIMIT_NOFILE)[0]

    def _await(self) -> bool:
        """Wait for orders, the ends of tests, or a time limit; False when the host has hung up."""
        patience_s = min((test.deadline for test in self.live.values()), default=math.inf) - time.monotonic()
        for fd, _ in self.poll.poll(None if patience_s == math.inf else max(0.0, patience_s * 1000)):
            if fd == self.channel.fileno() and not self._obey():
                return False
            if fd in self.live:  # not stopped by an order meanwhile
                self._finish(self.live[fd])
        return True

    def _end_late(self, test: Test) -> None:
        """A test that took too long is told so, to flush its streams, and then ended."""
        if test.overdue:
            self._finish(test)
            return
        test.overdue = True
        test.deadline += FLUSH_S
        os.kill(test.pid, program.FLUSH)

    def _obey(self) -> bool:
        """Take a test to be started, or stop one; False when the host has hung up."""
        data, ancillary, _, _ = self.channel.recvmsg(MESSAGE_BYTES, socket.CMSG_SPACE(TEST_FDS * array("i").itemsize))
        if not data:
            return False
        order = Order.of(data)
        if order.start:
            self.waiting.append((order.number, array("i", ancillary[0][2])))
        else:
            for test in [test for test in self.live.values() if test.index == order.number]:
                self._finish(test)
        return True

    def _fork_all(self) -> bool:
        """Fork every test that is at hand, as far as those that run leave room. Returns whether one waits now."""
        while self.waiting:
            index, fds = self.waiting[0]
            bell = os.eventfd(0)
            try:
                pid = self.fork()
            except OSError:
                os.close(bell)
                if self.forked or self.live:
                    break
                raise
            if pid == 0:
                self._become_test(fds, bell)
            self.waiting.popleft()
            self.forked.append((index, pid, bell))
            for fd in fds:
                os.close(fd)
        return bool(self.forked)

    def _start(self, index: int, pid: int, bell: int) -> None:
        """Give a place to a test that was forked."""
        place = self.free.pop()
        start = time.monotonic()
        os.eventfd_write(bell, place + 1)
        os.close(bell)
        test = Test(index, pid, os.pidfd_open(pid), place, start, start + self.options["wall_s"])
        self.live[test.pidfd] = test
        self.poll.register(test.pidfd, select.POLLIN)

    def _become_test(self, fds: Sequence[int], bell: int) -> NoReturn:
        exit_code = 1
        try:
            place = self.places[os.eventfd_read(bell) - 1]
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_CPU, self.cpu_limit)
            _draw_anew()
            place.enter()
            for number, fd in enumerate(fds):
                os.dup2(fd, number)
            os.closerange(len(fds), self.last_fd)
        except BaseException as e:
            os.write(self.trouble[1], f"a test could not be set up: {e!r}".encode())
            os._exit(FAILED)
        try:
            exit_code = self.play()
        finally:
            os._exit(exit_code)

    def _finish(self, test: Test) -> None:
        """End a test, if it has not ended, with everything that it started; report it, and clear its place."""
        try:
            os.killpg(test.pid, signal.SIGKILL)
        except ProcessLookupError:  # it has not come to have a group
            os.kill(test.pid, signal.SIGKILL)
        _, status, usage = os.wait4(test.pid, 0)
        wall_s = time.monotonic() - test.start
        del self.live[test.pidfd]
        self.poll.unregister(test.pidfd)
        os.close(test.pidfd)
        code, cpu_s = os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
        trouble = self._trouble() if code == FAILED else b""
        report = Report(test.index, code, test.overdue, wall_s, cpu_s, usage.ru_maxrss * 1024, trouble)
        self.channel.send(report.packed())
        self._reap(test)
        self.places[test.place].clear()
        self.free.append(test.place)
        self._clear_shared()

    def _trouble(self) -> bytes:
        try:
            return os.read(self.trouble[0], MESSAGE_BYTES // 2)
        except BlockingIOError:  # the exit code was the program's own
            return b""

    def _reap(self, test: Test) -> None:
        """Wait until every process of a killed group is gone; those orphaned became children of this one."""
        patience = time.monotonic() + DEATH_S
        try:
            while os.waitpid(-test.pid, os.WNOHANG)[0] or time.monotonic() < patience:
                time.sleep(0.0005)
        except ChildProcessError:
            if not self.places[test.place].fence.holds:
                self._kill_strays(patience)
        else:
            raise Unclean

    def _kill_strays(self, patience: float) -> None:
        """Kill what left the group of an ended test and became a child of this process."""
        ours = {test.pid for test in self.live.values()} | {pid for _, pid, _ in self.forked}
        while strays := set(watch.children(os.getpid())) - ours:
            for pid in strays:
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
            if time.monotonic() > patience:
                raise Unclean

    def _clear_shared(self) -> None:
        """Remove what lies where all tests may write. While one runs it may be in use: then no other is started."""
        strays = self._strays()
        self.untidy = bool(strays and self.live)
        if strays and not self.live:
            for path in strays:
                remove(path)
            if self._strays():
                raise Unclean

    def _strays(self) -> list[str]:
        return [f"{folder}/{name}" for folder in self.shared for name in os.listdir(folder) if name not in self.own]


def remove(path: str) -> None:
    """A file or a folder, as far as possible."""
    with contextlib.suppress(OSError):
        os.unlink(path)
        return
    remove_tree(path)


def lower(limit: int, value: int) -> None:
    """Lower a limit of this process; where it is lower already, nothing happens."""
    hard = resource.getrlimit(limit)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (value, value))


def read_all(fd: int) -> bytes:
    with open(fd, "rb") as file:
        return file.read()
