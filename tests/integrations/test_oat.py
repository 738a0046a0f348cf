"""Oat: its actors and learners, with stand-ins for vLLM and DeepSpeed, end up with the reference turns."""

# ruff: noqa: E402  the stand-ins come before the imports of Oat
from __future__ import annotations

import pickle
import sys
import types
from types import SimpleNamespace

import pytest

pytest.importorskip("oat")

import peft  # noqa: F401
import torch
import transformers.trainer  # noqa: F401

import datasets  # noqa: F401  before the stand-ins, which these would take for the packages


class Absent(types.ModuleType):
    """A module of which only names are needed to import Oat."""

    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class Store:
    """A plasma store within the process."""

    def __init__(self, path):
        self.objects = {}

    def put(self, data):
        self.objects[name := str(len(self.objects)).encode()] = data
        return SimpleNamespace(binary=lambda: name)

    def get(self, name):
        return self.objects[name]

    def delete(self, names):
        for name in names:
            del self.objects[name]


ABSENT = """vllm vllm.lora vllm.lora.request deepspeed deepspeed.ops deepspeed.ops.adam deepspeed.runtime
deepspeed.runtime.zero deepspeed.runtime.zero.partition_parameters deepspeed.utils launchpad launchpad.nodes
launchpad.nodes.python mosec openai httpx pyarrow.plasma"""
for name in ABSENT.split():
    sys.modules.setdefault(name, Absent(name))
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules.get(parent) or __import__(parent), child, sys.modules[name])
sys.modules["pyarrow.plasma"].connect, sys.modules["pyarrow.plasma"].ObjectID = Store, bytes
sys.modules["vllm"].__version__ = "0.8.4"
sys.modules["vllm"].SamplingParams = SimpleNamespace

from oat.algorithms.ppo_multiturn import PPOMultiTurnLearner
from oat.utils.deepspeed import DeepspeedStrategy

vllm = sys.modules["vllm"]
for name in ABSENT.split():  # Oat has imported them; other packages test for them
    del sys.modules[name]

import gem.integrations.oat as adapter
from gem.errors import BadValue
from gem.integrations.oat import GemActor, GemArgs, GemLearner, GemMultiTurnActor, GemMultiTurnLearner, fill
from gem.integrations.shared.sequences import rebn, turn_returns
from gem.integrations.shared.tasks import EnvTask

from .contract import GAME_TASKS, MATH_TASKS, Held, PromptMismatch, ReplayEngine, check

GAMMA = 0.8


def actor(cls, reference, monkeypatch, **options):
    """An actor whose engine, a stand-in for vllm.LLM, has the recorded replies."""
    engine = ReplayEngine(reference)

    class LLM:
        def __init__(self, model, **settings):
            assert model == "tiny"

        def get_tokenizer(self):
            return reference.tokenizer

        def generate(self, prompt_token_ids, sampling_params, lora_request, use_tqdm):
            assert sampling_params.n == 1 and sampling_params.logprobs == 1
            replies = [engine.answer(ids) for ids in prompt_token_ids]
            return [
                SimpleNamespace(
                    prompt_token_ids=ids,
                    outputs=[
                        SimpleNamespace(
                            token_ids=tuple(reply.sampled_ids),
                            text=reply.text,
                            finish_reason=reply.finish,
                            logprobs=[
                                {token: SimpleNamespace(logprob=value), -1: SimpleNamespace(logprob=0.0)}
                                for token, value in zip(reply.sampled_ids, reply.logprobs, strict=True)
                            ],
                        )
                    ],
                )
                for ids, reply in zip(prompt_token_ids, replies, strict=True)
            ]

    monkeypatch.setattr(vllm, "LLM", LLM, raising=False)
    args = arguments(**options)
    made = cls(SimpleNamespace(get_shm_path=lambda: "plasma"), {"model": "tiny"}, args)
    made.init(0, "")
    return made


def arguments(**options):
    settings = {"gamma": GAMMA, "num_samples": 2, "oracle": "", "train_batch_size_per_device": 1, "zero_stage": 0}
    settings |= {
        "rollout_batch_size_per_device": 1024,
        "generate_max_length": 64,
        "max_model_len": 2048,
        "eval_steps": -1,
    }
    return GemArgs(**{**settings, "temperature": 1.0, "use_fused_lm_head": False, "beta": 0.0, **options})


