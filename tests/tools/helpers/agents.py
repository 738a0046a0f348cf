"""Scripted agents that see only observations, to compare results with and without a tool."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

# Maps all observations of the episode so far to the next action.
Agent: TypeAlias = Callable[[list[str]], str]


class Played(NamedTuple):
    """An episode: total reward, observations, actions and the last info."""

    reward: float
    observations: list[str]
    actions: list[str]
    info: dict[str, Any]


def play(env: Any, agent: Agent, seed: int | None = None, max_steps: int = 100) -> Played:
    """Play an episode. Raises AssertionError when it does not end within max_steps."""
    observation, info = env.reset(seed=seed)
    observations, actions, total = [observation], [], 0.0
    for _ in range(max_steps):
        actions.append(agent(observations))
        observation, reward, terminated, truncated, info = env.step(actions[-1])
        observations.append(observation)
        total += reward
        if terminated or truncated:
            return Played(total, observations, actions, info)
    raise AssertionError(f"no end within {max_steps} steps")


def mean_reward(env: Any, agent: Agent, seeds: Iterable[int]) -> float:
    rewards = [play(env, agent, seed).reward for seed in seeds]
    return sum(rewards) / len(rewards)


PROGRAM = """from fractions import Fraction as F
value = {expression}
print("answer", value)
"""


def calculator(observations: list[str]) -> str:
    """Compute with Python when the prompt offers it; guess otherwise."""
    question = observations[0].partition("\n")[0]
    if "<python>" not in observations[0]:
        return rf"\boxed{{{first_number(question)}}}"
    result = re.search(r"^(?:Code execution result: )?answer (\S+)$", observations[-1], re.MULTILINE)
    if result is None:
        return f"<think>To be computed.</think><python>{PROGRAM.format(expression=expression_of(question))}</python>"
    return rf"\boxed{{{result[1]}}}"


def first_number(question: str) -> str:
    found = re.search(r"-?\d+(?:\.\d+)?", question)
    return "0" if found is None else found[0]


def expression_of(question: str) -> str:
    """Return the question as a Python program, without evaluating it."""
    numbers = [f"F('{n}')" for n in re.findall(r"\d+(?:\.\d+)?", question)]
    listed = ", ".join(numbers)
    if "remainder" in question:
        return f"{numbers[0]} % {numbers[1]}"
    if "mean" in question:
        return f"sum([{listed}]) / {len(numbers)}"
    if "rises" in question:
        return f"{numbers[0]} * (100 + {numbers[1]}) * (100 - {numbers[2]}) / 10000"
    if "ratio" in question:
        return f"{numbers[0]} * {numbers[-1]} / sum([{', '.join(numbers[1:])}])"
    if "pumps" in question:  # the first number is their count
        return f"1 / sum(1 / n for n in [{', '.join(numbers[1:])}])"
    return python_of(question.partition("$")[2].rpartition("$")[0])


def python_of(latex: str) -> str:
    text = latex.replace(r"\left", "").replace(r"\right", "")
    text = text.replace(r"\times", "*").replace(r"\cdot", "*").replace(r"\div", "/")
    text = re.sub(r"\d+(?:\.\d+)?", lambda number: f"F('{number[0]}')", text)
    text = re.sub(r"\^\{([^{}]*)\}", r"**(\1)", text).replace("^", "**")
    while (outer := re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))", text)) != text:
        text = outer
    return text
