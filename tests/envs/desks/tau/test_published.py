"""Compare with the evaluators of TAU-bench and tau2-bench: `make test-tau`, which needs checkouts in $GEM_DATA.

For every task that needs no judge, two conversations: gold actions and required statements, and nothing.
"""

from __future__ import annotations

import importlib
import os
import sys
import types
from pathlib import Path

import pytest

import gem
from gem.messages import ToolCall
from gem.tools.formats import TAGS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.environ.get("GEM_TEST_TAU") != "1", reason="compares with checkouts; make test-tau runs it"),
]


def ours(env, idx, statements, actions):
    """Return the reward of our environment."""
    env.reset(seed=0, idx=idx)
    if statements:
        env.step(" / ".join(statements))
    for name, arguments in actions:
        step = env.step(TAGS.write(ToolCall(name, arguments), ()))
        if step.terminated:
            return step.reward
    return env.step("Goodbye.").reward


@pytest.fixture
def tau_bench(monkeypatch):
    pytest.importorskip("pydantic")
    monkeypatch.syspath_prepend(str(Path(os.environ["GEM_DATA"]) / "tau-bench"))
    client = types.ModuleType("litellm")
    client.completion = None
    monkeypatch.setitem(sys.modules, "litellm", client)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "tau_bench"]:
        del sys.modules[name]


@pytest.mark.parametrize(("domain", "named"), [("retail", "MockRetailDomainEnv"), ("airline", "MockAirlineDomainEnv")])
def test_taubench_gives_the_published_rewards(tau_bench, monkeypatch, domain, named):
    base = importlib.import_module("tau_bench.envs.base")
    action_of = importlib.import_module("tau_bench.types").Action

    class Customer:
        def reset(self, instruction=None):
            return "Hello."

        def step(self, content):
            return "###STOP###" if content == "Goodbye." else "Go on."

        def get_total_cost(self):
            return 0.0

    monkeypatch.setattr(base, "load_user", lambda **kwargs: Customer())
    published = getattr(importlib.import_module(f"tau_bench.envs.{domain}.env"), named)(task_index=0)

    def theirs(idx, statements, actions):
        published.reset(task_index=idx)
        said = [action_of(name="respond", kwargs={"content": " / ".join(statements)})] if statements else []
        for action in [*said, *(action_of(name=n, kwargs=a) for n, a in actions)]:
            result = published.step(action)
            if result.done:
                return result.reward
        return published.step(action_of(name="respond", kwargs={"content": "Goodbye."})).reward

    env = gem.make(f"taubench:{domain}", user="instructions", max_turns=1000)
    totals = {"gold": 0.0, "nothing": 0.0}
    for idx, task in enumerate(published.tasks):
        gold = [(action.name, action.kwargs) for action in task.actions]
        for name, plan in (("gold", (task.outputs, gold)), ("nothing", ((), ()))):
            expected = theirs(idx, *plan)
            assert ours(env, idx, *plan) == expected, (idx, name)
            totals[name] += expected
    print(domain, len(published.tasks), totals)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="tau2 needs Python >= 3.12")
@pytest.mark.filterwarnings("ignore:'audioop' is deprecated")  # tau2 imports it for voices
@pytest.mark.parametrize("domain", ["retail", "airline"])
def test_tau2_gives_the_published_rewards(monkeypatch, domain):
    pytest.importorskip("litellm")
    monkeypatch.syspath_prepend(str(Path(os.environ["GEM_DATA"]) / "tau2-bench" / "src"))
    evaluator = importlib.import_module("tau2.evaluator.evaluator")
    message, run = (importlib.import_module(f"tau2.data_model.{name}") for name in ("message", "simulation"))
    registry = importlib.import_module("tau2.registry").registry
    task_of = importlib.import_module("tau2.data_model.tasks").Task

    def agent(**kwargs):
        return message.AssistantMessage(role="assistant", **kwargs)

    def customer(text):
        return message.UserMessage(role="user", content=text)

    def theirs(task, statements, actions):
        world = registry.get_env_constructor(domain)(solo_mode=False)
        messages = [agent(content="Hello."), customer("Hello.")]
        if statements:
            messages += [agent(content=" / ".join(statements)), customer("Go on.")]
        for number, (name, arguments) in enumerate(actions):
            call = message.ToolCall(id=str(number), name=name, arguments=arguments)
            messages += [agent(content=None, tool_calls=[call]), world.get_response(call)]
        messages += [agent(content="Goodbye."), customer("###STOP###")]
        reason = run.TerminationReason.USER_STOP
        times = {"start_time": "2026-01-01", "end_time": "2026-01-01", "duration": 1.0}
        simulation = run.SimulationRun(id="1", task_id=task.id, termination_reason=reason, messages=messages, **times)
        return evaluator.evaluate_simulation(simulation, task, evaluator.EvaluationType.ALL, False, domain).reward

    env = gem.make(f"tau2:{domain}", user="instructions", without_judge=True, max_turns=1000)
    totals = {"gold": 0.0, "nothing": 0.0}
    for idx in range(env.instances()):
        task = task_of.model_validate(env.unwrapped.dataset[idx])
        gold = [(action.name, action.arguments) for action in task.evaluation_criteria.actions or ()]
        for name, plan in (("gold", (task.evaluation_criteria.communicate_info or (), gold)), ("nothing", ((), ()))):
            expected = theirs(task, *plan)
            assert ours(env, idx, *plan) == expected, (task.id, name)
            totals[name] += expected
    print(domain, env.instances(), totals)
