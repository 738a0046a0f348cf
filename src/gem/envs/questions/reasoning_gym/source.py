"""Run the generators and scorers of reasoning-gym in isolation.

The library uses global random state, prints to standard output and emits warnings. Only this module calls the
library. A question is identified by (dataset seed, index) and is the same in every process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import decimal
import io
import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from copy import deepcopy
from functools import lru_cache, wraps
from typing import Any

import numpy as np

from gem._internal.annotations import check_types
from gem._internal.counts import check_count
from gem.errors import BadValue, GraderError, MissingDependency, UnknownArgument, did_you_mean, require

EXTRA = "reasoning"
MANAGED = ("seed", "size")  # configuration fields that are set per dataset

_lock = threading.RLock()  # the global streams, standard output and warning filters are shared by all threads


class Generator:
    """A generator with its configuration. See ReasoningGymEnv for the arguments and errors."""

    def __init__(self, name: str, size: int, level: int | None, config: Mapping[str, Any]) -> None:
        with isolated():
            factory = require("reasoning_gym.factory", extra=EXTRA)
        if name not in factory.DATASETS:
            raise BadValue(f"reasoning-gym has no generator {name!r}{did_you_mean(name, factory.DATASETS)}")
        self.name, self._key = name, (name, size, level, repr(sorted(config.items())))
        self._dataset_class, config_class = factory.DATASETS[name]
        _known_fields(name, config_class, config)
        config = _with_specs(config) if name == "composite" else dict(config)
        with isolated(), _translated_errors(name):
            if level is None:
                self.config = config_class(size=size, **config)
            else:
                leveled = _at_level(name, factory.CURRICULA.get(name), level)
                self.config = dataclasses.replace(leveled, size=size, **config)
            _validate(self.config)

    def dataset(self, seed: int) -> DataSet:
        """Return the dataset of a seed, 0 to 2**31 - 1.

        The process caches recently used datasets, because the environments of a group often use the same dataset.

        Raises:
            BadValue, MissingDependency: the library cannot build the dataset.
        """
        return _dataset(self, seed)

    def build(self, seed: int) -> DataSet:
        with isolated(seed), _translated_errors(self.name):
            dataset = self._dataset_class(dataclasses.replace(self.config, seed=seed))
        _fix_set_order(self.name, dataset)
        return DataSet(self.name, dataset, seed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Generator) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class DataSet:
    """The questions of one dataset seed, and their scorer."""

    def __init__(self, name: str, dataset: Any, seed: int) -> None:
        self.name, self.seed, self._dataset = name, seed, dataset
        # The generator codeio stores its data in a class attribute, which a dataset of another difficulty overwrites.
        self._shared = getattr(type(dataset), "_jsonl_data", None)
        self._last: tuple[int, dict[str, Any]] | None = None

    def entry(self, index: int) -> dict[str, Any]:
        """Return a question as {"question", "answer", "metadata"}.

        "answer" is None if the generator provides no gold answer. The last question is cached, because a group of
        environments requests the same question and some generators need a second per question.

        Raises:
            BadValue: the library cannot generate the question.
        """
        last = self._last
        if last is None or last[0] != index:
            with isolated(self.seed + index), _translated_errors(self.name):
                if self._shared is not None:
                    type(self._dataset)._jsonl_data = self._shared
                self._last = last = index, self._dataset[index]
        return deepcopy(last[1])  # some scorers modify the question

    def score(self, answer: str, entry: Mapping[str, Any]) -> float:
        """Score an answer with the generator's own scorer, 0 to 1.

        Many scorers raise an exception if an answer has an unexpected form. The score of such an answer is 0.

        Raises:
            GraderError: the scorer raised an exception and also rejects the gold answer, so the scorer is broken.
        """
        try:
            return self._score(answer, entry)
        except Exception as e:  # RecursionError, and anything from sympy, json, re and int()
            if self._accepts_gold(entry):
                return 0.0
            raise GraderError(f"the scorer of rg:{self.name} raised {type(e).__name__}: {e}") from e

    def _accepts_gold(self, entry: Mapping[str, Any]) -> bool:
        try:
            return entry["answer"] is None or self._score(entry["answer"], entry) == 1.0
        except Exception:  # any exception means that the scorer fails on a right answer
            return False

    def _score(self, answer: str, entry: Mapping[str, Any]) -> float:
        with isolated(self.seed):
            score = float(self._dataset.score_answer(answer, entry))
        if score != score:
            raise ValueError("the score is NaN")
        return min(1.0, max(0.0, score))


@lru_cache(maxsize=16)  # a dataset has up to 20 MB; some generators need 0.3 s to build a dataset
def _dataset(generator: Generator, seed: int) -> DataSet:
    return generator.build(seed)


def score_once(
    generator: tuple[str, int | None, Mapping[str, Any], int], question: tuple[int, int], answer: str
) -> float:
    """Score one answer in a worker process.

    Args:
        generator: (name, level, config, size) of the generator.
        question: (dataset seed, index) of the question.
    """
    name, level, config, size = generator
    dataset = Generator(name, size, level, config).dataset(question[0])
    return dataset.score(answer, dataset.entry(question[1]))


@contextlib.contextmanager
def isolated(seed: int = 0) -> Iterator[None]:
    """Run library code with seeded global random state, a local decimal context, and no output or warnings.

    The random state is restored on exit. Only one thread can be inside this context at a time. Random draws and output
    of threads outside this context are not isolated.
    """
    with _lock, decimal.localcontext(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        python, numpy = random.getstate(), np.random.get_state()
        random.seed(seed)
        np.random.seed(seed % 2**32)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)


@contextlib.contextmanager
def _translated_errors(name: str) -> Iterator[None]:
    """Convert exceptions that the library raises for a configuration to BadValue or MissingDependency."""
    try:
        yield
    except MissingDependency:
        raise
    except ImportError as e:
        package = f" {e.name.partition('.')[0]}" if e.name else ""
        raise MissingDependency(f"rg:{name} needs{package or ' a package'} ({e}); pip install{package}") from e
    except (AssertionError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as e:
        raise BadValue(f"rg:{name} rejects this configuration: {str(e) or type(e).__name__}") from e


def _known_fields(name: str, config_class: type, config: Mapping[str, Any]) -> None:
    known = [field.name for field in dataclasses.fields(config_class) if field.name not in MANAGED]
    for word in config:
        if word not in known:
            fields = ", ".join(known) or "none"
            raise UnknownArgument(f"rg:{name} has no field {word!r}{did_you_mean(word, known)}  (fields: {fields})")
    check_types(config_class, config)


def _at_level(name: str, curriculum_class: Any, level: int) -> Any:
    """Return the configuration for a level of the curriculum."""
    if curriculum_class is None:
        raise BadValue(f"rg:{name} has no curriculum, so level must be None, got {level!r}")
    curriculum = curriculum_class()
    top = max((len(attribute.levels) for attribute in curriculum.attributes.values()), default=1) - 1
    check_count("level", level, 0, top)
    curriculum.set_global_level(level)
    return curriculum.generate_configuration()


def _validate(config: Any) -> None:
    if hasattr(config, "validate"):
        config.validate()


def _with_specs(config: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the datasets of a composite configuration from mappings to the library's DatasetSpec."""
    spec = require("reasoning_gym.composite", extra=EXTRA).DatasetSpec
    parts = [spec(**part) if isinstance(part, Mapping) else part for part in config.get("datasets", ())]
    return {**config, "datasets": parts}


