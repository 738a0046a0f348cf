"""Generate multi-step deduction questions: facts about people, if-then rules, and a statement to evaluate.

The closed-world assumption holds: a statement that cannot be derived is false. A statement is true with probability
1/2. It is made false by moving one fact that its chain of rules requires to another person, or, with negation, by
stating a fact that a rule forbids.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from gem._internal.counts import check_count
from gem.envs.questions.families.template import Methods

NAMES = ["Alba", "Bruno", "Celia", "Dario", "Edda", "Falk", "Greta", "Hugo"]
TRAITS = [
    *("big", "blue", "brave", "calm", "clever", "cold", "curious", "fair", "furry", "gentle", "green", "kind", "loud"),
    *("nice", "old", "patient", "proud", "quiet", "red", "rough", "round", "shy", "smart", "strong", "tall", "young"),
]
MAX_DEPTH = 8
VERBS = ["trusts", "helps", "teaches"]


@dataclass(frozen=True)
class Rule:
    """A person with all traits in ``needs``, and none in ``lacks``, also has the trait ``gives``.

    Args:
        needs: traits of the person. With a verb, the traits of someone whom the person trusts, helps or teaches.
        lacks: traits that must not follow; no rule gives one of them.
        verb: None, or how the person is related to someone who has the traits.
    """

    needs: tuple[str, ...]
    gives: str
    lacks: tuple[str, ...] = ()
    verb: str | None = None

    def __str__(self) -> str:
        conditions = " and ".join([*self.needs, *(f"not {trait}" for trait in self.lacks)])
        if self.verb is None:
            return f"If someone is {conditions}, then they are {self.gives}."
        return f"If someone {self.verb} a person who is {conditions}, then they are {self.gives}."


@dataclass(frozen=True)
class Theory:
    """Facts, as (name, trait) pairs, rules, and relations, as (name, verb, name) triples."""

    facts: frozenset[tuple[str, str]]
    rules: tuple[Rule, ...]
    relations: frozenset[tuple[str, str, str]] = field(default_factory=frozenset)

    def consequences(self) -> dict[tuple[str, str], int]:
        """Return all facts that can be derived, with the smallest depth of a derivation (0 for given facts)."""
        depth = dict.fromkeys(self.facts, 0)
        step, grown = 0, True
        while grown:
            step += 1
            holders = {name for name, _ in depth}
            new = {
                (name, rule.gives): step
                for rule in self.rules
                for holder in holders
                if all((holder, need) in depth for need in rule.needs)
                and not any((holder, trait) in depth for trait in rule.lacks)
                for name in self._related(holder, rule.verb)
                if (name, rule.gives) not in depth
            }
            depth |= new
            grown = bool(new)
        return depth

    def _related(self, holder: str, verb: str | None) -> list[str]:
        """Return the people who get the trait of a rule if its conditions hold for ``holder``."""
        return (
            [holder]
            if verb is None
            else [name for name, how, other in self.relations if (how, other) == (verb, holder)]
        )


class Statement(NamedTuple):
    """A question.

    Args:
        text: facts, rules and the statement.
        answer: "True" or "False".
    """

    text: str
    answer: str


class Deduction(NamedTuple):
    """A theory, and the fact to decide. Drawn for a statement that is meant to be true or false."""

    theory: Theory
    asked: tuple[str, str]


Kind = Callable[[random.Random, int, bool], Deduction]


def methods(distractors: int, depth: int | None = None) -> Methods:
    """Return the templates of the levels.

    Args:
        distractors: number of irrelevant facts; half as many irrelevant rules are added.
        depth: None, or the number of chained rules of every question, 0 to MAX_DEPTH.

    Raises:
        BadValue: depth is out of range.
    """
    if depth is None:
        return {level: [_Template(kind.__name__, kind, distractors)] for level, kind in KINDS.items()}
    check_count("depth", depth, 0, MAX_DEPTH)
    kind = partial(_joint_chain, depth)
    return {level: [_Template(conjunction.__name__, kind, distractors)] for level in KINDS}


def draw(rng: random.Random, level: int, kind: Kind, distractors: int = 6) -> Statement:
    """Draw a question whose statement is true with probability 1/2.

    Args:
        level: 1 to 5; passed to ``kind``.
        kind: draws the chain of rules that decides the statement.
        distractors: number of irrelevant facts; half as many irrelevant rules are added.
    """
    truth = rng.random() < 0.5
    while True:
        chain, asked = kind(rng, level, truth)
        theory = _with_distractors(rng, chain, asked, distractors)
        if theory.consequences().get(asked) == (len(chain.rules) if truth else None):
            return Statement(_text(rng, theory, asked), str(truth))


def one_rule(rng: random.Random, level: int, truth: bool) -> Deduction:
    return _chained(rng, 1, truth)


def chain_of_rules(rng: random.Random, level: int, truth: bool) -> Deduction:
    return _chained(rng, level, truth)


def conjunction(rng: random.Random, level: int, truth: bool) -> Deduction:
    return _chained(rng, level, truth, joint=True)


def negation(rng: random.Random, level: int, truth: bool) -> Deduction:
    """A chain in which one rule forbids a trait. Either the person or somebody else has this trait."""
    whole = truth or rng.random() < 0.7
    theory, (person, last) = _chained(rng, level - 1, whole, joint=True)
    facts, rules = theory.facts, theory.rules
    used = {last, *(need for rule in rules for need in rule.needs)}
    forbidden, harmless = rng.sample([trait for trait in TRAITS if trait not in used], 2)
    changed = rng.randrange(len(rules))
    rules = tuple(Rule(rule.needs, rule.gives, (forbidden,)) if i == changed else rule for i, rule in enumerate(rules))
    other = rng.choice([name for name in NAMES if name != person])
    has, has_not = (other, person) if truth or not whole else (person, other)
    return Deduction(Theory(facts | {(has, forbidden), (has_not, harmless)}, rules), (person, last))


def relations(rng: random.Random, level: int, truth: bool) -> Deduction:
    """A chain that passes from person to person, along who trusts, helps or teaches whom."""
    traits, people = rng.sample(TRAITS, 4), rng.sample(NAMES, 4)
    verbs = rng.sample(VERBS, 2)
    rules = (
        Rule((traits[0],), traits[1], verb=verbs[0]),
        Rule((traits[1],), traits[2]),
        Rule((traits[2],), traits[3], verb=verbs[1]),
    )
    related = [(people[1], verbs[0], people[0]), (people[2], verbs[1], people[1])]
    if not truth:
        broken = rng.randrange(2)
        name, verb, other = related[broken]
        related[broken] = rng.choice([(other, verb, name), (name, verb, people[3])])
    return Deduction(Theory(frozenset({(people[0], traits[0])}), rules, frozenset(related)), (people[2], traits[3]))


KINDS: dict[int, Kind] = dict(enumerate([one_rule, chain_of_rules, conjunction, negation, relations], start=1))


@dataclass(frozen=True)
class _Template:
    """Draws statements of one kind. A nested function could not be pickled."""

    name: str
    kind: Kind
    distractors: int

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, rng: random.Random, level: int) -> Statement:
        return draw(rng, level, self.kind, self.distractors)


def _joint_chain(depth: int, rng: random.Random, level: int, truth: bool) -> Deduction:
    return _chained(rng, depth, truth, joint=True)


def _chained(rng: random.Random, depth: int, truth: bool, *, joint: bool = False) -> Deduction:
    """Draw a chain of rules about one person. With ``joint``, the first rule and half of the others need two traits."""
    traits = rng.sample(TRAITS, len(TRAITS))
    steps, sides = traits[: depth + 1], traits[depth + 1 :]
    person = rng.choice(NAMES)
    facts: set[tuple[str, str]] = {(person, steps[0])}
    rules: list[Rule] = []
    for before, after, side in zip(steps, steps[1:], sides, strict=False):
        if joint and (not rules or rng.random() < 0.5):
            facts.add((person, side))
            rules.append(Rule(tuple(rng.sample([before, side], 2)), after))
        else:
            rules.append(Rule((before,), after))
    # One harmless fact and one of another person, whether true or false, so that counting facts tells nothing.
    other = rng.choice([name for name in NAMES if name != person])
    moved = None if truth else rng.choice(sorted(facts))
    if moved is None:
        facts.add((other, traits[-1]))
    else:
        facts = (facts - {moved}) | {(other, moved[1]), (person, traits[-1])}
    return Deduction(Theory(frozenset(facts), tuple(rules)), (person, steps[-1]))


def _with_distractors(rng: random.Random, chain: Theory, asked: tuple[str, str], count: int) -> Theory:
    """Add facts about four people, and rules with conditions like those of the chain that give other traits."""
    known = sorted({asked[0], *(name for name, _ in chain.facts), *(n for a, _, b in chain.relations for n in (a, b))})
    people = known + rng.sample([name for name in NAMES if name not in known], max(0, 4 - len(known)))
    forbidden = {trait for rule in chain.rules for trait in rule.lacks}
    others = [trait for trait in TRAITS if trait not in forbidden]
    used = {asked[1], *(rule.gives for rule in chain.rules), *(need for rule in chain.rules for need in rule.needs)}
    facts = {(rng.choice(people), rng.choice(TRAITS)) for _ in range(count)}
    rules, related = list(chain.rules), set(chain.relations)
    for _ in range(count // 2):
        like = rng.choice(chain.rules) if chain.rules else Rule((asked[1],), asked[1])
        needs = tuple(rng.sample(others, len(like.needs)))
        gives = rng.choice([trait for trait in others if trait not in used and trait not in needs])
        rules.append(Rule(needs, gives, like.lacks, like.verb))
        if chain.relations:
            name, other = rng.sample(people, 2)
            related.add((name, rng.choice(VERBS), other))
    rng.shuffle(rules)
    return Theory(chain.facts | facts, tuple(rules), frozenset(related))


def _text(rng: random.Random, theory: Theory, asked: tuple[str, str]) -> str:
    facts = [f"{name} is {trait}." for name, trait in sorted(theory.facts)]
    facts += [f"{name} {verb} {other}." for name, verb, other in sorted(theory.relations)]
    rng.shuffle(facts)
    example = next(
        (
            f" For example, a person is not {r.lacks[0]} unless it follows that they are."
            for r in theory.rules
            if r.lacks
        ),
        "",
    )
    rules = [f"Rules: {' '.join(map(str, theory.rules))}"] if theory.rules else []
    return "\n".join(
        [
            f"Facts: {' '.join(facts)}",
            *rules,
            f"Everything that does not follow from the facts and rules is false.{example}",
            f"Statement: {asked[0]} is {asked[1]}. Is the statement True or False?",
        ]
    )
