"""The plain loop: every slot in this thread, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gem.errors import BadValue
from gem.vector.base import Autoreset, VectorEnv
from gem.vector.engine import InlineEngine
from gem.vector.slots import Factory, OnFailure, SlotGroup


class SyncVectorEnv(VectorEnv):
    """Slots stepped in a loop: the fastest for environments that take microseconds, and the reference for the rest.

    Args:
        env_fns: one callable per slot that builds its environment.
        autoreset: see Autoreset.
        timeout: only None: what runs in the caller's own thread cannot be stopped.
        on_failure: see SlotGroup.

    What was sent is stepped when it is received, all of it, whatever min_envs is.
    """

    def __init__(
        self,
        env_fns: Sequence[Factory],
        autoreset: str | Autoreset = Autoreset.SAME_STEP,
        *,
        timeout: float | None = None,
        on_failure: OnFailure = "raise",
    ) -> None:
        if timeout is not None:
            raise BadValue(
                f"sync cannot stop an environment that hangs, so it takes no timeout (got {timeout!r}); "
                "backend 'thread', 'async' or 'process' can"
            )
        mode = Autoreset.of(autoreset)
        group = build_group(env_fns, mode, on_failure)
        super().__init__(InlineEngine(group), mode)
        self._group = group

    @property
    def envs(self) -> list[Any]:
        """The environments, by slot."""
        return list(self._group.envs.values())


def build_group(env_fns: Sequence[Factory], autoreset: Autoreset, on_failure: OnFailure) -> SlotGroup:
    """All slots as one group in this process. Raises BadValue for no slots, and for an unknown on_failure."""
    check_slots(env_fns, on_failure)
    return SlotGroup(dict(enumerate(env_fns)), same_step=autoreset is Autoreset.SAME_STEP, on_failure=on_failure)


def check_slots(env_fns: Sequence[Factory], on_failure: OnFailure, timeout: float | None = None) -> None:
    """Raises BadValue for what no backend takes."""
    if not env_fns:
        raise BadValue("a vector env needs at least one environment, got none")
    if on_failure not in ("raise", "restart"):
        raise BadValue(f"on_failure must be 'raise' or 'restart', got {on_failure!r}")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0):
        raise BadValue(f"timeout must be seconds above 0, or None, got {timeout!r}")
