"""Recorded episodes for the tests of the viewer."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from gem.trajectory import Trajectory, Turn

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WORDS = ["the", "secret", "lies", "above", "a", "low", "guess", "below", "high", "one", "so", "take", "middle"]


def guessing(number: int, turns: int = 3, *, solved: bool = True, **fields: Any) -> Trajectory:
    """An episode of GuessTheNumber with token ids. Episodes whose numbers differ by 7 have the same seed."""
    rng = random.Random(number)
    played, context = [], [1, 2, 3]
    for k in range(turns):
        reply = [rng.randrange(10, 300) for _ in range(6)]
        played.append(
            Turn(
                f"Turn {k}: too low." if k else "Guess the secret integer between 1 and 10.",
                f"{' '.join(rng.choices(WORDS, k=12))} \\boxed{{{rng.randint(1, 10)}}}",
                context,
                reply,
                [-rng.expovariate(2.0) for _ in reply],
                [0, 1, 1, 1, 1, 1],
                "stop",
                float(solved and k == turns - 1),
                seconds={"policy": 0.25, "env": 0.001},
                policy_version=number // 4,
            )
        )
        context = [*context, *reply, 4, 5, 6]
    reason = "solved" if solved else "max_turns"
    ends = {"terminated": solved, "truncated": not solved, "stop_reason": reason, "final_observation": "Done."}
    return Trajectory("game:GuessTheNumber-v0-easy", seed=number % 7, turns=played, **{**ends, **fields})


def with_tools() -> Trajectory:
    """An episode with a system message, native calls, a tool error, an image, parts of a reward and a fork."""
    call = {"id": "c1", "type": "function", "function": {"name": "python", "arguments": '{"code": "print(6 * 7)"}'}}
    first = Turn(
        [{"role": "system", "content": "Use the tool."}, {"role": "user", "content": "What is 6 times 7?"}],
        '<tool_call>\n{"name": "python"}\n</tool_call>',
        context=[1, 2, 3],
        sampled_ids=[4],
        logprobs=[-0.5],
        loss_mask=[1],
        message={"role": "assistant", "content": None, "reasoning_content": "Multiply.", "tool_calls": [call]},
        usage={"prompt_tokens": 31},
    )
    calls = [{"name": "python", "arguments": None, "fault": "malformed"}]
    second = Turn("[timeout]", "again", context=[1, 2, 3, 4, 5], role="tool", invalid="malformed", tool_calls=calls)
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    picture = [image, {"type": "text", "text": "Look."}]
    third = Turn(
        [{"role": "user", "content": picture}],
        "\\boxed{42}",
        context=[9, 9],
        reward=1.0,
        reward_parts={"answer": 0.9, "format": 0.1},
        dropped=1,
    )
    return Trajectory(
        "math:Sample",
        row_id=7,
        turns=[first, second, third],
        terminated=True,
        stop_reason="solved",
        model="served-model",
        sampling={"temperature": 0.7},
        tools=[{"type": "function", "function": {"name": "python"}}],
    )


def auction(seed: int) -> list[Trajectory]:
    """A game of three agents, each with a private observation; the last has moved before the others."""

    def seat(agent: str, reward: float) -> Trajectory:
        turns = [Turn(f"Your value is {len(agent)}.", f"I bid {k}.", reward=reward * k) for k in range(2)]
        ends = {"terminated": True, "stop_reason": "finished", "final_observation": "The auction is over."}
        return Trajectory("talk:SealedAuction-v0", seed=seed, agent=agent, turns=turns, **ends)

    return [seat("bidder_2", 0.0), seat("bidder_0", 1.0), seat("bidder_1", 0.0)]


def explained() -> list[dict[str, Any]]:
    """The JSON of two rollouts of a task with code, a formula, an observation that is a dictionary, and the reasons of
    their score.
    """

    def rollout(second: str, explanation: str, negative: bool, reward: float) -> dict[str, Any]:
        checks = [
            {"name": "positive", "passed": True, "detail": ""},
            {"name": "negative", "passed": negative, "detail": "" if negative else "got -1, expected 1"},
        ]
        first = "I return $\\frac{1}{2}$ of it:\n```python\ndef half(x):\n    return x / 2\n```\n"
        turns = [
            Turn({"path": "C:\\temp\nsecond line", "size": 3}, first),
            Turn("And its size?", second, reward=reward),
        ]
        ends = {"terminated": True, "stop_reason": "solved" if reward else "lost"}
        data = Trajectory("code:Sample", group_id="0123456789abcdef", turns=turns, **ends).to_json()
        data["turns"][-1] |= {"explanation": explanation, "checks": checks}
        return data

    return [
        rollout("return abs(x)", "All tests pass.", True, 1.0),
        rollout("return x", "The tests fail for negative numbers.", False, 0.0),
    ]


def failed() -> Trajectory:
    turn = Turn("Sort the list.", "def f(x): ...", reward=None)
    why = "SandboxError: the fork server died"
    return Trajectory("code:Sample", seed=1, turns=[turn], truncated=True, stop_reason="failed", failure=why)


def varied(count: int = 40) -> list[Trajectory]:
    """Episodes of three environments: won, lost, failed, with tools."""
    plain = [guessing(n, 2 + n % 4, solved=n % 3 > 0) for n in range(count - 2)]
    return [*plain, with_tools(), failed()]


def write_run(folder: Path, episodes: list[Any], updates: int = 30) -> Path:
    """A folder like that of a training run, of trajectories or their JSON."""
    folder.mkdir(parents=True)
    data = [episode if isinstance(episode, dict) else episode.to_json() for episode in episodes]
    (folder / "trajectories.jsonl").write_text("".join(json.dumps(line) + "\n" for line in data))
    rng, lines = random.Random(0), []
    for update in range(1, updates + 1):
        share = min(1.0, 0.2 + 0.7 * update / updates + rng.uniform(-0.08, 0.08))
        scores = {"success": share, "reward": share - 0.05, "turns_when_won": 4 - share}
        row: dict[str, Any] = {"episodes": 256 * update, **scores}
        if update % 10 == 0:
            row["eval"] = {"greedy": {"success": share + 0.03, "reward": share, "turns_when_won": 3.2}}
        lines.append(json.dumps({"update": update, **row}))
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    return folder