class SortedSet(frozenset[str]):
    """A set of strings that iterates in sorted order.

    >>> [*(SortedSet("cab") - {"b"})]
    ['a', 'c']
    """

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(super().__iter__()))

    def __sub__(self, other: AbstractSet[Any]) -> SortedSet:
        return SortedSet(super().__sub__(other))


def _fix_set_order(name: str, dataset: Any) -> None:
    """Make five generators independent of the iteration order of sets, which differs between processes.

    Four generators iterate over sets of strings, whose order depends on PYTHONHASHSEED. One generator iterates over a
    set of formulas. Without a fixed order, the same seed would give different questions in different processes.
    """
    if name in ("isomorphic_strings", "ransom_note"):
        dataset.letters = SortedSet(dataset.letters)
    elif name == "word_ladder":
        dataset._get_neighbors = _ordered(dataset._get_neighbors)
    elif name == "knight_swap":
        # This generator creates frozensets while generating, so the name "frozenset" is replaced in its module.
        vars(sys.modules[type(dataset).__module__])["frozenset"] = SortedSet
    elif name == "polynomial_multiplication":
        dataset._get_monomials = _ordered(dataset._get_monomials)


def _ordered(function: Callable[..., Iterable[Any]]) -> Callable[..., list[Any]]:
    @wraps(function)
    def ordered(*args: Any, **kwargs: Any) -> list[Any]:
        return sorted(function(*args, **kwargs), key=str)

    return ordered
