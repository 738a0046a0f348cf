"""code:Mini as an environment, and the player that knows the references."""

from __future__ import annotations

from gem.envs.code_env import CodeEnv, fenced
from gem.envs.code_mini.rows import MiniRows, reference
from gem.graders.code import Reward
from gem.sandbox import Sandbox


class CodeMiniEnv(CodeEnv):
    """Programming tasks that come with gem.

    Args:
        tests_seed: of the inputs of the tests, see MiniRows; the tasks are the same for all.
        seed, shuffle, sandbox_type, reward, early_exit, timeout, memory_bytes: see CodeEnv.

    Raises BadValue for a value out of its range.
    """

    def __init__(
        self,
        *,
        tests_seed: int = 0,
        seed: int | None = None,
        shuffle: bool = True,
        sandbox_type: str | Sandbox = "auto",
        reward: Reward = "all",
        early_exit: bool | None = None,
        timeout: float = 10.0,
        memory_bytes: int = 1 << 30,
    ) -> None:
        super().__init__(
            dataset=MiniRows(tests_seed),
            seed=seed,
            shuffle=shuffle,
            sandbox_type=sandbox_type,
            reward=reward,
            early_exit=early_exit,
            timeout=timeout,
            memory_bytes=memory_bytes,
        )


class Oracle:
    """Answers with the reference of the open task, which it knows by the state."""

    def __init__(self, env: CodeEnv) -> None:
        self.env = env

    def act(self, observation: str) -> str:
        return fenced(reference(self.env.row))
