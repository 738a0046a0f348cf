"""Runs in the environment of inspect-ai and verifiers: reads and writes their logs, and computes pass@k their way.

Prints one JSON document. See test_exchange.py.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def read(files: list[str], traces: str) -> dict[str, object]:
    from inspect_ai.log import read_eval_log
    from verifiers.v1.trace import WireTrace
    from verifiers.v1.utils.trace_store import read_episodes

    logs = [read_eval_log(file) for file in files]
    episodes = read_episodes(Path(traces), WireTrace)
    return {
        "inspect": {
            log.eval.task: {
                "status": log.status,
                "model": log.eval.model,
                "mean": log.results.scores[0].metrics["mean"].value,
                "samples": [
                    [
                        sample.id,
                        sample.epoch,
                        None if sample.scores is None else sample.scores["reward"].value,
                        [message.text for message in sample.messages if message.role == "assistant"],
                        sample.error is not None,
                    ]
                    for sample in log.samples
                ],
            }
            for log in logs
        },
        "verifiers": [
            [
                episode.ok,
                episode.traces[0].reward,
                [node.message.content for node in episode.traces[0].nodes if node.sampled],
                len(episode.traces[0].branches),
            ]
            for episode in episodes
        ],
    }


def write(folder: str) -> dict[str, object]:
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
    from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ChatMessageUser, ModelOutput
    from inspect_ai.scorer import Score
    from inspect_ai.tool import ToolCall
    from verifiers.v1.configs.agent import WireAgentConfig
    from verifiers.v1.episode import EnvInfo, Episode
    from verifiers.v1.graph import MessageNode
    from verifiers.v1.task import WireTaskData
    from verifiers.v1.trace import AgentInfo, Reward, Trace, TraceTask
    from verifiers.v1.types import AssistantMessage, UserMessage
    from verifiers.v1.utils.trace_store import write_episode

    call = ToolCall(id="c1", function="add", arguments={"a": 1, "b": 2})
    messages = [
        ChatMessageUser(content="1 + 2?"),
        ChatMessageAssistant(content="", tool_calls=[call]),
        ChatMessageTool(content="3", tool_call_id="c1", function="add"),
        ChatMessageAssistant(content="It is 3."),
    ]
    output = ModelOutput.from_content("m", "It is 3.")
    samples = [
        EvalSample(
            id="a",
            epoch=1,
            input="1 + 2?",
            target="3",
            messages=messages,
            output=output,
            scores={"match": Score(value=value)},
        )
        for value in ("C", "I")
    ]
    samples[1].epoch = 2
    spec = EvalSpec(
        created="2026-01-01T00:00:00+00:00", task="sums", dataset=EvalDataset(), model="m", config=EvalConfig()
    )
    log = EvalLog(eval=spec, samples=samples, status="success")
    for name in ("log.json", "log.eval"):
        write_eval_log(log, str(Path(folder) / name))
    task = TraceTask(type="sums", data=WireTaskData(idx=0, prompt="1 + 2?"), key="a")
    nodes = [
        MessageNode(message=UserMessage(content="1 + 2?"), token_ids=[1, 2], mask=[False, False]),
        MessageNode(parent=0, message=AssistantMessage(content="4"), sampled=True),
        MessageNode(
            parent=0,
            message=AssistantMessage(content="3"),
            sampled=True,
            token_ids=[3, 4],
            mask=[False, True],
            logprobs=[-0.5],
        ),
    ]
    trace = Trace(
        task=task,
        agent=AgentInfo(config=WireAgentConfig(model="m")),
        nodes=nodes,
        rewards={"right": Reward(score=1.0), "format": Reward(score=0.5, weight=0.5)},
        is_completed=True,
        ok=True,
    )
    write_episode(Path(folder), Episode(env=EnvInfo(id="sums"), task=task, traces=[trace], ok=True))
    return {}


def pass_k(counts: list[list[int]]) -> dict[str, object]:
    """Reduce the scores of n rollouts, c of them right, for each (n, c, k)."""
    from inspect_ai.scorer import Score, pass_at
    from inspect_ai.scorer._reducer.reducer import pass_k as pass_all

    found = []
    for n, c, k in counts:
        scores = [Score(value=1 if i < c else 0) for i in range(n)]
        found.append([pass_at(k)(scores).as_float(), pass_all(k)(scores).as_float()])
    return {"pass": found}


if __name__ == "__main__":
    command, *arguments = json.loads(sys.argv[1])
    print(json.dumps({"read": read, "write": write, "pass_k": pass_k}[command](*arguments)))
