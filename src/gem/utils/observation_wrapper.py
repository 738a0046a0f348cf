"""ObservationWrapper with its published defaults. New code should import it from gem.wrappers."""

from __future__ import annotations

from typing import Any

from gem.core import Info
from gem.wrappers import observation

WrapperObsType = str  # the type of the wrapper's observations
maybe_add_new_line = observation.end_line


class ObservationWrapper(observation.ObservationWrapper):
    """gem.wrappers.ObservationWrapper with the published defaults, which need a tokenizer."""

    def __init__(
        self,
        env: Any,
        include_action: bool = True,
        include_chat_template: bool = True,
        apply_chat_template_on_reset: bool = False,
        max_history_length: int | None = None,
        tokenizer: Any = None,
    ) -> None:
        super().__init__(
            env, include_action, include_chat_template, apply_chat_template_on_reset, max_history_length, tokenizer
        )

    def observation(self, info: Info) -> str:
        """Return the latest observation, which already contains the prefix and suffix of the info."""
        return self.prompt
