"""Run a PostgreSQL server for the process that starts this program, and remove the server and its folder in the end.

  python cluster_process.py PROGRAMS FOLDER USER GROUP

The first line of stdin is the password of the superuser "postgres". The first line of stdout is "ready", or says what
is wrong. The server ends when stdin is closed or the parent process has ended, however that happened. If this program
is killed, the kernel ends the server. Imports the standard library only, because it is not run as a module of gem.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from typing import Any

START_S, STOP_S = 60.0, 5.0
MEMORY_BYTES = 1 << 30  # address space of each process of the server
TABLE_BYTES = 1 << 30  # each file of the server
DATABASE_BYTES = 2 << 30  # an agent's connections to a larger database are ended, as are its longer statements:
STATEMENT_S = 40
_PR_SET_PDEATHSIG = 1
# No TCP, nothing that has to survive a crash, and nothing that makes equal episodes differ, such as automatic ANALYZE.
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "dynamic_shared_memory_type": "mmap",  # in the folder, not in /dev/shm
    "shared_buffers": "16MB",
    "max_connections": "200",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "128MB",
    "autovacuum": "off",
    "max_parallel_workers": "0",
    "jit": "off",
    "temp_file_limit": "512MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_messages": "fatal",
}
_WATCH = f"""
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename LIKE 'agent\\_%' AND (
  (state <> 'idle' AND clock_timestamp() - query_start > '{STATEMENT_S} s')
  OR pg_database_size(datid) > {DATABASE_BYTES}) \\watch 1
"""


class PostgresServer:
    """The server, and the client that ends connections over the limits."""

    def __init__(self, programs: str, folder: str, user: str, group: str) -> None:
        self.programs, self.folder, self.data = programs, folder, os.path.join(folder, "data")
        # Root cannot run the server.
        self.user: dict[str, Any] = (
            {"user": int(user), "group": int(group), "extra_groups": []} if os.geteuid() == 0 else {}
        )
        self.password = sys.stdin.readline().strip()
        self.postgres: subprocess.Popen[bytes] | None = None
        self.watch: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Return "ready", or what is wrong."""
        initdb = [self._program("initdb"), "-D", self.data, "-U", "postgres", "-A", "scram-sha-256", "-E", "UTF8"]
        secret = os.path.join(self.folder, "password")
        with open(os.open(secret, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(self.password)
        if self.user:
            os.chown(secret, self.user["user"], self.user["group"])
        made = subprocess.run(
            [*initdb, "--locale=C", "--no-sync", "--no-instructions", f"--pwfile={secret}"],
            stdin=subprocess.DEVNULL, capture_output=True, cwd="/", env=self._variables(), **self.user,
        )  # fmt: skip
        os.unlink(secret)
        if made.returncode:
            return f"initdb failed: {_last_line(made.stderr)}"
        settings = {**SETTINGS, "unix_socket_directories": self.folder}
        self.log = open(os.path.join(self.folder, "log"), "w+b")  # noqa: SIM115
        self.postgres = self._open("postgres", "-D", self.data, *(f"--{k}={v}" for k, v in settings.items()))
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self.postgres.poll() is None:
            if not self._run("psql", "-X", "-c", "SELECT 1").returncode:
                self._watch()
                return "ready"
            time.sleep(0.02)
        self.log.seek(0)
        return f"postgres did not start: {_last_line(self.log.read())}"

    def wait(self) -> None:
        """Return when the server, or the process that uses it, has ended."""
        parent, selector = os.getppid(), select.poll()
        selector.register(sys.stdin, select.POLLIN | select.POLLHUP)
        while os.getppid() == parent and not selector.poll(500):
            if self.postgres is None or self.postgres.poll() is not None:
                return
            if self.watch is None or self.watch.poll() is not None:  # such as when a database was dropped
                self._watch()

    def stop(self) -> None:
        for process, number in ((self.watch, signal.SIGKILL), (self.postgres, signal.SIGQUIT)):
            if process is not None and process.poll() is None:
                process.send_signal(number)
                try:
                    process.wait(STOP_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _watch(self) -> None:
        self.watch = self._open("psql", "-X", "-q", stdin=subprocess.PIPE)
        assert self.watch.stdin is not None
        with self.watch.stdin as stdin:
            stdin.write(_WATCH.encode())

    def _open(self, program: str, *arguments: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        output = self.log if program == "postgres" else subprocess.DEVNULL
        return subprocess.Popen(
            [self._program(program), *arguments], stdin=stdin, stdout=output, stderr=output, cwd="/",
            env=self._variables(), preexec_fn=_confine, **self.user,
        )  # fmt: skip

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [self._program(program), *arguments], stdin=subprocess.DEVNULL, capture_output=True, env=self._variables()
        )

    def _program(self, name: str) -> str:
        return os.path.join(self.programs, name)

    def _variables(self) -> dict[str, str]:
        names = {"PGHOST": self.folder, "PGUSER": "postgres", "PGDATABASE": "postgres", "PGPASSWORD": self.password}
        return {**names, "PATH": os.defpath, "LC_ALL": "C"}


def _confine() -> None:
    """Runs in a child, after it has become the unprivileged user."""
    for kind, value in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_FSIZE, TABLE_BYTES)):
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "it gave no reason"


def main() -> None:
    server = PostgresServer(*sys.argv[1:5])
    try:
        state = server.start()
        print(state, flush=True)
        if state == "ready":
            server.wait()
    finally:
        server.stop()


if __name__ == "__main__":
    main()
