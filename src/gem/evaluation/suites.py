"""Suites: lists of environments to evaluate, as TOML files.

  description = "Two games, each with and without its history."
  limit = 100                               # tasks per environment, optional
  variants = ["", "concat_with_action"]     # wrappers; each environment is asked with each, optional

  [[env]]
  id = "game:GuessTheNumber-v0"

  [[env]]
  id = "game:Wordle-v0"
  limit = 50                                # the keys of an env are the arguments of EvalEnv

``offline``, ``games``, ``math`` and ``qa`` come with gem; the last two are the data sets of the GEM paper, with and
without a tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from gem._internal.toml_files import check_keys, read_toml
from gem.errors import BadValue, did_you_mean
from gem.evaluation.tasks import EvalEnv
from gem.registry import ENV_REGISTRY
from gem.wrappers import get_wrapper_fns

BUILT_IN = Path(__file__).parent / "data"
DEFAULT = "offline"
_KEYS = ("description", "limit", "variants", "env")


def suite_names() -> list[str]:
    """Return the names of the suites that come with gem."""
    return sorted(file.stem for file in BUILT_IN.glob("*.toml"))


def load_suite(name: str) -> list[EvalEnv]:
    """Return the environments of a suite.

    Args:
        name: name of a suite that comes with gem, or path of a TOML file.

    Raises:
        BadValue: unknown name, or a value of the wrong type.
        UnknownArgument: a misspelled key; UnknownEnv: an unknown id.
        MissingDependency: on Python 3.10 without tomli.
    """
    built_in = BUILT_IN / f"{name}.toml"
    path = built_in if built_in.exists() else Path(name)
    try:
        data = read_toml(path, extra="eval")
    except OSError as e:
        near = did_you_mean(name, suite_names())
        raise BadValue(f"no suite {name!r}{near}; give a TOML file, or one of {', '.join(suite_names())}") from e
    return _suite(path, data)


def _suite(path: Path, data: Mapping[str, Any]) -> list[EvalEnv]:
    check_keys(str(path), data, _KEYS)
    variants, limit, entries = data.get("variants", [""]), data.get("limit"), data.get("env")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise BadValue(f"{path}: a suite needs at least one table [[env]]")
    if not isinstance(variants, list) or not all(isinstance(variant, str) for variant in variants) or not variants:
        raise BadValue(f"{path}: variants must be a list of texts, got {variants!r}")
    envs = []
    for number, entry in enumerate(entries, start=1):
        env = _env(f"{path}, env {number}", {**({} if limit is None else {"limit": limit}), **entry})
        envs += [env] if env.wrappers else [replace(env, wrappers=variant) for variant in variants]
    return envs


def _env(where: str, entry: Mapping[str, Any]) -> EvalEnv:
    import msgspec

    check_keys(where, entry, [field.name for field in fields(EvalEnv)])
    try:
        env = msgspec.convert(dict(entry), EvalEnv)
    except msgspec.ValidationError as e:
        raise BadValue(f"{where}: {e}") from e
    _ = ENV_REGISTRY[env.id]
    get_wrapper_fns(env.wrappers)
    return env
