"""The host side of runs that last until they are closed: the interpreters of sessions, and machines.

Such a run uses no thread and four descriptors.
"""

from __future__ import annotations

import contextlib
import os
import socket
import weakref
from dataclasses import replace
from typing import Any

from gem.sandbox.forkserver.host.execution import Launch, Launcher, NewRun
from gem.sandbox.output import OutputReader, descriptors
from gem.sandbox.results import Limits, Status

LIFETIME_CPU_S = 1e6  # CPU limit of a lasting run; its cells or commands have limits of their own


class LastingRun:
    """A run that answers requests over a socket of its own, until it is closed: an interpreter or a machine.

    Args:
        launch: starts the run.
        entry, options: see NewRun. The run receives its output streams as 1 and 2 and the socket as 3.
        limits: limits of each request, and except for the CPU limit, of the run.
        streams: 2 to read stdout and stderr from different pipes, 1 to read them from the same pipe.

    Attributes:
        channel: the socket.
        outputs: read ends of the pipes; ``listener`` has what was read.
    """

    def __init__(
        self, launch: Launcher, entry: str, options: dict[str, Any], limits: Limits, *, streams: int = 2
    ) -> None:
        self.limits, self.listener = limits, OutputReader()
        self.outputs: list[int] = []
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            ours.callback(self.listener.close)
            fds = theirs.enter_context(descriptors())
            self.channel, channel = socket.socketpair()
            ours.callback(self.channel.close)
            theirs.callback(channel.close)
            fds.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            self.outputs += [self.listener.pipe(limits.output_bytes, fds) for _ in range(streams)]
            given = [*fds[:2], fds[-1], channel.fileno()]
            self.launch = launch(NewRun(entry, options, given, replace(limits, cpu_s=LIFETIME_CPU_S)))
            ours.callback(self.launch.close)
            self._finalizer = weakref.finalize(self, _end, self.launch, ours.pop_all(), os.getpid())
            self._finalizer.atexit = False  # at exit, the sandbox kills the remaining runs
        self.listener.watch(self.channel.fileno())
        self.listener.watch(self.launch.fileno())

    def close(self) -> None:
        """Kill the run and release its resources. A second call has no effect."""
        self._finalizer()


def _end(launch: Launch, resources: contextlib.ExitStack, owner: int) -> None:
    if owner == os.getpid():
        launch.kill(Status.KILLED)
    resources.close()
