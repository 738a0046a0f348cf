"""Suites: lists of environments to evaluate, as TOML files.

  description = "Two games, each with and without its history."
  limit = 100                               # tasks per environment, optional
  variants = ["", "concat_with_action"]     # wrappers; each environment is asked with each, optional

  [[env]]
  id = "game:GuessTheNumber-v0"

  [[env]]
  id = "game:Wordle-v0"
  limit = 50                                # the keys of an env are the arguments of EvalEnv; a name gets the variant

``offline``, ``games``, ``math`` and ``qa`` come with gem; the last two are the data sets of the GEM paper, with and
without a tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from gem._internal.inbound import read_toml
from gem._internal.typed import check_keys, converted
from gem.errors import BadValue, did_you_mean
from gem.evaluation.tasks import EvalEnv, with_wrappers
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
    entries = converted(f"{path}: env", data.get("env", []), list[dict[str, Any]])
    variants = converted(f"{path}: variants", data.get("variants", [""]), list[str])
    if not entries or not variants:
        raise BadValue(f"{path}: a suite needs at least one table [[env]], and one variant if there are variants")
    limit = {"limit": data["limit"]} if "limit" in data else {}
    envs = []
    for number, entry in enumerate(entries, start=1):
        env = _env(f"{path}, env {number}", {**limit, **entry})
        envs += [env] if env.wrappers else [_variant(env, variant) for variant in variants]
    return envs


def _variant(env: EvalEnv, wrappers: str) -> EvalEnv:
    """Return an environment with wrappers, which follow its name as they follow an id."""
    return replace(env, wrappers=wrappers, name=env.name and with_wrappers(env.name, wrappers))


def _env(where: str, entry: Mapping[str, Any]) -> EvalEnv:
    check_keys(where, entry, [field.name for field in fields(EvalEnv)])
    if "id" not in entry:
        raise BadValue(f"{where} needs the id of an environment")
    try:
        env = EvalEnv(**entry)
    except BadValue as e:
        raise BadValue(f"{where}: {e}") from e
    _ = ENV_REGISTRY[env.id]
    get_wrapper_fns(env.wrappers)
    return env
