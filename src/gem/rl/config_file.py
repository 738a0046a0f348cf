"""The configuration of a training run as a TOML file. Its keys are the fields of TrainConfig.

  description = "a game, and sums with a tool"   # optional
  steps = 500
  clip = "none"                                  # None, where a field allows it

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

`gem train --dry-run` writes such a file.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any

from gem._internal.toml_files import check_keys, read_toml, write_toml
from gem.errors import BadValue
from gem.rl.config import TrainConfig
from gem.rl.environments import EvalSetting, TrainEnv, as_setting

_TABLES = {"env": TrainEnv, "eval_env": EvalSetting}


def read_config(path: str) -> dict[str, Any]:
    """Return the arguments of TrainConfig that a file gives.

    Raises:
        BadValue: the file cannot be read, or a value has the wrong type.
        UnknownArgument: a misspelled key.
        MissingDependency: on Python 3.10 without tomli.
    """
    import msgspec

    try:
        data = read_toml(Path(path), extra="train")
    except OSError as e:
        raise BadValue(f"cannot read --config {path}: {e.strerror}") from e
    hints = typing.get_type_hints(TrainConfig)
    check_keys(path, data, ["description", *hints])
    data.pop("description", None)
    for name, value in data.items():
        if name in _TABLES:
            data[name] = _settings(path, name, value)
        elif value == "none" and NoneType in typing.get_args(hints[name]) and "none" not in _words(hints[name]):
            data[name] = None
        else:
            try:
                data[name] = msgspec.convert(value, hints[name])
            except msgspec.ValidationError as e:
                raise BadValue(f"{path}: {name}: {e}") from e
    return data


def config_to_toml(config: TrainConfig) -> str:
    """Return a configuration as TOML that read_config() reads back.

    Raises:
        BadValue: an argument of an environment is None, which TOML does not have.
    """
    data = {}
    for field in fields(config):
        value = getattr(config, field.name)
        if field.name in _TABLES:
            if value:
                data[field.name] = value if isinstance(value, str) else [_table(setting) for setting in value]
        elif value is not None:
            data[field.name] = value
        elif field.default is not None:
            data[field.name] = "none"
    return write_toml(data)


def _settings(path: str, name: str, value: Any) -> Any:
    rows = [value] if isinstance(value, (str, Mapping)) else value
    if not isinstance(rows, list):
        raise BadValue(f"{path}: {name} must be an id, a list of ids, or tables [[{name}]], got {value!r}")
    return [as_setting(row, _TABLES[name], f"{path}, {name} {number}") for number, row in enumerate(rows, start=1)]


def _table(setting: Any) -> dict[str, Any]:
    assert is_dataclass(setting) and not isinstance(setting, type)
    return {key: value for key, value in asdict(setting).items() if value is not None and value != {}}


def _words(hint: Any) -> list[Any]:
    """Return the choices among the types of a union."""
    return [word for member in typing.get_args(hint) for word in typing.get_args(member)]