class Strategy(DeepspeedStrategy):
    """The strategy of Oat on one process, with plain SGD in place of DeepSpeed."""

    def __init__(self, args):
        self.args, self.world_size, self.grad_acc_step, self.seed = args, 1, 1, 0

    def is_rank_0(self):
        return False

    def backward(self, loss, model, optimizer, **_):
        loss.backward()

    def optimizer_step(self, optimizer, model, scheduler, **_):
        optimizer.step()
        optimizer.zero_grad()

    def get_gradient_norm(self, model):
        return 0.0


@pytest.fixture
def one_process(tmp_path, monkeypatch):
    """torch.distributed with one process, and the CPU where Oat asks for the current GPU."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: "cpu")
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    yield
    torch.distributed.destroy_process_group()


def learner(cls, reference, feedback, **options):
    """A learner that has processed the data of an actor. Records what its learning step is given and returns."""

    class Recording(cls):
        def learning_step(self, trajectory):
            self.given, self.infos = trajectory, super().learning_step(trajectory)
            return self.infos

        def compute_monte_carlo_advantages(self, rewards, response_masks):
            self.advantages = super().compute_monte_carlo_advantages(rewards, response_masks)
            return self.advantages

    made = Recording.__new__(Recording)
    args = made.args = arguments(**options)
    made.strategy, made.tokenizer, made.model = Strategy(args), reference.tokenizer, Model(reference)
    made.optimizer, made.scheduler = torch.optim.SGD(made.model.parameters(), lr=0.0), None
    made.critic = made.ref_model = None
    made.pi_buffer, made.query_step, made.policy_sgd_step, made.global_step = [], 0, 0, 0
    made.gradient_update_st = 0.0
    from oat.algorithms.ppo_multiturn import MultiTurnTransitionDataset
    from oat.utils.data import TransitionDataset
    from oat.utils.ops import masked_mean

    made.dataset_builder = MultiTurnTransitionDataset if issubclass(cls, PPOMultiTurnLearner) else TransitionDataset
    made.masked_aggregator = masked_mean
    made.process_feedback_data(feedback)
    made.learn(2)
    return made


class Model(torch.nn.Module):
    def __init__(self, reference):
        super().__init__()
        self.model = type(reference.model)(reference.model.config)
        self.model.load_state_dict(reference.model.state_dict())

    def forward(self, input_ids, attention_mask, **_):
        return self.model(input_ids=input_ids, attention_mask=attention_mask)


def played(made, tasks):
    return made.ipc_client.deserialize_ipc(made.step([task.to_json() for task in tasks], [], None))


def held(reference, given, rewards_N, tasks):
    """What the learner is given for each task, from the datums of one sample of it: turns that continue each other."""
    rows, turns = {}, list(range(len(given["loss_masks"])))
    for task in tasks:
        length = len(reference.trajectory(task).turns)
        for _ in range(2):
            mine, turns = turns[:length], turns[length:]
            ids, mask, logprobs, rewards = [], [], [], []
            for i in mine:
                whole = given["input_ids"][i][given["attention_mask"][i].bool()].tolist()
                prompt = given["prompt_ids_lens"][i]
                assert whole[: len(ids)] == ids, "the context of a turn continues the turn before"
                fed = prompt - len(ids)
                mask += [0] * fed + [1] * (len(whole) - prompt)
                logprobs += [0.0] * fed + list(given["action_logprobs"][i])
                rewards += [0.0] * (len(whole) - len(ids) - 1) + [rewards_N[i]]
                ids = whole
            rows[task] = Held(ids, mask, sum(rewards), logprobs, rewards)
    return rows, turns


def turn_rewards(reference, given, tasks):
    """The reward of each turn, from the returns that the datums hold."""
    returns = [rewards[-1] for rewards in given["rewards"]]
    rewards, i = [], 0
    for task in tasks:
        for _ in range(2):
            length = len(reference.trajectory(task).turns)
            own = [*returns[i : i + length], 0.0]
            rewards += [own[k] - GAMMA * own[k + 1] for k in range(length)]
            i += length
    return rewards


@pytest.mark.parametrize("tasks", [GAME_TASKS[:16], MATH_TASKS[:8]], ids=["game", "math"])
def test_the_learner_is_given_the_reference_turns_and_normalizes_their_returns(
    tasks, reference, monkeypatch, one_process
):
    data = played(actor(GemActor, reference, monkeypatch), tasks)
    made = learner(GemLearner, reference, data)
    rows, rest = held(reference, made.given, turn_rewards(reference, made.given, tasks), tasks)
    check(reference, rows)
    assert len(made.given["loss_masks"]) % (2 * len(tasks)) == 0
    assert [made.given["loss_masks"][i] for i in rest] == [False] * len(rest) and made.given["loss_masks"].count(
        False
    ) == len(rest)
    doubled = [reference.trajectory(task) for task in tasks for _ in range(2)]
    expected = [a for advantages_K in rebn(doubled, GAMMA) for a in advantages_K]
    assert made.advantages.tolist() == pytest.approx([*expected, *[0.0] * len(rest)], abs=1e-6)


@pytest.mark.parametrize("cls", [GemMultiTurnLearner, PPOMultiTurnLearner])
def test_the_multi_turn_learner_is_given_the_reference_episodes(cls, reference, monkeypatch, one_process):
    tasks = GAME_TASKS[:16]
    episodes = played(actor(GemMultiTurnActor, reference, monkeypatch), tasks)
    assert [episode[-1].done for episode in episodes] == [True] * 32
    assert not any(transition.done for episode in episodes for transition in episode[:-1])
    made = learner(cls, reference, episodes, whiten_adv=True, critic_type="grpo")
    rewards = [transition.rewards for episode in episodes for transition in episode]
    shuffled = held(reference, made.given, rewards, tasks)[0]
    check(reference, shuffled)
    returns = [turn_returns(reference.trajectory(task), GAMMA).tolist() for task in tasks for _ in range(2)]
    if cls is PPOMultiTurnLearner:  # its own whitening of the same returns
        assert list(made.given["advantages"]) == pytest.approx([value for row in returns for value in row], abs=1e-6)
    expected = [a for row in rebn([reference.trajectory(t) for t in tasks for _ in range(2)], GAMMA) for a in row]
    for name, value in (("min", min(expected)), ("max", max(expected)), ("mean", 0.0)):
        assert float(made.infos[f"adv_{name}"]) == pytest.approx(value, abs=1e-4)


def wrong_token(turn):
    turn.prompt_ids[-1] ^= 1


def wrong_reward(turn):
    turn.rewards[-1] += 0.5


def cut(turn):
    for values in (turn.response_ids, turn.response_logprobs, turn.rewards):
        values.pop(0)


@pytest.mark.parametrize("mutation", [wrong_token, wrong_reward, cut], ids=lambda mutation: mutation.__name__)
def test_a_mutated_adapter_fails_the_contract(mutation, reference, monkeypatch, one_process):
    tasks, datums = GAME_TASKS[:4], adapter._datums

    def mutated(*arguments):
        data = datums(*arguments)
        mutation(data[-1])
        return data

    monkeypatch.setattr(adapter, "_datums", mutated)
    made = learner(GemLearner, reference, played(actor(GemActor, reference, monkeypatch), tasks))
    with pytest.raises((AssertionError, PromptMismatch)):
        check(reference, held(reference, made.given, turn_rewards(reference, made.given, tasks), tasks)[0])


def test_a_batch_is_a_multiple_of_the_samples_or_an_exact_number():
    data = [adapter._types.TransitionData("", [0] * n, "", [1], [0.0], [1.0]) for n in range(7, 0, -1)]
    filled = fill(data, 4)
    assert filled[:7] == data and [d.loss_mask for d in filled] == [True] * 7 + [False]
    assert len(filled[-1].prompt_ids) == 1, "the shortest datum costs least"
    assert [len(d.prompt_ids) for d in fill(data, 2, turns_per_sample=2)] == [7, 6, 4, 2]
    assert len(fill(data, 4, turns_per_sample=3)) == 12


def test_the_prompts_of_a_learner_are_tasks():
    made = GemLearner.__new__(GemLearner)
    loaded = []
    strategy = SimpleNamespace(args=arguments(num_tasks=5), setup_dataloader=lambda *a, **b: loaded.append(a))
    made.prepare_data(strategy, None)
    assert len({EnvTask.from_row(raw).seed for _, raw, _ in loaded[0][0]}) == 5 and loaded[0][1] == 1024
    strategy.args.eval_steps = 5
    with pytest.raises(BadValue, match="eval_steps 5"):
        made.prepare_data(strategy, None)


def test_arguments_can_be_sent_to_other_processes():
    assert pickle.loads(pickle.dumps(arguments())) == arguments()
