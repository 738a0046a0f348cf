"""The loop of ROLL: a manager that watches terminated alone and merges info with its records, and its subclasses."""

from __future__ import annotations

import json
import multiprocessing
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import gem
from gem.core import Env
from gem.envs.code_env import CodeEnv
from gem.envs.math_env import MathEnv
from gem.envs.qa_env import QaEnv
from gem.tools.python_code_tool import PythonCodeTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper
from gem.utils.parsing import extract_last_boxed_answer

from .client_tasks import GAME, ROWS, play, waste

TERMINATES = "GEM_END_ON_TRUNCATION"


class TrajEnvManager:
    def __init__(
        self, env_type: str, config: dict[str, Any], group_seed: int, max_steps: int = 9, tools: Any = ()
    ) -> None:
        self.env = gem.make(env_id=env_type, **{**config, "seed": group_seed})
        self.has_tools, self.max_steps = bool(tools), max_steps
        if tools:
            self.env = ToolEnvWrapper(self.env, tools, max_tool_uses=2)

    def rollout(self, seed: int, policy: Any) -> list[dict[str, Any]] | None:
        observation, info = self.env.reset(seed=seed)
        if observation is None:
            return None  # the data is exhausted
        self.pop_counters(info)
        history = [self.entry(observation, 0, info)]
        for step in range(self.max_steps):
            action = policy("\n".join(entry["observation"] for entry in history))
            observation, reward, terminated, _, info = self.env.step(action=action)
            info.pop("suffix", None)
            self.pop_counters(info)
            history[-1].update(reward=reward, llm_response=action)
            history[-1].update(info)
            if terminated:
                return history
            history.append(self.entry(observation, step + 1, {}))
        return history

    def entry(self, observation: str, step: int, info: dict[str, Any]) -> dict[str, Any]:
        return {"observation": observation, "actions_left": self.max_steps - step, "messages": None, **info}

    def pop_counters(self, info: dict[str, Any]) -> None:
        for name in ("tool_use_counter", "tool_success_counter") if self.has_tools else ():
            assert info.pop(name) >= 0

    def close(self) -> None:
        self.env.close()


def test_roll_ends_episodes_at_the_turn_limit_with_the_environment_variable(monkeypatch):
    monkeypatch.setenv(TERMINATES, "1")
    for tools in ((), [FixedTool()]):
        manager = TrajEnvManager(GAME, {"max_turns": 3}, group_seed=1, tools=tools)
        history = manager.rollout(seed=2, policy=waste)
        assert [entry["reward"] for entry in history] == [0.0] * 3
        assert [entry["actions_left"] for entry in history] == [9, 8, 7]
        assert history[-1]["stop_reason"] == "max_turns"


class FixedTool(PythonCodeTool):
    """A Python tool of the client, with its own settings."""

    def __init__(self) -> None:
        super().__init__(5, "none", True)


def test_roll_plays_the_members_of_a_group_alike_in_threads(task, monkeypatch):
    monkeypatch.setenv(TERMINATES, "1")
    env_id, wrappers = task
    tools = [FixedTool] if "python" in wrappers else ()
    with ThreadPoolExecutor(8) as pool:
        managers = list(pool.map(lambda _: TrajEnvManager(env_id, {}, 1, tools=tools), range(8)))
        histories = list(pool.map(lambda manager: manager.rollout(seed=6, policy=play), managers))
    for manager in managers:
        manager.close()
    assert len({history[0]["observation"] for history in histories}) == 1
    for history in histories:
        assert sum(entry["reward"] for entry in history) == history[-1]["reward"] == 1.0
        assert all(entry["llm_response"] for entry in history)


class RollMathEnv(MathEnv):
    """Skips the constructor of its base class, draws rows from the global stream, and grades in its own pool."""

    def __init__(self, rows: Any, pool: Any) -> None:
        Env.__init__(self)
        self.dataset, self.mp_pool = rows, pool
        self.question_key, self.answer_key, self.idx, self.epoch, self.seed = "problem", "answer", 0, 0, 0

    def reset(self, seed=None):
        Env.reset(self, seed)
        data = self.dataset[random.randint(0, len(self.dataset) - 1)]
        self.first_obs, self.answer = data[self.question_key], data[self.answer_key]
        return self.first_obs, {"env_instruction": "Use a box."}

    def step(self, action):
        answer = extract_last_boxed_answer(action)
        correct = answer and self.mp_pool.apply_async(self.check_correct, (answer, self.answer)).get(timeout=60)
        metrics = {"success": bool(correct), "format": answer is not None}
        return "", float(bool(correct)), True, True, {"metrics": metrics, "metrics_agg_mode": {"success": "last"}}


def test_roll_subclasses_of_mathematics_share_questions_by_global_seed_and_grade_in_a_pool():
    pytest.importorskip("sympy", reason="needs the extra [math]")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        first, second = RollMathEnv(ROWS, pool), RollMathEnv(ROWS, pool)
        assert first.reset(seed=3)[0] == second.reset(seed=3)[0] == first.first_obs
        assert len({first.reset(seed=seed)[0] for seed in range(20)}) > 3
        assert first.step(play(first.first_obs))[1:4] == (1.0, True, True)
        assert second.step(r"\boxed{0}")[1] == second.step("no box")[1] == 0.0


class RollQaEnv(QaEnv):
    def __init__(self, rows: Any, **_: Any) -> None:
        super().__init__(dataset=rows, question_key="problem", answer_key="answer", extract_boxed=True)

    def step(self, action):
        answer = self.extractor(action)
        correct = answer is not None and self.check_correct(answer, self.answer)
        return "", float(correct), True, True, {"metrics": {"success": correct}}


class RollCodeEnv(CodeEnv):
    def __init__(self, rows: Any, **_: Any) -> None:
        super().__init__(dataset=rows, question_key="problem", test_key="tests", max_workers=2, sandbox_type="none")


@pytest.mark.filterwarnings("ignore::gem.errors.CompatibilityWarning")  # for max_workers
def test_roll_subclasses_of_questions_and_programs_use_the_published_attributes():
    qa = RollQaEnv(ROWS, seed=1)
    question, _ = qa.reset(seed=2)
    assert qa.step(play(question))[1] == 1.0 and qa.dataset[qa.idx]["problem"] in question
    tests = {"inputs": ["1"], "outputs": ["1"]}
    code = RollCodeEnv([{"problem": "Print the input.", "tests": json.dumps(tests)}], seed=1)
    code.reset(seed=2)
    assert code._check_correct("print(input())") and not code._check_correct("print(2)")
