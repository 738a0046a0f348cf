"""Wrappers by name, so that a configuration file can say "concat, episode_tracking"."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from gem.errors import UnknownArgument, did_you_mean
from gem.wrappers.episode_tracking import EpisodeTrackingWrapper
from gem.wrappers.observation import ObservationWrapper

WRAPPER_FACTORY: dict[str, Callable[..., Any]] = {
    "concat": ObservationWrapper,
    "concat_with_action": partial(ObservationWrapper, include_action=True),
    "concat_chat": partial(ObservationWrapper, include_action=True, include_chat_template=True),
    "concat_chat_on_reset": partial(ObservationWrapper, include_action=True, apply_chat_template_on_reset=True),
    "episode_tracking": EpisodeTrackingWrapper,
}

_NEEDS_TOKENIZER = {"concat_chat", "concat_chat_on_reset"}


def get_wrapper_fns(wrappers: str, tokenizer: Any = None) -> list[Callable[[Any], Any]]:
    """The wrappers that a comma-separated list names, innermost first.

    Args:
        wrappers: e.g. "concat, episode_tracking"; spaces do not matter, and an empty string names none.
        tokenizer: for the names that write a chat template.

    Raises UnknownArgument, with the closest name, for a name that is none.

    >>> len(get_wrapper_fns("concat, episode_tracking")), get_wrapper_fns("")
    (2, [])
    """
    names = [name.strip() for name in wrappers.split(",") if name.strip()]
    for name in names:
        if name not in WRAPPER_FACTORY:
            hint = did_you_mean(name, WRAPPER_FACTORY)
            raise UnknownArgument(f"no wrapper {name!r}{hint}  (there are: {', '.join(WRAPPER_FACTORY)})")
    return [
        partial(WRAPPER_FACTORY[name], tokenizer=tokenizer) if name in _NEEDS_TOKENIZER else WRAPPER_FACTORY[name]
        for name in names
    ]
