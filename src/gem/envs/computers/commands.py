"""Commands in replies: how they are written, and how their results are shown."""

from __future__ import annotations

import re
from dataclasses import replace

from gem.sandbox import Limits, Result

MAX_TIMEOUT_S = 120.0  # for a command that asks for more time
FINISH = re.compile(r"<finish\s*/?>|</finish>")
_YAML = re.compile(
    r"\s*cmd:[ \t]*(?P<cmd>.*?)(?:\n\s*timeout_secs:[ \t]*(?P<seconds>[0-9.]{1,9})[ \t]*)?\s*", re.DOTALL
)


def read_command(body: str) -> tuple[str, float | None]:
    r"""Return a command and its time limit in seconds, or None, from bash source or from YAML.

    >>> read_command("ls"), read_command("cmd: ls -l\ntimeout_secs: 5")
    (('ls', None), ('ls -l', 5.0))
    """
    found = _YAML.fullmatch(body)
    if found is None:
        return body.strip("\n"), None
    command = found["cmd"]
    if command[:1] in ("|", ">"):  # a block of text
        rest = command.partition("\n")[2]
        indent = len(rest) - len(rest.lstrip(" "))
        command = "\n".join(line[indent:] for line in rest.split("\n"))
    elif len(command) > 1 and command[0] == command[-1] == "'":
        command = command[1:-1].replace("''", "'")
    elif len(command) > 1 and command[0] == command[-1] == '"':
        command = re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), command[1:-1])
    try:
        seconds = float(found["seconds"]) if found["seconds"] else None
    except ValueError:
        seconds = None
    return command, min(seconds, MAX_TIMEOUT_S) if seconds else None


def shown_result(result: Result, seconds: float) -> str:
    """Return the observation of a command: its output, exit status, and the limit of ``seconds`` if it hit that."""
    lines = [f"<bash_output>\n{result.stdout.rstrip(chr(10))}\n</bash_output>", f"exit status {result.exit_code}"]
    if stopped := replace(result, state_lost=False).stopped(Limits(wall_s=seconds)):
        lines.append(stopped)
    if result.state_lost:
        lines.append("[the shell ended; a new one starts in the same folder with the exported variables]")
    return "\n".join(lines)
