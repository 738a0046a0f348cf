"""The service for databases: one of the PostgreSQL server of this process, and an MCP server on it.

The agent's role owns what is in its database and nothing else: it is no superuser, may create no roles and no
databases, and may read and write no files of the host. Each environment has its own database and its own role.
"""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gem.envs.computers.mcpmark import cluster as clusters
from gem.envs.computers.mcpmark.checkout import ServiceTask
from gem.envs.computers.mcpmark.shop import QueryFailed, ShopTask
from gem.envs.computers.mcpmark.verify import CRASHED, NOT_SOLVED, RUNNER, SOLVED
from gem.errors import BadValue, MissingDependency, SandboxError, require

PROGRAM = "GEM_MCP_POSTGRES"  # the command of another MCP server
CALL_S = 20  # a statement of the agent
RESTORE_S = 600.0
_OWNER = "template_owner"
# What a dump of another owner or an older version may say, and what changes nothing.
_HARMLESS = ('schema "public" already exists', "must be owner of extension", "errors ignored on restore")
_TRUSTED = "-c search_path=pg_catalog -c row_security=off -c standard_conforming_strings=on -c statement_timeout={}"


def require_driver() -> None:
    """Raise MissingDependency if the library is missing with which verify.py connects to the server."""
    require("psycopg2", extra="postgres")


