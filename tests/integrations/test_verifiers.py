"""verifiers: its own command plays the recorded episodes against a chat endpoint and records their rewards."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("verifiers")

import verifiers.v1 as vf

from gem.integrations.shared.tasks import EnvTask, make_tasks
from gem.integrations.verifiers import GemEnv, GemTaskset, GemTasksetConfig
from gem.testing.fakes.endpoint import Answer, FakeEndpoint

from .contract import GAME, GAME_TASKS, MATH, MATH_TASKS, TextReplies

ROOT = Path(__file__).parents[2]


def evaluate(folder: Path, name: str, endpoint: FakeEndpoint, *options: str) -> list[dict]:
    """Run vf-eval against an endpoint. Returns the episodes that it wrote."""
    command = [str(Path(sys.executable).parent / "vf-eval"), name, "-m", "replay", "--no-push", "--no-rich"]
    command += ["--client.base-url", endpoint.url, "--client.api-key-var", "KEY", "-o", str(folder), "--run.dir", "run"]
    command += ["--env.player.harness.id", "null", "--env.player.runtime.type", "subprocess", *options]
    path = os.pathsep.join(map(str, (ROOT / "src", ROOT / "examples/verifiers", ROOT / "tests", folder)))
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path, "KEY": "x"}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    written = [path for path in (folder / "run").rglob("traces.jsonl")]
    return [json.loads(line) for path in written for line in path.read_text().splitlines()]


def streamed(text: str) -> Answer:
    """A chat completion as the server-sent events that verifiers asks for."""
    chunk = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "replay"}
    said = {**chunk, "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}]}
    end = {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    usage = {**chunk, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in (said, end, usage)) + "data: [DONE]\n\n"
    return Answer(body=body, headers={"Content-Type": "text/event-stream"})


def evaluated(reference, folder: Path, tasks: list[EnvTask], *options: str) -> None:
    """Evaluate the first tasks with vf-eval, and compare conversations and rewards with the reference."""
    replies = TextReplies(reference, tasks)

    def script(request):
        return streamed(replies.reply(message["content"] for message in request.body["messages"]))

    (folder / "gem_contract.py").write_text(
        "import integrations.contract\n"
        "from gem.integrations.verifiers import *\n"
        "from gem.integrations.verifiers import __all__\n"
    )
    with FakeEndpoint(script) as endpoint:
        rows = evaluate(folder, "gem_contract", endpoint, "--env.taskset.num-tasks", str(len(tasks)), *options)
    played = [(EnvTask.from_row(row["task"]["data"]["episode"]), row["traces"][0]) for row in rows]
    assert {task for task, _ in played} == set(replies.tasks)
    for task, trace in played:
        assert trace["errors"] == [] and trace["info"]["gem"]["turn_rewards"] == replies.rewards[task]
        assert trace["rewards"]["gem"]["score"] == pytest.approx(sum(replies.rewards[task]))
        contents = [node["message"]["content"] for node in trace["nodes"]]
        assert len(contents) == 2 * len(replies.rewards[task])
        for k in range(1, len(contents), 2):
            assert contents[k] == replies.reply(contents[:k])


# Each turn starts a process of verifiers, which takes seconds, so these play a few of the recorded episodes.
def test_vf_eval_plays_groups_of_the_recorded_games(reference, tmp_path):
    evaluated(reference, tmp_path, GAME_TASKS[:3], "--env.taskset.env-ids", GAME, "-r", "2")


def test_vf_eval_plays_the_recorded_questions_with_the_python_tool(reference, tmp_path):
    options = ("--env.taskset.env-ids", MATH, "--env.taskset.wrappers", "python_tool")
    evaluated(reference, tmp_path, MATH_TASKS[:3], *options)


class Agent:
    """An agent whose interaction gives replies, and then ends, with or without an error."""

    def __init__(self, replies: list[str], errors: list[str]) -> None:
        self.replies, self.rewards, self.info = list(replies), {}, {}
        self.errors, self.trace = [], self
        self._errors = [vf.Error(type="ProviderError", message=message) for message in errors]

    def interaction(self, task):
        return self

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        return None

    async def turn(self, message):
        if self.replies:
            return vf.Segment(messages=[], root_reply=self.replies.pop(0))
        self.errors = self._errors
        return vf.Segment(messages=[], terminated=True)

    def record_reward(self, name, value):
        self.rewards[name] = value

    def record_metric(self, name, value):
        self.info[name] = value


def run(agent: Agent) -> Agent:
    (task,) = GemTaskset(GemTasksetConfig(id="gem_verifiers", num_tasks=1)).load()
    asyncio.run(GemEnv.run(None, task, SimpleNamespace(player=agent)))
    return agent


def test_a_failed_request_leaves_no_reward():
    assert run(Agent([r"\boxed{1}"], ["down"])).rewards == {}


def test_a_limit_of_the_agent_truncates_the_episode():
    agent = run(Agent([r"\boxed{1}"], []))
    assert agent.rewards == {"gem": 0.0} and agent.info["gem"]["stop_reason"] == "max_tokens"


def test_a_taskset_of_a_mixture_has_tasks_of_each_environment():
    ids = {"game:GuessTheNumber-v0-easy": 1.0, "math:Arithmetic": 1.0}
    tasks = list(GemTaskset(GemTasksetConfig(id="gem_verifiers", env_ids=ids, num_tasks=6)))
    read = [EnvTask.from_row(task.data.episode) for task in tasks]
    assert {task.env_id for task in read} == set(ids) and read == make_tasks(ids, 6)
