"""Generate multi-step deduction questions: facts about people, if-then rules, and a statement to evaluate.

The closed-world assumption holds: a statement that cannot be derived is false. A question of depth d has a chain of d
rules. At every depth, a statement is true with probability 1/2. A statement is made false by moving one fact that its
chain requires to another person.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple

NAMES = ["Alba", "Bruno", "Celia", "Dario", "Edda", "Falk", "Greta", "Hugo"]
TRAITS = [
    *("big", "blue", "brave", "calm", "clever", "cold", "curious", "fair", "furry", "gentle", "green", "kind", "loud"),
    *("nice", "old", "patient", "proud", "quiet", "red", "rough", "round", "shy", "smart", "strong", "tall", "young"),
]
MAX_DEPTH = 8


@dataclass(frozen=True)
class Rule:
    """A person with all traits in ``needs`` also has the trait ``gives``."""

    needs: tuple[str, ...]
    gives: str

    def __str__(self) -> str:
        return f"If someone is {' and '.join(self.needs)}, then they are {self.gives}."


@dataclass(frozen=True)
class Theory:
    """Facts, as (name, trait) pairs, and rules."""

    facts: frozenset[tuple[str, str]]
    rules: tuple[Rule, ...]

    def consequences(self) -> dict[tuple[str, str], int]:
        """Return all facts that can be derived, with the smallest depth of a derivation (0 for given facts)."""
        depth = dict.fromkeys(self.facts, 0)
        step, grown = 0, True
        while grown:
            step += 1
            new = {
                (name, rule.gives): step
                for name in {name for name, _ in depth}
                for rule in self.rules
                if (name, rule.gives) not in depth and all((name, need) in depth for need in rule.needs)
            }
            depth |= new
            grown = bool(new)
        return depth


class Statement(NamedTuple):
    """A question.

    Args:
        text: facts, rules and the statement.
        answer: "True" or "False".
    """

    text: str
    answer: str


def draw(rng: random.Random, depth: int, distractors: int = 6) -> Statement:
    """Draw a question.

    Args:
        depth: number of chained rules, 0 to MAX_DEPTH.
        distractors: number of irrelevant facts; half as many irrelevant rules are added.
    """
    truth = rng.random() < 0.5
    while True:
        theory, asked = _theory(rng, depth, distractors, truth)
        derived = theory.consequences()
        if derived.get(asked) == (depth if truth else None):
            return Statement(_text(rng, theory, asked), str(truth))


def _theory(rng: random.Random, depth: int, distractors: int, truth: bool) -> tuple[Theory, tuple[str, str]]:
    traits = rng.sample(TRAITS, len(TRAITS))
    chain, others = traits[: depth + 1], traits[depth + 1 :]
    names = rng.sample(NAMES, 4)
    person = names[0]
    sides = [rng.choice(others[:4]) for _ in chain]  # traits for the second conditions of rules
    facts = {(person, chain[0])}
    rules = []
    for before, after, side in zip(chain, chain[1:], sides, strict=False):
        joint = rng.random() < 0.5
        rules.append(Rule(tuple(rng.sample([before, side], 2)) if joint else (before,), after))
        if joint:
            facts.add((person, side))
    if not truth:
        facts = _break_chain(rng, person, facts)
    facts |= {(rng.choice(names), rng.choice(traits)) for _ in range(distractors)}
    rules += [Rule(tuple(rng.sample(traits, 2)), rng.choice(others)) for _ in range(distractors // 2)]
    rng.shuffle(rules)
    return Theory(frozenset(facts), tuple(rules)), (person, chain[-1])


def _break_chain(rng: random.Random, person: str, facts: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Move one fact to another person, so that the chain of rules no longer applies to ``person``."""
    moved = rng.choice(sorted(facts))
    other = rng.choice([name for name in NAMES if name != person])
    return (facts - {moved}) | {(other, moved[1])}


def _text(rng: random.Random, theory: Theory, asked: tuple[str, str]) -> str:
    facts = [f"{name} is {trait}." for name, trait in theory.facts]
    facts.sort()
    rng.shuffle(facts)
    return (
        "Facts: " + " ".join(facts) + "\nRules: " + " ".join(map(str, theory.rules)) + "\n"
        "Anything that does not follow from the facts and rules is false.\n"
        f"Statement: {asked[0]} is {asked[1]}. Is the statement True or False?"
    )
