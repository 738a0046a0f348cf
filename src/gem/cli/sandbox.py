"""Run untrusted programs contained, and see what containment holds on this machine.

  gem sandbox report                        which backend and level, what each guarantee rests on, and why no more
  gem sandbox run program.py < input.txt    run a file, with this input, and exit as it does
  gem sandbox run - --wall-s 2              the program itself comes from the standard input
  gem sandbox selftest                      try what the sandbox promises, and show the score
  gem sandbox serve --port 8900             lend it to other machines, to who shows GEM_SANDBOX_TOKEN

`run` exits with the program's exit code, 124 at a limit of time, 137 at one of memory or output, and 128 + N after
signal N; what stopped it is a line on stderr. `selftest` exits with 1 when a promise is broken.
"""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gem.cli.flags import REQUIRED, flag
from gem.errors import BadValue
from gem.sandbox import Limits, Result, Sandbox, Status, make_sandbox
from gem.sandbox.factory import BACKENDS

if TYPE_CHECKING:
    from gem.testing import CheckResult

EXIT_CODES = {Status.TIMEOUT: 124, Status.MEMORY: 137, Status.OUTPUT_LIMIT: 137}
REASONS = {
    Status.TIMEOUT: "it used up its time",
    Status.MEMORY: "it used up its memory",
    Status.OUTPUT_LIMIT: "it wrote without end",
}
_COLORS = {"passed": "green", "failed": "bold red", "unchecked": "yellow"}


@dataclass(frozen=True, kw_only=True)
class Config:
    action: Literal["report", "run", "selftest", "serve"] = flag(REQUIRED, help="what to do", positional=True)
    file: str = flag("", help="with run: the program, - for the standard input", positional=True)
    backend: str = flag("auto", help="which sandbox", choices=["auto", *BACKENDS])
    level: Literal["auto", "ns", "lsm", "basic"] = flag("auto", help="of the zygote backend")
    image: str | None = flag(None, help="of docker and podman")
    url: str | None = flag(None, help="of remote")
    wall_s: float = flag(Limits.wall_s, help="seconds of wall clock")
    cpu_s: float | None = flag(None, help="seconds of CPU; by default wall_s + 1")
    memory_bytes: int = flag(Limits.memory_bytes, help="bytes of memory")
    processes: int = flag(Limits.processes, help="processes and threads alive at once")
    disk_bytes: int = flag(Limits.disk_bytes, help="bytes written to files")
    output_bytes: int = flag(Limits.output_bytes, help="bytes kept of each output")
    network: bool = flag(False, help="let it reach the network")
    host: str = flag("127.0.0.1", help="with serve: the address to listen at")
    port: int = flag(8900, help="with serve: the port to listen at")


def run(config: Config) -> int:
    if config.file and config.action != "run":
        raise BadValue(f"gem sandbox {config.action} takes no file, got {config.file!r}")
    if config.action == "run" and not config.file:
        raise BadValue("gem sandbox run needs a file, or - for the standard input")
    chosen = {"level": config.level, "image": config.image, "url": config.url}
    options = {name: value for name, value in chosen.items() if value not in ("auto", None)}
    limits = Limits(**{field.name: getattr(config, field.name) for field in fields(Limits)})
    with make_sandbox(config.backend, limits=limits, **options) as sandbox:
        if config.action == "report":
            return _report(sandbox)
        if config.action == "run":
            return _run(sandbox, config.file)
        return _selftest(sandbox) if config.action == "selftest" else _serve(sandbox, config.host, config.port)


def _report(sandbox: Sandbox) -> int:
    report = sandbox.report()
    print(f"backend  {report.backend}")
    print(f"level    {report.level or 'it has none'}\n")
    width = max(map(len, report.guarantees))
    for name, means in report.guarantees.items():
        print(f"  {name:<{width}}  {means or 'NOT ENFORCED'}")
    for number, note in enumerate(report.notes):
        print(f"{'' if number else chr(10)}- {note}")
    return 0


def _run(sandbox: Sandbox, file: str) -> int:
    given = b"" if sys.stdin is None or (sys.stdin.isatty() and file != "-") else sys.stdin.buffer.read()
    program, stdin = (given, b"") if file == "-" else (Path(file).read_bytes(), given)
    result = sandbox.run(program, stdin=stdin)
    sys.stdout.write(result.stdout)
    sys.stdout.flush()
    sys.stderr.write(result.stderr)
    if result.status in EXIT_CODES:
        print(f"gem: stopped: {REASONS[result.status]}", file=sys.stderr)
    return _exit_code(result)


def _exit_code(result: Result) -> int:
    if result.status in EXIT_CODES:
        return EXIT_CODES[result.status]
    return 128 + result.signal if result.exit_code is None and result.signal else result.exit_code or 0


def _selftest(sandbox: Sandbox) -> int:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from gem.testing.check_sandbox import CHECKS, check_sandbox

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) if console.is_terminal else nullcontext() as progress:
        task = None if progress is None else progress.add_task("", total=len(CHECKS))

        def show(name: str) -> None:
            if progress is not None and task is not None:
                progress.update(task, description=name, advance=1)

        findings = check_sandbox(sandbox, started=lambda check: show(check.name))
    _show(findings, sandbox)
    return 1 if any(finding.status == "failed" for finding in findings) else 0


def _show(findings: list[CheckResult], sandbox: Sandbox) -> None:
    from rich.console import Console
    from rich.text import Text

    console, width = Console(highlight=False, soft_wrap=True), max(len(finding.name) for finding in findings)
    for finding in findings:
        word = "FAILED" if finding.status == "failed" else finding.status
        line = Text.assemble(
            (f"{word:<9}", _COLORS[finding.status]), f"  {finding.name:<{width}}  {finding.description}"
        )
        console.print(line)
        if finding.detail:
            console.print(Text(f"{'':<9}  {'':<{width}}  {finding.detail}", "dim"))
    counts = {status: sum(finding.status == status for finding in findings) for status in _COLORS}
    report = sandbox.report()
    name = f"{report.backend}{report.level and ', level ' + report.level}"
    console.print(
        f"\n{name}: {counts['passed']} of {len(findings)} promises kept, "
        f"{counts['failed']} broken, {counts['unchecked']} not made or not checked"
    )


def _serve(sandbox: Sandbox, host: str, port: int) -> int:
    from gem.sandbox.remote_server import SandboxServer

    token = os.environ.get("GEM_SANDBOX_TOKEN", "")
    if not token:
        raise BadValue("gem sandbox serve needs a token in GEM_SANDBOX_TOKEN: who shows it may run programs here")
    server = SandboxServer(sandbox, token=token, host=host, port=port)
    print(f"serving at {server.url}; stop with Ctrl-C", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.shut_down()
    return 0
