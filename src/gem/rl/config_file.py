"""The configuration of a training run as a TOML file. Its keys are the fields of TrainConfig.

  description = "a game, and sums with a tool"   # optional
  steps = 500
  timeout = "none"                               # None, where a field allows it
  loss_options = {clip_high = 0.28}

  [[env]]                                        # the keys are the arguments of TrainEnv
  id = "game:GuessTheNumber-v0-easy"
  weight = 2

  [[env]]
  id = "math:Arithmetic"
  wrappers = "python_tool, concat_chat"
  gamma = 1.0

  [[eval_env]]                                   # and those of EvalSetting
  id = "math:Arithmetic"
  temperature = 0.6

`gem train --dry-run` writes such a file. The recipes that come with gem are in recipes/.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

from gem._internal.inbound import read_toml
from gem._internal.typed import check_keys, converted, field_hints
from gem.errors import BadValue, did_you_mean
from gem.rl.config import CHOICES, TrainConfig
from gem.rl.environments import EvalSetting, TrainEnv, as_settings

RECIPES = Path(__file__).parent / "recipes"
_TABLES = {"env": TrainEnv, "eval_env": EvalSetting}


def recipe_names() -> list[str]:
    """Return the names of the recipes that come with gem."""
    return sorted(file.stem for file in RECIPES.glob("*.toml"))


def read_config(name: str) -> dict[str, Any]:
    """Return the arguments of TrainConfig that a file gives.

    Args:
        name: name of a recipe that comes with gem, or path of a TOML file.

    Raises:
        BadValue: unknown name, a file that cannot be read, or a value of the wrong type or out of range.
        UnknownArgument: a misspelled key.
        MissingDependency: on Python 3.10 without tomli.
    """
    recipes = recipe_names()
    path = str(RECIPES / f"{name}.toml") if name in recipes else name
    try:
        data = read_toml(Path(path), extra="train")
    except OSError as e:
        near = did_you_mean(name, recipes)
        raise BadValue(
            f"cannot read --config {name}: {e.strerror}{near}; give a TOML file or a recipe: {', '.join(recipes)}"
        ) from e
    check_keys(path, data, ["description", *(f.name for f in fields(TrainConfig))])
    data.pop("description", None)
    hints = field_hints(TrainConfig)
    for name, value in data.items():
        if name in _TABLES:
            data[name] = as_settings(value, _TABLES[name], f"{path}, {name}")
        elif name not in CHOICES:
            data[name] = converted(f"{path}: {name}", value, hints[name], from_text=True)
    return data


def config_to_toml(config: TrainConfig) -> str:
    """Return a configuration as TOML that read_config() reads back.

    Raises:
        BadValue: an argument of an environment is None, which TOML does not have.
    """
    data: dict[str, Any] = {}
    for field in fields(config):
        value = getattr(config, field.name)
        if field.name in _TABLES:
            if value:
                data[field.name] = value if isinstance(value, str) else [_table(setting) for setting in value]
        elif field.name.endswith("_options"):
            data[field.name] = {key: "none" if own is None else own for key, own in value.items()}
        elif value is not None:
            data[field.name] = value
        elif field.default is not None:
            data[field.name] = "none"
    return write_toml(data)


def _table(setting: Any) -> dict[str, Any]:
    assert is_dataclass(setting) and not isinstance(setting, type)
    return {key: value for key, value in asdict(setting).items() if value is not None and value != {}}


def write_toml(data: Mapping[str, Any]) -> str:
    """Return data as TOML. Lists of dicts at the top level become tables, other dicts become inline tables.

    Raises:
        BadValue: for a value that TOML does not have, such as None.
    """
    tables = {key: value for key, value in data.items() if _is_tables(value)}
    lines = [f"{_key(key)} = {_value(value, key)}" for key, value in data.items() if key not in tables]
    for key, rows in tables.items():
        for row in rows:
            lines += ["", f"[[{_key(key)}]]", *(f"{_key(k)} = {_value(v, k)}" for k, v in row.items())]
    return "\n".join(lines) + "\n"


def _is_tables(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _key(key: str) -> str:
    return key if key.isascii() and key.replace("-", "_").isidentifier() else _text(key)


def _text(text: str) -> str:
    # What a terminal escapes as \xNN is written as \uNNNN, which TOML reads, so that it can be printed.
    return re.sub("[\x7f-\x9f\xad]", lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


def _value(value: Any, name: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(v, k)}" for k, v in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_value(item, name) for item in value) + "]"
    raise BadValue(f"{name}={value!r} cannot be written as TOML")
