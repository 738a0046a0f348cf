"""The library reasoning-gym at arm's length: its generators draw from the global streams, print and warn.

Everything that runs its code is here. A question is named by (data set seed, index), and is the same in every process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import decimal
import io
import random
import threading
import warnings
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Any

import numpy as np

from gem.envs.reasoning_gym_order import settle
from gem.errors import BadValue, GraderError, MissingDependency, UnknownArgument, did_you_mean, require

EXTRA = "reasoning"
OURS = ("seed", "size")  # fields of every configuration that are set for each data set

_lock = threading.RLock()  # the global streams, standard output and the filters of warnings are everybody's


class Source:
    """One generator with its configuration.

    Args:
        name: of the generator.
        size: questions of a data set.
        level: of the generator's curriculum, 0 the easiest; None: its defaults.
        config: fields of its configuration, over those of the level.

    Raises MissingDependency, UnknownArgument for a field that there is not, BadValue with the library's reason.
    """

    def __init__(self, name: str, size: int, level: int | None, config: Mapping[str, Any]) -> None:
        with apart():
            factory = require("reasoning_gym.factory", extra=EXTRA)
        if name not in factory.DATASETS:
            raise BadValue(f"reasoning-gym has no generator {name!r}{did_you_mean(name, factory.DATASETS)}")
        self.name, self._key = name, (name, size, level, repr(sorted(config.items())))
        self._dataset_class, config_class = factory.DATASETS[name]
        _known_fields(name, config_class, config)
        config = _with_specs(config) if name == "composite" else dict(config)
        with apart(), _bad_values(name):
            if level is None:
                self.config = config_class(size=size, **config)
            else:
                leveled = _at_level(name, factory.CURRICULA.get(name), level)
                self.config = dataclasses.replace(leveled, size=size, **config)
            _validate(self.config)

    def dataset(self, seed: int) -> DataSet:
        """The data set of a seed, 0 to 2**31 - 1. Raises BadValue, MissingDependency.

        The last few are kept, for all environments of the process: a group of them often asks for the same one.
        """
        return _dataset(self, seed)

    def build(self, seed: int) -> DataSet:
        with apart(seed), _bad_values(self.name):
            dataset = self._dataset_class(dataclasses.replace(self.config, seed=seed))
        settle(self.name, dataset)
        return DataSet(self.name, dataset, seed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class DataSet:
    """Questions of one data set seed, and their scorer."""

    def __init__(self, name: str, dataset: Any, seed: int) -> None:
        self.name, self.seed, self._dataset = name, seed, dataset
        # codeio keeps what it read in its class, where the next data set puts another difficulty.
        self._shared = getattr(type(dataset), "_jsonl_data", None)
        self._last: tuple[int, dict[str, Any]] | None = None

    def entry(self, index: int) -> dict[str, Any]:
        """{"question", "answer", "metadata"}; answer is None where the library knows none. Raises BadValue.

        The last one is kept: a group of environments asks for it, and making it takes some generators a second.
        """
        last = self._last
        if last is None or last[0] != index:
            with apart(self.seed + index), _bad_values(self.name):
                if self._shared is not None:
                    type(self._dataset)._jsonl_data = self._shared
                self._last = last = index, self._dataset[index]
        return deepcopy(last[1])  # some scorers write into it

    def score(self, answer: str, entry: Mapping[str, Any]) -> float:
        """What the generator's own scorer gives, 0 to 1.

        Many scorers raise on text of a form that they do not expect: that answer is wrong. One that does not take the
        generator's own answer either is broken: GraderError.
        """
        try:
            return self._score(answer, entry)
        except Exception as e:  # RecursionError and what sympy, json, re and int() raise: the scorer did not say
            if self._takes_its_own(entry):
                return 0.0
            raise GraderError(f"the scorer of rg:{self.name} raised {type(e).__name__}: {e}") from e

    def _takes_its_own(self, entry: Mapping[str, Any]) -> bool:
        try:
            return entry["answer"] is None or self._score(entry["answer"], entry) == 1.0
        except Exception:  # whatever it is, the scorer raises it on a right answer
            return False

    def _score(self, answer: str, entry: Mapping[str, Any]) -> float:
        with apart(self.seed):
            score = float(self._dataset.score_answer(answer, entry))
        if score != score:
            raise ValueError("it gave NaN")
        return min(1.0, max(0.0, score))


@lru_cache(maxsize=16)  # of up to 20 MB each; building takes some generators 0.3 s
def _dataset(source: Source, seed: int) -> DataSet:
    return source.build(seed)


def score_once(
    name: str, level: int | None, config: Mapping[str, Any], seed: int, index: int, size: int, answer: str
) -> float:
    """DataSet.score in a process that has only this: for workers."""
    dataset = Source(name, size, level, config).dataset(seed)
    return dataset.score(answer, dataset.entry(index))


@contextlib.contextmanager
def apart(seed: int = 0) -> Iterator[None]:
    """Run the library's code so that nobody notices: from global streams of this seed, which are put back; without
    output and warnings; with a decimal context of its own.

    One thread at a time. What another thread draws from the global streams or prints meanwhile is not kept apart.
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
def _bad_values(name: str) -> Iterator[None]:
    """What the library raises on a configuration, as ours."""
    try:
        yield
    except MissingDependency:
        raise
    except ImportError as e:
        package = f" {e.name.partition('.')[0]}" if e.name else ""
        raise MissingDependency(f"rg:{name} needs{package or ' a package'} ({e}); pip install{package}") from e
    except (AssertionError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as e:
        raise BadValue(f"rg:{name} does not take this configuration: {str(e) or type(e).__name__}") from e


def _known_fields(name: str, config_class: type, config: Mapping[str, Any]) -> None:
    known = [field.name for field in dataclasses.fields(config_class) if field.name not in OURS]
    for word in config:
        if word not in known:
            takes = ", ".join(known) or "nothing"
            raise UnknownArgument(f"rg:{name} takes no {word!r}{did_you_mean(word, known)}  (it takes: {takes})")


def _at_level(name: str, curriculum_class: Any, level: int) -> Any:
    """The configuration of a level of the curriculum."""
    if curriculum_class is None:
        raise BadValue(f"rg:{name} has no curriculum, so no level {level!r}; leave level out")
    curriculum = curriculum_class()
    top = max((len(attribute.levels) for attribute in curriculum.attributes.values()), default=1) - 1
    if isinstance(level, bool) or not isinstance(level, int) or not 0 <= level <= top:
        raise BadValue(f"level of rg:{name} must be 0 to {top}, got {level!r}")
    curriculum.set_global_level(level)
    return curriculum.generate_configuration()


def _validate(config: Any) -> None:
    if hasattr(config, "validate"):
        config.validate()


def _with_specs(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of composite with each of its data sets, a mapping, as the library wants it."""
    spec = require("reasoning_gym.composite", extra=EXTRA).DatasetSpec
    parts = [spec(**part) if isinstance(part, Mapping) else part for part in config.get("datasets", ())]
    return {**config, "datasets": parts}
