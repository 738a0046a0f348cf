"""Rule bases whose consequences take several steps: facts about people, rules, and a statement to be judged.

Facts and rules are of the closed world: what cannot be derived is false. A question of depth d takes d rules in a row.
Half of the statements are true, at every depth; the false ones break the same chain at one of its links.
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
    """Whoever has all the traits of ``needs`` has the trait ``gives``."""

    needs: tuple[str, ...]
    gives: str

    def __str__(self) -> str:
        return f"If someone is {' and '.join(self.needs)} then they are {self.gives}."


@dataclass(frozen=True)
class Theory:
    """facts: (name, trait) pairs."""

    facts: frozenset[tuple[str, str]]
    rules: tuple[Rule, ...]

    def consequences(self) -> dict[tuple[str, str], int]:
        """Every fact that follows, and how many rules in a row its shortest derivation takes; 0 for those given."""
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
    """text: facts, rules and what is asked. answer: "True" or "False"."""

    text: str
    answer: str


def draw(rng: random.Random, depth: int, distractors: int = 6) -> Statement:
    """A question of a depth, 0 to MAX_DEPTH.

    distractors: facts and rules that do not matter.
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
    who = names[0]
    sides = [rng.choice(others[:4]) for _ in chain]  # second conditions
    facts = {(who, chain[0])}
    rules = []
    for before, after, side in zip(chain, chain[1:], sides, strict=False):
        joint = rng.random() < 0.5
        rules.append(Rule(tuple(rng.sample([before, side], 2)) if joint else (before,), after))
        if joint:
            facts.add((who, side))
    if not truth:
        facts, rules = _broken(rng, who, facts, rules)
    facts |= {(rng.choice(names), rng.choice(traits)) for _ in range(distractors)}
    rules += [Rule(tuple(rng.sample(traits, 2)), rng.choice(others)) for _ in range(distractors // 2)]
    rng.shuffle(rules)
    return Theory(frozenset(facts), tuple(rules)), (who, chain[-1])


def _broken(
    rng: random.Random, who: str, facts: set[tuple[str, str]], rules: list[Rule]
) -> tuple[set[tuple[str, str]], list[Rule]]:
    """The same with one fact given to somebody else, so that the chain does not hold."""
    lost = rng.choice(sorted(facts))
    other = rng.choice([name for name in NAMES if name != who])
    return (facts - {lost}) | {(other, lost[1])}, rules


def _text(rng: random.Random, theory: Theory, asked: tuple[str, str]) -> str:
    facts = [f"{name} is {trait}." for name, trait in theory.facts]
    facts.sort()
    rng.shuffle(facts)
    return (
        "Facts: " + " ".join(facts) + "\nRules: " + " ".join(map(str, theory.rules)) + "\n"
        "Whatever does not follow from the facts and rules is false.\n"
        f"Statement: {asked[0]} is {asked[1]}. Is it True or False?"
    )
