"""Helpers that start our search servers by their command lines, each in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass
class Running:
    """A running server. url: of /retrieve."""

    url: str
    process: subprocess.Popen[str]

    @property
    def base(self) -> str:
        return self.url.removesuffix("/retrieve")

    def get(self, path: str) -> str:
        with urllib.request.urlopen(self.base + path, timeout=30) as reply:
            return str(reply.read().decode())

    def post(self, body: bytes, path: str = "/retrieve") -> tuple[int, bytes]:
        """Return (status, body) of the reply."""
        try:
            with urllib.request.urlopen(urllib.request.Request(self.base + path, body), timeout=30) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as e:
            with e:
                return e.code, e.read()

    def ask(self, **request: Any) -> Any:
        status, reply = self.post(json.dumps(request).encode())
        assert status == 200, reply
        return json.loads(reply)["result"]

    def stop(self, sign: int = signal.SIGTERM) -> tuple[int, str]:
        """Stop the server and return (exit code, stderr)."""
        self.process.send_signal(sign)
        _, stderr = self.process.communicate(timeout=30)
        return self.process.returncode, stderr


def command(server: str, *options: object) -> list[str]:
    return [sys.executable, "-m", f"gem.tools.search.{server}", *map(str, options)]


@contextmanager
def running(server: str, *options: object, **environment: str) -> Iterator[Running]:
    """Run a server on a free port, and kill it on exit if it is still running."""
    process = subprocess.Popen(
        command(server, *options, "--port", 0),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    assert process.stdout is not None and process.stderr is not None
    try:
        line = process.stdout.readline()
        if "serving on " not in line:
            raise AssertionError(process.communicate(timeout=30)[1])
        yield Running(line.split()[-1], process)
    finally:
        process.kill()
        process.wait(30)
        process.stdout.close()
        process.stderr.close()
