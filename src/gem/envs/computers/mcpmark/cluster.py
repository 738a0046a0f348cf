"""A PostgreSQL server for all environments of a process: a temporary folder, a Unix socket and no TCP."""

from __future__ import annotations

import glob
import os
import pwd
import secrets
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Any

from gem.errors import BadValue, MissingDependency, SandboxError

PROGRAMS = "GEM_POSTGRES"  # names the folder of the programs
PORT = "5432"  # part of the name of the socket
USER = "nobody"  # runs the server if this process is root
_START_S, _ADMIN_S, _STOP_S = 120.0, 120.0, 20.0
_MAX_PATH = 80  # longer names of sockets are refused by the kernel
_NEEDED = ("initdb", "postgres", "psql", "pg_dump", "pg_restore")


def programs() -> str:
    """Return the folder with the programs of PostgreSQL.

    Raises:
        BadValue: GEM_POSTGRES names a folder without them.
        MissingDependency: they are not installed.
    """
    if named := os.environ.get(PROGRAMS):
        if missing := _missing(named):
            raise BadValue(f"{PROGRAMS} must name the folder of initdb and postgres, but {named} has no {missing[0]}")
        return named
    newest = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: _version(Path(path).parts[-2]))
    initdb, config = shutil.which("initdb"), shutil.which("pg_config")
    places = [os.path.dirname(initdb or ""), *reversed(newest)]
    if config is not None:
        places.append(subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False).stdout.strip())
    for place in places:
        if place and not _missing(place):
            return place
    raise MissingDependency(
        f"PostgreSQL is not installed; install it with: apt-get install postgresql (or name the folder of "
        f"initdb and postgres in {PROGRAMS})"
    )


def _missing(place: str) -> list[str]:
    return [name for name in _NEEDED if not os.access(os.path.join(place, name), os.X_OK)]


def _version(name: str) -> float:
    try:
        return float(name)
    except ValueError:
        return 0.0


class Cluster:
    """A server, which is started on first use. See cluster_process.py for its end.

    None of its clients gets the password of the superuser, except psql in sql().
    """

    def __init__(self) -> None:
        self.programs = programs()
        parent = None if len(tempfile.gettempdir()) < _MAX_PATH else "/tmp"
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="gem-postgres-", dir=parent))
        self.users, self.closed, self.templates = set[object](), False, dict[Any, str]()
        self.lock = threading.RLock()
        self._process: subprocess.Popen[str] | None = None
        self._password, self._owner = secrets.token_hex(16), os.getpid()

    def start(self) -> None:
        """Start the server if it was not started. Raises SandboxError if it does not start or has ended."""
        with self.lock:
            if self._process is not None:
                if self._process.poll() is not None:
                    raise SandboxError("the PostgreSQL server of this process has ended")
                return
            user, group = os.getuid(), os.getgid()
            if user == 0:
                account = pwd.getpwnam(USER)
                user, group = account.pw_uid, account.pw_gid
                os.chown(self.folder, user, group)
            program = str(Path(__file__).with_name("cluster_process.py"))
            self._process = subprocess.Popen(
                [sys.executable, "-I", program, self.programs, self.folder, str(user), str(group)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd="/",
                start_new_session=True,
            )  # fmt: skip
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.write(self._password + "\n")
            self._process.stdin.flush()
            ready, _, _ = select.select([self._process.stdout], [], [], _START_S)
            line = self._process.stdout.readline().strip() if ready else f"not ready after {_START_S:g} s"
            if line != "ready":
                raise SandboxError(f"the PostgreSQL server cannot be started: {line or 'its process ended'}")

    def variables(self, user: str, password: str, database: str, options: str = "") -> dict[str, str]:
        """Return environment variables for a client."""
        names = {"HOST": self.folder, "PORT": PORT, "USER": user, "PASSWORD": password, "DATABASE": database}
        more = {"PGCLIENTENCODING": "UTF8", "PGOPTIONS": options, "PATH": os.defpath, "LC_ALL": "C.UTF-8"}
        return {**{f"PG{name}": value for name, value in names.items()}, **more}

    def run(
        self, program: str, *arguments: str, variables: dict[str, str], stdin: str | bytes = b"", timeout: float
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a client program. Raises SandboxError if it cannot connect or exceeds its time."""
        self.start()
        data = stdin.encode("utf-8", "surrogatepass") if isinstance(stdin, str) else stdin
        command = [os.path.join(self.programs, program), *arguments]
        try:
            done = subprocess.run(
                command, input=data, capture_output=True, env=variables, cwd="/", timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired as e:
            raise SandboxError(f"{program} timed out after {timeout:g} s") from e
        except OSError as e:
            raise SandboxError(f"{program} cannot be started: {e}") from e
        if done.returncode == 2 and program == "psql":
            raise SandboxError(f"the PostgreSQL server cannot be reached: {_first_line(done)}")
        return done

    def sql(
        self, script: str, *, variables: dict[str, str] | None = None, timeout: float = _ADMIN_S
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a script of psql, which must be ours, because psql has commands that start programs.

        Args:
            script: SQL, and commands of psql.
            variables: of the client; None means the superuser, for whom an error raises SandboxError.
            timeout: seconds.
        """
        admin = variables is None
        variables = self.variables("postgres", self._password, "postgres") if variables is None else variables
        arguments = ("-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-f", "-")
        done = self.run("psql", *arguments, variables=variables, stdin=script, timeout=timeout)
        if admin and done.returncode:
            raise SandboxError(f"the PostgreSQL server failed: {_first_line(done)}")
        return done

    def stop(self) -> None:
        self.closed = True
        if self._owner != os.getpid():  # a forked child
            return
        process, self._process = self._process, None
        if process is not None:
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                stream.close()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:  # the kernel then ends the server
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def _first_line(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[0].removeprefix("psql:<stdin>:")[:300] if lines else f"exit status {done.returncode}"


class _Shared:
    """The server of this process."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.cluster: Cluster | None = None


_shared = _Shared()
os.register_at_fork(after_in_child=lambda: _shared.__init__())  # type: ignore[misc]


def acquire(user: Any) -> Cluster:
    """Return the server of this process for an object. It ends with the last object that uses it, or with release()."""
    token = object()
    with _shared.lock:
        while True:
            if _shared.cluster is None or _shared.cluster.closed:
                _shared.cluster = Cluster()
            cluster = _shared.cluster
            cluster.users.add(token)
            if not cluster.closed:  # by the finalizer of another object
                break
    user._finalizer = weakref.finalize(user, release, cluster, token)
    return cluster


def release(cluster: Cluster, token: object) -> None:
    with _shared.lock:
        cluster.users.discard(token)
        if not cluster.users:
            cluster.stop()