class DatabaseService:
    """A database that is created for each episode. close() drops it; another start() creates it again."""

    NOTE = "Work with the tools, on the PostgreSQL database to which they are connected."

    def __init__(self) -> None:
        self._programs = clusters.programs()
        number = secrets.token_hex(4)
        self.role, self.database, self._password = f"agent_{number}", f"task_{number}", secrets.token_hex(16)
        self._used: clusters.Cluster | None = None
        self._owner, self._archive = os.getpid(), b""  # the archive is empty if the database may have changed

    @property
    def cluster(self) -> clusters.Cluster:
        """The server, which starts with the first query."""
        if self._used is None or self._owner != os.getpid():
            self._used, self._owner = clusters.acquire(self), os.getpid()
        return self._used

    def start(self, task: ServiceTask) -> None:
        """Replace the database by the first database of a task."""
        self._archive = b""
        if isinstance(task, ShopTask):
            self._create(preparation=task.preparation)
            return
        template = self._template(task.require_state())
        self._create(template)
        if template is None:
            code, said = self._python(task, "prepare_environment.py", self._password, RESTORE_S)
            if code:
                raise SandboxError(f"prepare_environment.py of {task.name} failed: {said}")

    def server(self) -> dict[str, Any]:
        """Return the configuration of the MCP server. Raises MissingDependency if it is not installed."""
        variables = self.cluster.variables(self.role, self._password, self.database)
        own = [sys.executable, "-m", "gem.envs.computers.mcpmark.postgres_server", os.path.join(self._programs, "psql")]
        command, *arguments = shlex.split(os.environ.get(PROGRAM, "")) or own
        if shutil.which(command) is None:
            raise MissingDependency(f"{command!r}, which {PROGRAM} names, is not on the PATH")
        del variables["PATH"]
        environment = {**variables, "DATABASE_URI": self._url(self._password)}
        return {"mcpServers": {"postgres": {"command": command, "args": arguments, "env": environment}}}

    def before_call(self, arguments: dict[str, Any]) -> dict[str, Any]:
        self._archive = b""
        return arguments

    def after_call(self, name: str, text: str) -> str:
        """Give the role and the database fixed names. Raises SandboxError if the server has ended."""
        self.cluster.start()
        if "connection to server" in text or "server closed the connection" in text:
            self.cluster.sql("SELECT 1")
        return text.replace(self.role, "agent").replace(self.database, "task")

    def verify(self, task: ServiceTask, timeout: float) -> str:
        """Return "" if the database solves a task, else what is wrong. Raises SandboxError.

        The connections of the agent are ended before. The queries run as its role, because its views and triggers may
        run code, which so gets no other rights.
        """
        password = self._end_connections()

        def query(script: str) -> str:
            options = _TRUSTED.format(int(timeout * 1000))
            variables = self.cluster.variables(self.role, password, self.database, options)
            done = self.cluster.sql(script, variables=variables, timeout=timeout + 60)
            if done.returncode:
                raise QueryFailed(_reason(done.stderr))
            return done.stdout.decode(errors="replace").strip()

        if isinstance(task, ShopTask):
            return self._judged(task, query)
        for _ in range(2):
            code, said = self._python(task, "verify.py", password, 4 * timeout)
            self.cluster.sql("SELECT 1")  # an outage is no verdict
            if code in (SOLVED, NOT_SOLVED):
                return "" if code == SOLVED else f"not solved: {said}"
        self._control(task, timeout)
        return f"verify.py failed twice on this database, and not on the first one: {said}"

    def _control(self, task: ServiceTask, timeout: float) -> None:
        """Raise SandboxError if verify.py has no result for the first database either."""
        control = DatabaseService()
        try:
            control.start(task)
            code, said = control._python(task, "verify.py", control._password, 4 * timeout)
        finally:
            control.close()
        if code not in (SOLVED, NOT_SOLVED):
            raise SandboxError(f"verify.py of {task.name} fails on its first database too: {said}")

    def save(self) -> bytes:
        """Return an archive of pg_dump, without grants. Raises BadValue if the agent has made it unreadable."""
        if not self._archive:
            self.cluster.sql(f"ALTER ROLE {self.role} PASSWORD '{self._password}'")  # the agent may have changed it
            variables = self.cluster.variables(self.role, self._password, self.database)
            dumped = self.cluster.run("pg_dump", "-Fc", variables=variables, timeout=RESTORE_S)
            if dumped.returncode:
                self.cluster.sql("SELECT 1")  # an outage raises SandboxError
                raise BadValue(f"the database cannot be saved: {_reason(dumped.stderr)}")
            self._archive = dumped.stdout
        return self._archive

    def load(self, archive: bytes) -> None:
        """Replace the database by that of an archive. Raises BadValue if it cannot be restored."""
        self._create()
        variables = self.cluster.variables(self.role, self._password, self.database)
        self._restore(archive, variables, "the saved database")
        self._archive = archive

    def close(self) -> None:
        used, self._used = self._used, None
        if used is None or self._owner != os.getpid():
            return
        if len(used.users) > 1 and not used.closed:  # otherwise the server ends
            used.sql(f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE);\nDROP ROLE IF EXISTS {self.role};")
        self._finalizer()

    _finalizer: Callable[[], Any]  # set by acquire()

    # ---- the database

    def _create(self, template: str | None = None, preparation: str = "") -> None:
        rights = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 20"
        move = "" if template is None else f"REASSIGN OWNED BY {_OWNER} TO {self.role};"
        self.cluster.sql(
            f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE);\nDROP ROLE IF EXISTS {self.role};\n"
            f"CREATE ROLE {self.role} {rights} PASSWORD '{self._password}';\n"
            f"ALTER ROLE {self.role} SET statement_timeout = '{CALL_S}s';\n"
            f"CREATE DATABASE {self.database} TEMPLATE {template or 'template0'};\n"
            f"REVOKE ALL ON DATABASE {self.database} FROM PUBLIC;\n"
            f"GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {self.database} TO {self.role};\n"
            f"\\connect {self.database}\n"
            f"GRANT ALL ON SCHEMA public TO {self.role};\n{move}\n"
            f"SET ROLE {self.role};\n{preparation}"
        )

    def _template(self, dump: Path | None) -> str | None:
        """Return the name of a database with a dump, which is restored once. None for a task without a dump.

        Raises:
            BadValue: the dump cannot be restored.
        """
        if dump is None:
            return None
        cluster = self.cluster
        with cluster.lock:
            key = (str(dump), dump.stat().st_mtime_ns)
            if key not in cluster.templates:
                name, password = f"template_{secrets.token_hex(4)}", secrets.token_hex(16)
                cluster.sql(
                    f"SELECT 'CREATE ROLE {_OWNER}' WHERE NOT EXISTS "
                    f"(SELECT FROM pg_roles WHERE rolname = '{_OWNER}') \\gexec\n"
                    f"ALTER ROLE {_OWNER} LOGIN PASSWORD '{password}';\nCREATE DATABASE {name} TEMPLATE template0;\n"
                    f"REVOKE ALL ON DATABASE {name} FROM PUBLIC;\n"
                    f"GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {name} TO {_OWNER};\n"
                    f"\\connect {name}\nGRANT ALL ON SCHEMA public TO {_OWNER};"
                )
                try:
                    self._restore(dump.read_bytes(), cluster.variables(_OWNER, password, name), str(dump))
                except BadValue:
                    cluster.sql(f"DROP DATABASE {name} WITH (FORCE);")
                    raise
                cluster.templates[key] = name
            return cluster.templates[key]

    def _restore(self, archive: bytes, variables: dict[str, str], name: str) -> None:
        database = variables["PGDATABASE"]
        done = self.cluster.run(
            "pg_restore", "--no-owner", "--no-acl", "--no-comments", "-d", database, variables=variables,
            stdin=archive, timeout=RESTORE_S,
        )  # fmt: skip
        lines = [line for line in done.stderr.decode(errors="replace").splitlines() if "pg_restore: " in line]
        wrong = [line for line in lines if ": error: " in line and not any(text in line for text in _HARMLESS)]
        if done.returncode and (wrong or not lines):
            self.cluster.sql("SELECT 1")  # an outage raises SandboxError
            raise BadValue(f"{name} cannot be restored: {(wrong or [_reason(done.stderr)])[0][:300]}")

    # ---- verification

    def _end_connections(self) -> str:
        """End the agent's connections and forget the settings of its role. Returns a new password of the role."""
        password = secrets.token_hex(16)
        self.cluster.sql(
            f"ALTER ROLE {self.role} NOLOGIN;\n"
            f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = '{self.role}';\n"
            f"ALTER ROLE {self.role} RESET ALL;\nALTER ROLE {self.role} IN DATABASE {self.database} RESET ALL;\n"
            f"ALTER ROLE {self.role} LOGIN PASSWORD '{password}';"
        )
        return password

    def _judged(self, task: ShopTask, query: Callable[[str], str]) -> str:
        reason = ""
        for _ in range(2):
            try:
                return task.mismatch(query)
            except (QueryFailed, SandboxError) as e:  # SandboxError: the connection was lost
                reason = str(e)
            # An outage is no verdict. Otherwise the database is the cause: a view may end the connection of its reader.
            self.cluster.sql("SELECT 1")
        return f"the database cannot be read: {reason}"

    def _python(self, task: ServiceTask, name: str, password: str, timeout: float) -> tuple[int, str]:
        """Run a program of a task on the host. Returns its exit status and its last line."""
        path = task.folder / name
        if not path.is_file():
            raise SandboxError(f"a program of the task is gone: {path}")
        variables = self.cluster.variables(self.role, password, self.database)
        for key in ("HOST", "PORT", "PASSWORD", "DATABASE"):
            variables[f"POSTGRES_{key}"] = variables[f"PG{key}"]
        variables |= {"POSTGRES_USERNAME": self.role, "DATABASE_URL": self._url(password), "PYTHONIOENCODING": "utf-8"}
        variables["PYTHONDONTWRITEBYTECODE"] = "1"
        try:
            done = subprocess.run(
                [sys.executable, "-c", RUNNER, str(path)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, env=variables, cwd=path.parent, timeout=timeout, check=False,
                start_new_session=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return CRASHED, f"timed out after {timeout:g} s"
        return done.returncode, _reason(done.stdout, last=True)

    def _url(self, password: str) -> str:
        host = quote(self.cluster.folder, safe="")
        return f"postgresql://{self.role}:{password}@/{self.database}?host={host}&port={clusters.PORT}"


def _reason(output: bytes, last: bool = False) -> str:
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1 if last else 0][:300] if lines else "it gave no reason"
