r"""TwentyQuestions: find the secret one of a list of objects by asking about their attributes.

Action       text containing ``\boxed{ask red}``, which asks whether the secret object is red, or
             ``\boxed{guess kite}``, which names it; the last such box counts.
Observation  the rules card with all objects on reset, then one line per turn.
Reward       1.0 for naming the object; -0.1 for an unreadable turn, which ends the game; else 0.0.
Ends         terminated after a guess, right or wrong, or on an unreadable turn; truncated at the turn limit.
Bound        always asking the question that splits the objects left most evenly needs at most turn_limit() turns;
             ``max_turns`` may be less.
Instances    each object has one value of every attribute, drawn at random; no two objects are alike.

>>> split((("red", "small"), ("red", "large"), ("blue", "small")), (0, 1, 2))
'red'
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gem._internal.counts import check_count
from gem.core import StopReason
from gem.envs.game import SUCCESS, GameEnv, OnUnreadable, Outcome
from gem.errors import BadValue
from gem.parsing import last_boxed

ATTRIBUTES = {
    "color": ("red", "blue", "green", "white"),
    "size": ("small", "large", "huge"),
    "material": ("wooden", "metal", "glass", "paper"),
    "age": ("old", "new"),
    "state": ("broken", "wet", "clean"),
}
_NAMES = """
anchor arrow badge barrel basket bell bench blanket boat book bottle bowl box bracelet brush bucket button cage
candle cap card chain chair clock coat coin comb compass crown cup curtain desk doll door drum envelope fan flag
flute fork frame glove guitar hammer handle hat helmet hook horn jar jug kettle key kite knife ladder lamp lantern
lock map mask medal mirror mug nail needle
"""
NAMES = tuple(_NAMES.split())
OBJECTS = range(4, len(NAMES) + 1)
_MOVE = re.compile(r"\s*(ask|guess)\s*:?\s*([a-z]{1,20})\s*\??\s*", re.IGNORECASE | re.ASCII)
_ROW = re.compile(r"^- ([a-z]+): ([a-z, ]+)$", re.MULTILINE)
_ANSWER = re.compile(r"^Turn \d+: ([a-z]+)\? (Yes|No)\.", re.MULTILINE)


@dataclass(frozen=True)
class State:
    """State of an episode.

    Args:
        names: the objects.
        traits: the attribute values of each object.
        secret: index of the secret object.
        depth: most turns that the greedy questions take, the guess included.
    """

    names: tuple[str, ...]
    traits: tuple[tuple[str, ...], ...]
    secret: int
    depth: int


def split(traits: Sequence[Sequence[str]], left: Sequence[int]) -> str:
    """Return the value that splits the objects left most evenly; the first of them by first occurrence."""
    counts: dict[str, int] = {}
    for index in left:
        for value in traits[index]:
            counts[value] = counts.get(value, 0) + 1
    return min(counts, key=lambda value: abs(2 * counts[value] - len(left)))


def greedy_depth(traits: Sequence[Sequence[str]], left: Sequence[int]) -> int:
    """Return how many turns the greedy questions take at most, the guess included."""
    if len(left) == 1:
        return 1
    value = split(traits, left)
    parts = [[i for i in left if (value in traits[i]) == answer] for answer in (True, False)]
    return 1 + max(greedy_depth(traits, part) for part in parts)


class TwentyQuestionsEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        objects: number of objects, 4 to 66.
        attributes: number of attributes, 2 to 5; they must have at least twice as many combinations as objects.
        slack: turns allowed beyond those that the greedy questions take at most.
        max_turns: number of turns allowed in any case.
        on_unreadable: see GameEnv.

    Raises:
        BadValue: for values outside these ranges, or when max_turns < 1.
    """

    state: State
    move_format = r"\boxed{ask red}"

    def __init__(
        self,
        objects: int = 30,
        attributes: int = 4,
        slack: int = 2,
        max_turns: int = 20,
        *,
        on_unreadable: OnUnreadable = "end",
    ) -> None:
        check_count("objects", objects, OBJECTS[0], OBJECTS[-1])
        check_count("attributes", attributes, 2, len(ATTRIBUTES))
        check_count("slack", slack, 0)
        combinations = 1
        for values in list(ATTRIBUTES.values())[:attributes]:
            combinations *= len(values)
        if 2 * objects > combinations:
            raise BadValue(f"objects must be at most {combinations // 2} with {attributes} attributes, got {objects}")
        self.objects, self.attributes, self.slack = objects, attributes, slack
        super().__init__(max_turns=max_turns, on_unreadable=on_unreadable)

    def start(self) -> State:
        kinds = list(ATTRIBUTES.values())[: self.attributes]
        names = sorted(self.rng.sample(NAMES, self.objects))
        traits: dict[tuple[str, ...], None] = {}  # ordered, without repetitions
        while len(traits) < self.objects:
            traits[tuple(self.rng.choice(values) for values in kinds)] = None
        drawn = tuple(traits)
        depth = greedy_depth(drawn, range(self.objects))
        return State(tuple(names), drawn, self.rng.randrange(self.objects), depth)

    def turn_limit(self) -> int:
        return min(self.max_turns, self.state.depth + self.slack)

    def rules(self) -> str:
        state = self.state
        rows = [f"- {name}: {', '.join(traits)}" for name, traits in zip(state.names, state.traits, strict=True)]
        return (
            f"Twenty Questions: find the secret object of this list, in at most {self.turn_limit()} turns.\n"
            + "\n".join(rows)
            + "\nA turn asks whether the object has an attribute, or guesses it. A guess ends the game: the secret "
            "object earns 1, another one 0.\n"
            rf"Write each turn in a box: \boxed{{ask red}}, or \boxed{{guess {state.names[0]}}}."
        )

    def read(self, action: str) -> tuple[str, str] | None:
        content = last_boxed(action, _MOVE)
        match = None if content is None else _MOVE.fullmatch(content)
        return None if match is None else (match[1].lower(), match[2].lower())

    def play(self, move: tuple[str, str]) -> Outcome:
        (verb, word), state = move, self.state
        if verb == "guess":
            if word not in state.names:
                return Outcome(f"{word} is not in the list.", invalid="not_in_the_list")
            if word == state.names[state.secret]:
                return Outcome(f"{word} is the secret object.", SUCCESS, StopReason.SOLVED)
            return Outcome(f"{word} is not the secret object.", stop=StopReason.LOST)
        if not any(word in traits for traits in state.traits):
            return Outcome(f"no object of the list is {word}.", invalid="unknown_attribute")
        return Outcome(f"{word}? {'Yes' if word in state.traits[state.secret] else 'No'}.")

    def state_key(self) -> str | None:
        return None  # the answers so far are in the history alone

    def secrets(self) -> list[str]:
        return []  # all names are in the card; tests compare the observations of different secrets

    def sample_random_action(self) -> str:
        values = sorted({value for traits in self.state.traits for value in traits})
        asks = self.action_rng.random() < 0.5
        word = self.action_rng.choice(values if asks else self.state.names)
        return rf"\boxed{{{'ask' if asks else 'guess'} {word}}}"

    def ordered_actions(self) -> Iterator[str]:
        values = dict.fromkeys(value for traits in self.state.traits for value in traits)
        for value in list(values)[: self.turn_limit() - 1]:
            yield rf"\boxed{{ask {value}}}"
        yield rf"\boxed{{guess {self.state.names[0]}}}"


class Oracle:
    """Ask the question that splits the objects left most evenly; uses only observations."""

    def __init__(self, env: TwentyQuestionsEnv) -> None:
        self.names: list[str] = []
        self.traits: list[list[str]] = []
        self.left: list[int] = []

    def act(self, observation: str) -> str:
        if rows := _ROW.findall(observation):
            self.names = [name for name, _ in rows]
            self.traits = [values.split(", ") for _, values in rows]
            self.left = list(range(len(rows)))
        elif answer := _ANSWER.search(observation):
            self.left = [i for i in self.left if (answer[1] in self.traits[i]) == (answer[2] == "Yes")]
        if len(self.left) == 1:
            return rf"\boxed{{guess {self.names[self.left[0]]}}}"
        return rf"\boxed{{ask {split(self.traits, self.left)}}}"
