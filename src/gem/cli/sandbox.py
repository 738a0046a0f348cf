"""Run untrusted programs in a sandbox, and check which isolation this machine supports.

  gem sandbox report                        show the backend, its level, and how each guarantee is enforced
  gem sandbox run program.py < input.txt    run a program with this standard input
  gem sandbox run - --wall-s 2              read the program itself from standard input
  gem sandbox selftest                      check every guarantee of the sandbox
  gem sandbox serve --port 8900             serve the sandbox over HTTP; clients authenticate with GEM_SANDBOX_TOKEN

`run` exits with the exit code of the program, 124 after a timeout, 137 after exceeding the memory or output limit, and
128 + N after signal N; a line on stderr says why a program was killed. `selftest` exits with 1 if a check fails.
"""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gem._internal.text import unescaped
from gem.cli.flags import REQUIRED, flag
from gem.cli.output import console, print_json, progress, wrap_for
from gem.errors import BadValue
from gem.sandbox import Limits, Result, Sandbox, Status, make_sandbox
from gem.sandbox.factory import BACKENDS

if TYPE_CHECKING:
    from gem.testing import CheckResult

EXIT_CODES = {Status.TIMEOUT: 124, Status.MEMORY: 137, Status.OUTPUT_LIMIT: 137}
REASONS = {
    Status.TIMEOUT: "time limit exceeded",
    Status.MEMORY: "memory limit exceeded",
    Status.OUTPUT_LIMIT: "output limit exceeded",
}
_COLORS = {"passed": "green", "failed": "bold red", "unchecked": "yellow"}


@dataclass(frozen=True, kw_only=True)
class Config:
    action: Literal["report", "run", "selftest", "serve"] = flag(REQUIRED, help="what to do", positional=True)
    file: str = flag("", help="for run: the program, or - for standard input", positional=True)
    backend: str = flag("auto", help="sandbox backend", choices=["auto", *BACKENDS])
    level: Literal["auto", "ns", "lsm", "basic"] = flag("auto", help="isolation level; basic is used only if named")
    image: str | None = flag(None, help="image for docker and podman")
    url: str | None = flag(None, help="server URL for the remote backend")
    wall_s: float = flag(Limits.wall_s, help="limit in wall-clock seconds")
    cpu_s: float | None = flag(None, help="limit in CPU seconds; default: wall_s + 1")
    memory_bytes: int = flag(Limits.memory_bytes, help="memory limit in bytes")
    processes: int = flag(Limits.processes, help="limit on processes and threads alive at the same time")
    disk_bytes: int = flag(Limits.disk_bytes, help="limit on bytes written to files")
    output_bytes: int = flag(Limits.output_bytes, help="bytes of stdout, and of stderr, to keep")
    network: bool = flag(False, help="allow network access")
    host: str = flag("127.0.0.1", help="for serve: address to listen on")
    port: int = flag(8900, help="for serve: port to listen on")
    json: bool = flag(False, help="for report and selftest: print JSON")


def run(config: Config) -> int:
    if config.file and config.action != "run":
        raise BadValue(f"gem sandbox {config.action} takes no file, got {config.file!r}")
    if config.action == "run" and not config.file:
        raise BadValue("gem sandbox run needs a file, or - for standard input")
    chosen = {"level": config.level, "image": config.image, "url": config.url}
    options = {name: value for name, value in chosen.items() if value not in ("auto", None)}
    limits = Limits(**{field.name: getattr(config, field.name) for field in fields(Limits)})
    with make_sandbox(config.backend, limits=limits, **options) as sandbox:
        if config.action == "report":
            return _report(sandbox, config.json)
        if config.action == "run":
            return _run(sandbox, config.file)
        if config.action == "selftest":
            return _selftest(sandbox, config.json)
        return _serve(sandbox, config.host, config.port)


def _report(sandbox: Sandbox, as_json: bool) -> int:
    report = sandbox.report()
    if as_json:
        print_json(
            {
                "backend": report.backend,
                "level": report.level or None,
                "guarantees": {name: mechanism or None for name, mechanism in report.guarantees.items()},
                "machines": report.machines,
                "notes": report.notes,
            }
        )
        return 0
    print(f"backend  {report.backend}")
    print(f"level    {report.level or 'none'}\n")
    width = max(map(len, report.guarantees))
    for name, mechanism in report.guarantees.items():
        print(wrap_for(sys.stdout, f"  {name:<{width}}  {mechanism or 'NOT ENFORCED'}"))
    print(wrap_for(sys.stdout, f"\n  {'machines':<{width}}  {report.machines or 'none'}"))
    for number, note in enumerate(report.notes):
        print(wrap_for(sys.stdout, f"{'' if number else chr(10)}- {note}"))
    return 0


def _run(sandbox: Sandbox, file: str) -> int:
    data = b"" if sys.stdin is None or (sys.stdin.isatty() and file != "-") else sys.stdin.buffer.read()
    program, stdin = (data, b"") if file == "-" else (Path(file).read_bytes(), data)
    result = sandbox.run(program, stdin=stdin)
    for stream, text in ((sys.stdout, result.stdout), (sys.stderr, result.stderr)):
        (stream if stream.isatty() else unescaped(stream)).write(text)  # a file or a pipe gets what the program wrote
        stream.flush()
    if result.status in EXIT_CODES:
        print(f"gem: killed: {REASONS[result.status]}", file=sys.stderr)
    return _exit_code(result)


def _exit_code(result: Result) -> int:
    if result.status in EXIT_CODES:
        return EXIT_CODES[result.status]
    return 128 + result.signal if result.exit_code is None and result.signal else result.exit_code or 0


def _selftest(sandbox: Sandbox, as_json: bool) -> int:
    from gem.testing.sandbox.check_sandbox import CHECKS, check_sandbox

    with progress(time_left=False) as bar:
        task = bar.add_task("", total=len(CHECKS))
        results = check_sandbox(sandbox, started=lambda check: bar.update(task, description=check.name, advance=1))
    if as_json:
        print_json([asdict(result) for result in results])
    else:
        _show(results, sandbox)
    return 1 if any(result.status == "failed" for result in results) else 0


def _show(results: list[CheckResult], sandbox: Sandbox) -> None:
    from rich.text import Text

    screen, width = console(highlight=False), max(len(result.name) for result in results)
    screen.soft_wrap = not screen.is_terminal
    for result in results:
        word = "FAILED" if result.status == "failed" else result.status
        line = Text.assemble((f"{word:<9}", _COLORS[result.status]), f"  {result.name:<{width}}  {result.description}")
        screen.print(line)
        if result.detail:
            screen.print(Text(f"{'':<9}  {'':<{width}}  {result.detail}", "dim"))
    counts = {status: sum(result.status == status for result in results) for status in _COLORS}
    report = sandbox.report()
    name = f"{report.backend}{report.level and ', level ' + report.level}"
    screen.print(
        f"\n{name}: {counts['passed']} of {len(results)} checks passed, "
        f"{counts['failed']} failed, {counts['unchecked']} not applicable or not checked"
    )


def _serve(sandbox: Sandbox, host: str, port: int) -> int:
    from gem.sandbox.remote.server import SandboxServer

    token = os.environ.get("GEM_SANDBOX_TOKEN", "")
    if not token:
        raise BadValue("gem sandbox serve needs a token in GEM_SANDBOX_TOKEN; anyone who has it can run programs here")
    server = SandboxServer(sandbox, token=token, host=host, port=port)
    print(f"serving on {server.url}; stop with Ctrl-C", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.shut_down()
    return 0
