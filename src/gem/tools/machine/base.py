"""The base class of tools that work on a machine. See gem.sandbox.Machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gem.core import unwrapped
from gem.sandbox import HasMachine, Limits, Machine, get_sandbox
from gem.tools.base_tool import BaseTool


class MachineTool(BaseTool):
    """A tool that works on a machine: that of the environment if it has one, else one of the tool's own.

    An environment has a machine if it is of the protocol HasMachine, such as terminal tasks. A machine of the tool's
    own starts with the first call, stays for the episode, and starts anew if it has ended. It needs sandbox level ns.

    Args:
        limits: limits of the tool's own machine.
    """

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self.limits = limits
        self._env: HasMachine | None = None
        self._machine: Machine | None = None
        self._saved: Mapping[str, Any] | None = None

    def attach(self, env: Any) -> None:
        self._env = inner if isinstance(inner := unwrapped(env), HasMachine) else None

    def machine(self) -> Machine:
        """Return the machine, and start it if necessary. Raises SandboxError if that fails."""
        if self._env is not None:
            return self._env.machine()
        if self._machine is None or self._machine.ended:
            self._machine = get_sandbox().machine(limits=self.limits, state=self._saved)
            self._saved = None
        return self._machine

    def reset(self) -> None:
        self._saved = None
        self.close()

    def close(self) -> None:
        machine, self._machine = self._machine, None
        if machine is not None:
            machine.close()

    def own_state(self) -> Any:
        """Return the state of the tool's own machine. Raises BadValue while background processes run."""
        alive = self._machine is not None and not self._machine.ended
        return self._machine.get_state() if alive and self._machine is not None else self._saved

    def set_own_state(self, state: Any) -> None:
        self.reset()
        self._saved = state
