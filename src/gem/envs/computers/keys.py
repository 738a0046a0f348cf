"""Keys for interactive programs in terminal tasks: actions, observations, and a policy that types its commands."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from gem.sandbox.screen import TerminalScreen, key_bytes

MAX_ACTIONS = 100  # of one reply
_OPEN = re.compile(r'<keys(?:\s+wait="?([0-9]{1,3}(?:\.[0-9]{1,3})?)"?\s*)?>')
_PROMPT = re.compile(r"(?:^|\n)\S* \$\Z")

RULES = (
    "For interactive programs, such as an editor or a pager, type keys between <keys> and </keys>; I answer with the "
    "screen. Names of keys, as in <keys>C-c</keys> or <keys>Up Enter</keys>, press those keys; any other text is typed "
    'as it is, and a line break is Enter. Several <keys> in a reply are typed in order; <keys wait="5"> waits for at '
    "least 5 seconds before I answer."
)  # fmt: skip


class Keys(NamedTuple):
    """What a reply types: the bytes, and the least seconds to wait. ``start`` is where the first action starts."""

    data: bytes
    wait_s: float
    start: int


def read_keys(reply: str) -> Keys | None:
    r"""Return what the ``<keys>`` of a reply type, or None if there are none.

    >>> read_keys('<keys>vi a.txt</keys><keys>Enter</keys> then <keys wait="2">:q\n</keys>')
    Keys(data=b'vi a.txt\r:q\r', wait_s=2.0, start=0)
    """
    data, wait_s, position, first = b"", 0.0, 0, -1
    for _ in range(MAX_ACTIONS):
        found = _OPEN.search(reply, position)
        close = reply.find("</keys>", found.end()) if found else -1
        if found is None or close < 0:
            break
        data += key_bytes(reply[found.end() : close])
        wait_s = max(wait_s, float(found[1] or 0))
        position, first = close + len("</keys>"), found.start() if first < 0 else first
    return None if first < 0 else Keys(data, wait_s, first)


def shown(screen: TerminalScreen, *, is_open: bool, problem: str = "") -> str:
    """Return the observation of a screen. ``problem`` is that of Typed."""
    row, column = screen.cursor
    lines = [f"<screen>\n{screen.text()}\n</screen>", f"cursor in row {row}, column {column}"]
    if problem:
        lines.append(f"[{problem}]")
    if not is_open:
        lines.append("[the terminal closed; the next keys open a new one]")
    return "\n".join(lines)


class KeysOracle:
    """Types the reference solution into the terminal, in the style of Terminus: it looks at the screen and waits.

    A command is typed when the screen ends with a prompt. Needs a TerminalEnv with ``keys=True``.
    """

    def __init__(self, env: Any) -> None:
        self.env, self.typed = env, 0

    def act(self, observation: Any) -> str:
        if self.env.state.turn == 0:
            self.typed = 0
        elif _PROMPT.search(observation.partition("<screen>")[2].partition("\n</screen>")[0]) is None:
            return '<keys wait="1"></keys>'
        solution = self.env.task().solution
        if self.typed == len(solution):
            return "<finish>"
        self.typed += 1
        # A tab would complete a name; C-v types it.
        lines = solution[self.typed - 1].replace("\t", "\x16\t")
        return f"<keys>clear\n</keys><keys>{lines}\n</keys>"
