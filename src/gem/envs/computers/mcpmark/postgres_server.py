"""An MCP server for one PostgreSQL database, with tools of postgres-mcp: execute_sql, list_schemas, list_objects,
get_object_details and explain_query.

  python -m gem.envs.computers.mcpmark.postgres_server PSQL

PSQL is the program psql. The variables PGHOST, PGUSER, PGPASSWORD and PGDATABASE name the database. Each call has its
own connection, so that settings, temporary tables and open transactions end with it. Requires the extra [mcp].
"""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

from gem.errors import require

CALL_S = 25.0
MAX_CHARS = 100_000  # of a query, which is an argument of psql, and of a result
MEMORY_BYTES = 1 << 30  # psql holds the whole result
_KINDS = {"table": "r,p,f", "view": "v,m", "sequence": "S", "index": "i"}


def build_server(psql: str) -> Any:
    """Build the server, an MCPServer of the SDK."""
    tool_error = require("mcp.server.mcpserver.exceptions", extra="mcp").ToolError
    server = require("mcp.server.mcpserver", extra="mcp").MCPServer("postgres", log_level="ERROR")

    def run(sql: str) -> str:
        if len(sql.encode("utf-8", "replace")) > MAX_CHARS or "\0" in sql:
            raise tool_error(f"a query must have at most {MAX_CHARS} bytes and no NUL")
        # A command that starts with a backslash would be one of psql, which can start programs.
        options = ["-X", "-A", "-F", " | ", "-P", "null=NULL", "-P", "pager=off", "-v", "ON_ERROR_STOP=1"]
        command = [psql, *options, "-c", f" {sql}"]
        process = subprocess.Popen(
            [part.encode("utf-8", "replace") for part in command],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert process.stdout is not None
        if sys.platform == "linux":
            import resource

            resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        timer = threading.Timer(CALL_S, process.kill)
        timer.start()
        with process:
            output = process.stdout.read(MAX_CHARS + 1)
            timed_out = not timer.is_alive()
            timer.cancel()
            if len(output) > MAX_CHARS:
                process.kill()
        text = output.decode("utf-8", "replace").strip()
        if timed_out:
            raise tool_error(f"the query timed out after {CALL_S:g} s")
        if len(output) > MAX_CHARS:
            return f"{text}\n[cut after {MAX_CHARS} bytes]"
        if process.returncode:
            raise tool_error(text or "psql failed")
        return text or "done"

    def execute_sql(sql: str) -> str:
        """Execute SQL statements, and return their results. Several statements are one transaction."""
        return run(sql)

    def list_schemas() -> str:
        """List the schemas of the database."""
        return run(
            "SELECT nspname AS schema_name, pg_get_userbyid(nspowner) AS owner FROM pg_catalog.pg_namespace "
            "WHERE nspname !~ '^pg_(temp|toast)' ORDER BY 1"
        )

    def list_objects(schema_name: str, object_type: str = "table") -> str:
        """List the objects of a schema. The object_type is table, view, sequence or index."""
        if object_type not in _KINDS:
            raise tool_error(f"object_type must be one of {', '.join(_KINDS)}, got {object_type!r}")
        kinds = ",".join(f"'{kind}'" for kind in _KINDS[object_type].split(","))
        return run(
            "SELECT c.relname AS name FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = "
            f"c.relnamespace WHERE n.nspname = {_literal(schema_name)} AND c.relkind IN ({kinds}) ORDER BY 1"
        )

    def get_object_details(schema_name: str, object_name: str) -> str:
        """Show the columns, constraints and indexes of a table or view."""
        found = f"a.attrelid = {_literal(_quoted(schema_name) + '.' + _quoted(object_name))}::regclass"
        columns = run(
            "SELECT a.attname AS column, pg_catalog.format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS "
            f"not_null FROM pg_catalog.pg_attribute a WHERE {found} AND a.attnum > 0 AND NOT a.attisdropped "
            "ORDER BY a.attnum"
        )
        constraints = run(
            "SELECT a.conname AS constraint, pg_catalog.pg_get_constraintdef(a.oid) AS definition "
            f"FROM pg_catalog.pg_constraint a WHERE {found.replace('attrelid', 'conrelid')} ORDER BY 1"
        )
        indexes = run(
            "SELECT pg_catalog.pg_get_indexdef(a.indexrelid) AS index FROM pg_catalog.pg_index a "
            f"WHERE {found.replace('attrelid', 'indrelid')} ORDER BY 1"
        )
        return f"{columns}\n\n{constraints}\n\n{indexes}"

    def explain_query(sql: str, analyze: bool = False) -> str:
        """Show the plan of a query. With analyze, the query is executed."""
        return run(f"EXPLAIN {'(ANALYZE) ' if analyze else ''}{sql}")

    for function in (execute_sql, list_schemas, list_objects, get_object_details, explain_query):
        server.add_tool(function)
    return server


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def main() -> None:
    build_server(sys.argv[1]).run("stdio")


if __name__ == "__main__":
    main()
