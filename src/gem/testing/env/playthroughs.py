r"""Golden playthroughs: record an episode as text, replay the recorded actions and compare the texts line by line.

A replay needs no policy, because the text contains the actions. The comparison shows every change of the environment's
observations, rewards and info.

>>> text = record("game:GuessTheNumber-v0-easy", seed=0)
>>> print("\n".join(text.split("\n")[:3]))
playthrough of game:GuessTheNumber-v0-easy
seed 0
actions by the oracle
>>> replay(text)
[]
>>> print(*replay(text.replace("Guess the", "Find a")), sep="\n")
line 6
  - < Find a secret integer between 1 and 10, in at most 4 turns.
  + < Guess the secret integer between 1 and 10, in at most 4 turns.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

from gem.core import Step
from gem.errors import BadValue
from gem.policies import oracle
from gem.registry import ENV_REGISTRY, make
from gem.testing.plain_data import canonical, plain

MAX_TURNS = 2_000  # maximum number of turns to record
_HEADER = re.compile(r"playthrough of (.+)\nseed (\d+)\nactions (.+)\n")
ActionFunction = Callable[[Any], "str | None"]  # observation → action; None ends the recording


class Difference(NamedTuple):
    """A line that differs from the recording.

    Args:
        line: number of the line in the recording, starting at 1.
        recorded: the line in the recording; None if the line is only in the replay.
        replayed: the line in the replay; None if the line is only in the recording.
    """

    line: int
    recorded: str | None
    replayed: str | None

    def __str__(self) -> str:
        sides = (("-", self.recorded), ("+", self.replayed))
        return "\n".join([f"line {self.line}", *(f"  {sign} {text}" for sign, text in sides if text is not None)])


def record(env_id: str, seed: int = 0) -> str:
    """Play one episode and return it as text.

    The oracle chooses the actions. If the environment has no oracle, the actions are random legal actions.

    Raises:
        UnknownEnv: no environment has this id.
    """
    with make(env_id) as env:
        if ENV_REGISTRY[env_id].oracle is not None:
            return _transcript(env, seed, "by the oracle", oracle(env).act)
        return _transcript(env, seed, "at random", lambda observation: env.sample_random_action())


def replay(text: str) -> list[Difference]:
    """Replay the actions of a playthrough and return the lines that differ.

    Raises:
        BadValue: the text is not a playthrough.
        UnknownEnv: the environment of the playthrough is not registered.
    """
    env_id, seed, chosen = header(text)
    actions = iter(recorded_actions(text))
    with make(env_id) as env:
        replayed = _transcript(env, seed, chosen, lambda observation: next(actions, None))
    return list(_differences(text.split("\n"), replayed.split("\n")))


def header(text: str) -> tuple[str, int, str]:
    """Return (id, seed, how the actions were chosen). Raises BadValue if the text is not a playthrough."""
    match = _HEADER.match(text)
    if match is None:
        raise BadValue(
            f"not a playthrough: it starts with {text[:40]!r}, not 'playthrough of ID', 'seed N', 'actions …'"
        )
    return match[1], int(match[2]), match[3]


def recorded_actions(text: str) -> list[str]:
    """Return the actions of a playthrough, in order."""
    actions: list[list[str]] = []
    for line in text.split("\n"):
        if re.match(r"turn \d+$", line):
            actions.append([])
        elif line.startswith(">") and actions:
            actions[-1].append(line[2:])
    return ["\n".join(lines) for lines in actions]


def file_name(env_id: str) -> str:
    """Return the file name for an id. Characters other than letters, digits, "_", "." and "-" become "_".

    >>> file_name("game:Wordle-v0")
    'game_Wordle-v0.txt'
    """
    return re.sub(r"[^\w.-]", "_", env_id) + ".txt"


def _transcript(env: Any, seed: int, chosen: str, choose: ActionFunction) -> str:
    lines = [f"playthrough of {env.env_id}", f"seed {seed}", f"actions {chosen}", "", "reset"]
    observation, info = env.reset(seed=seed)
    lines += [*_shown(observation), *_info_line(info)]
    total, turn, step = 0.0, 0, None
    while not (step is not None and (step.terminated or step.truncated)) and turn < MAX_TURNS:
        action = choose(observation)
        if action is None:
            break
        turn += 1
        step = Step(*env.step(action))
        observation, total = step.observation, total + step.reward
        lines += ["", f"turn {turn}", *_quoted(">", action), *_shown(observation)]
        lines += [f"reward {step.reward!r}", *_info_line(step.info)]
    return "\n".join([*lines, "", f"end {_ending(step)} after {turn} turns, rewards sum to {total!r}", ""])


def _ending(step: Step | None) -> str:
    if step is None or not (step.terminated or step.truncated):
        return "not reached"
    flags = [name for name in ("terminated", "truncated") if getattr(step, name)]
    reason = step.info.get("stop_reason")
    return " and ".join(flags) + ("" if reason is None else f" ({plain(reason)})")


def _shown(observation: Any) -> list[str]:
    return list(_quoted("<", observation if isinstance(observation, str) else json.dumps(plain(observation), indent=1)))


def _quoted(sign: str, text: str) -> Iterable[str]:
    return (f"{sign} {line}" if line else sign for line in text.split("\n"))


def _info_line(info: dict[str, Any]) -> list[str]:
    recorded = {key: value for key, value in info.items() if key != "stop_reason"}  # shown in the last line
    return [f"info {canonical(recorded)}"] if recorded else []


def _differences(recorded: list[str], replayed: list[str]) -> Iterator[Difference]:
    for tag, a, a_end, b, b_end in difflib.SequenceMatcher(a=recorded, b=replayed).get_opcodes():
        if tag != "equal":
            for offset, (one, other) in enumerate(zip_longest(recorded[a:a_end], replayed[b:b_end])):
                yield Difference(min(a + offset, a_end) + 1, one, other)
