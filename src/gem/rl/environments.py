"""The environments of a training run: one, or a mixture in which each has a weight and its own settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, TypeVar

from gem._internal.typed import Count, Share, Weight, check_fields, check_keys
from gem.conversation.prompt_template import PromptTemplate
from gem.errors import BadValue
from gem.wrappers import TurnLimit, get_wrapper_fns
from gem.wrappers.prompt_template import PromptTemplateWrapper
from gem.wrappers.wrapper_factory import TOKENIZER_REQUIRED, mcp_wrapper

SettingT = TypeVar("SettingT", bound="EnvSetting")


@dataclass(frozen=True, kw_only=True)
class EnvSetting:
    """One environment in one setting. Its fields are the keys of a table in the TOML file of a run.

    Args:
        id: registered id.
        name: name in metrics; None for the id, followed by the wrappers.
        kwargs: constructor arguments, as JSON has them, in addition to those of the run.
        wrappers: comma-separated names of WRAPPER_FACTORY, innermost first; None for those of the run.
        mcp: JSON file with MCP servers, whose tools are offered below the wrappers; "" for none, None for that of the
            run.
        prompt_template: a name of gem.conversation.prompt_template, or a text file; None for that of the run.
        max_turns: steps after which an episode is truncated; None for the environment's own limit only.
        max_context: tokens of a prompt and its reply; an episode that outgrows them is truncated. None for the context
            of the model.
        max_new_tokens: tokens per reply; None for those of the run.

    Raises:
        BadValue: a value out of range.
    """

    id: str
    name: str | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrappers: str | None = None
    mcp: str | None = None
    prompt_template: str | None = None
    max_turns: Count | None = None
    max_context: Count | None = None
    max_new_tokens: Count | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.id:
            raise BadValue("the id of an environment must not be empty")
        if "seed" in self.kwargs:
            raise BadValue("env_kwargs must not contain seed: each slot derives its seed from that of the run")

    @property
    def label(self) -> str:
        """The name in metrics."""
        parts = [part.strip() for part in (self.wrappers or "").split(",")]
        return self.name or "+".join([self.id, *filter(None, parts)])


@dataclass(frozen=True, kw_only=True)
class TrainEnv(EnvSetting):
    """One environment of a training run. See EnvSetting for the other arguments.

    Args:
        weight: share of the episodes, relative to the weights of the other environments; 0 leaves it out.
        gamma: discount per turn; None for that of the run.
    """

    weight: Weight = 1.0
    gamma: Share | None = None


@dataclass(frozen=True, kw_only=True)
class EvalSetting(EnvSetting):
    """One set of an evaluation. See EnvSetting for the other arguments.

    Args:
        split: split of the data set. None asks rows that are held back from training, or, of a data set that is not
            trained on, the split "test" or "validation" where there is one.
        temperature: sampling temperature; 0 is greedy. None for that of the run.
        episodes: maximum number of episodes; None for that of the run.
    """

    split: str | None = None
    temperature: Weight | None = None
    episodes: Count | None = None

    @property
    def label(self) -> str:
        return super().label if self.name or self.split is None else f"{super().label}[{self.split}]"

    @property
    def mode(self) -> str:
        """Name of the temperature in metrics."""
        return f"temperature {self.temperature:g}" if self.temperature else "greedy"


def as_settings(given: Any, cls: type[SettingT], what: str) -> tuple[SettingT, ...]:
    """Convert an id, a table, or a list of them; see as_setting()."""
    if isinstance(given, (str, Mapping, EnvSetting)):
        return (as_setting(given, cls, f"{what} 1"),)
    if not isinstance(given, (list, tuple)):
        raise BadValue(f"{what} must be an id, a list of ids, or tables [[{what.split()[-1]}]], got {given!r}")
    return tuple(as_setting(one, cls, f"{what} {number}") for number, one in enumerate(given, start=1))


def as_setting(given: Any, cls: type[SettingT], what: str) -> SettingT:
    """Convert an id, the keys of a table, or a setting to a setting.

    Args:
        given: for TrainEnv, an id may be followed by its weight: "ID=WEIGHT".
        what: name of the list of settings, for messages.

    Raises:
        BadValue: a value of the wrong type or out of range.
        UnknownArgument: a misspelled key.
    """
    if isinstance(given, cls):
        return given
    if isinstance(given, str):
        return cls(**_id_and_weight(given)) if cls is TrainEnv else cls(id=given)
    if not isinstance(given, Mapping):
        raise BadValue(f"{what} must hold ids or tables, got {given!r}")
    check_keys(what, given, [f.name for f in fields(cls)])
    if "id" not in given:
        raise BadValue(f"{what} needs the id of an environment, got {dict(given)!r}")
    try:
        return cls(**given)
    except BadValue as e:
        raise BadValue(f"{what}: {e}") from e


def wrapper_fns(env: EnvSetting, tokenizer: Any = None) -> list[Callable[[Any], Any]]:
    """Return the MCP tools of an environment, its wrappers, prompt template and turn limit, innermost first.

    The prompt template is outside of the other wrappers, except those that render a whole prompt.

    Raises:
        UnknownArgument: an unknown wrapper.
        BadValue: an unknown prompt template, or an MCP configuration that cannot be read.
    """
    names = [name.strip() for name in (env.wrappers or "").split(",") if name.strip()]
    wrappers = [get_wrapper_fns(name, tokenizer=tokenizer)[0] for name in names]
    if env.prompt_template is not None:
        template = PromptTemplate.load(env.prompt_template)
        place = next((i for i, name in enumerate(names) if name in TOKENIZER_REQUIRED), len(names))
        wrappers.insert(place, partial(PromptTemplateWrapper, template=template))
    if env.max_turns is not None:
        wrappers.append(partial(TurnLimit, max_turns=env.max_turns))
    return [*_mcp_wrappers(env), *wrappers]


def check_mixture(envs: Sequence[TrainEnv]) -> None:
    """Raise BadValue unless there is an environment with a weight above 0, and all names differ."""
    if not sum(env.weight for env in envs) > 0:
        given = ", ".join(f"{env.label}={env.weight:g}" for env in envs)
        raise BadValue(f"the weights of env need a positive sum, got {given or 'no environment'}")
    check_names_differ(envs, "env")


def check_names_differ(settings: Sequence[EnvSetting], what: str) -> None:
    """Raise BadValue if two settings have the same name."""
    for label, count in Counter(setting.label for setting in settings).items():
        if count > 1:
            raise BadValue(f"{what} has {label!r} {count} times; give each a name in a table of the --config file")


def _id_and_weight(text: str) -> dict[str, Any]:
    env_id, equals, weight = text.partition("=")
    try:
        return {"id": env_id, "weight": float(weight)} if equals else {"id": env_id}
    except ValueError:
        raise BadValue(f"env takes ID or ID=WEIGHT, got {text!r}") from None


def tool_wrappers(env: EnvSetting) -> list[Callable[[Any], Any]]:
    """Return the wrappers of a setting that add tools."""
    names = [name.strip() for name in (env.wrappers or "").split(",")]
    return [*_mcp_wrappers(env), *get_wrapper_fns(",".join(name for name in names if "_tool" in name))]


def _mcp_wrappers(env: EnvSetting) -> list[Callable[[Any], Any]]:
    return [mcp_wrapper(env.mcp)] if env.mcp else []
