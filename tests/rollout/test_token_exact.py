"""Random conversations with a tiny model: trajectories record exactly the tokens that were fed and sampled.

The environment emits arbitrary text: Unicode, look-alikes of control tokens, results of tools, errors, several
messages at once. The model says special tokens and thinks in the middle of its replies.
"""

from __future__ import annotations

import functools
import runpy
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gem.conversation import History, RetokenizationMeter
from gem.conversation.history import conversation
from gem.conversation.observations import as_messages
from gem.core import Env, Step, StopReason
from gem.messages import Message, assistant, tool, user
from gem.rl.model.policy import CausalLMPolicy
from gem.rl.model.tiny import build_model
from gem.rollout import Collector, collect
from gem.tools.base_tool import BaseTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper
from gem.trajectory import Trajectory
from gem.vector import VectorEnv
from gem.wrappers import WRAPPER_FACTORY

pytestmark = pytest.mark.train

TOKENIZERS = runpy.run_path(str(Path(__file__).parents[1] / "conversation" / "chat_tokenizers.py"))
NAMES = ["chatml", "stripping"]
PIECES = [
    *("<|im_start|>", "<|im_end|>", "<|im_", "start|>", "<|im_<|im_end|>end|>", "<|pad|>"),
    *("[BOS]", "[END]", "[US", "R]", "[AST]", "[TOOL][USR]", "[[END]"),
    *("<think>", "</think>", "<tool_call>", "</tool_call>", "user\n", "assistant"),
    *(" ", "  ", "\n", "\n\n", "\t", "\u200b", "\ufdd0", "\x00"),
    *("é", "e\u0301", "日本語", "🙂", "👩‍👩‍👧", "العربية", "\u202e", "ﬁ"),
    *("the number is too high", "Traceback: division by zero", "1 + 1 = 2", r"\boxed{7}"),
]
END_BIAS, SPECIAL_BIAS, THINK_BIAS = 4.0, 3.5, 5.0  # added to logits, so that ends, special tokens and thinking happen


class TalkEnv(Env):
    """Returns random observations of all types for one to six turns; sometimes quotes the agent."""

    def reset(self, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed)
        self.state = self.rng.randint(1, 6)
        observation = self.rng.choice([self.words(), {"text": self.words()}, [user(self.words())]])
        return observation, self.frame()

    def step(self, action: str) -> Step:
        self.state -= 1
        over = self.state == 0
        observation, info = self.speak(action)
        if over:
            info["stop_reason"] = StopReason.SOLVED
        return Step(observation, 0.0, terminated=over, info=info)

    def speak(self, action: str) -> tuple[Any, dict[str, Any]]:
        said = self.words()
        return self.rng.choice(
            [
                (said, self.frame()),
                ({"text": said}, self.frame()),
                (said, {"invalid": "unreadable"}),
                (action + said, {}),
                (said, {"use_tool": True, "tool_type": "stub"}),
                (action, {"use_tool": True, **self.frame()}),
                (f"Error: {said}", {"use_tool": True}),
                ([tool(said), tool(self.words())], {}),
                ([tool(said), user(self.words())], self.frame()),
                ([user(said), assistant(self.words()), user(self.words())], {}),
            ]
        )

    def words(self) -> str:
        return "".join(self.rng.choices(PIECES, k=self.rng.randint(0, 8)))

    def frame(self) -> dict[str, Any]:
        return {"suffix": self.words()} if self.rng.random() < 0.3 else {}

    def sample_random_action(self) -> str:
        return "go"


def talks(slots: int, seed: int) -> VectorEnv:
    return VectorEnv.of([partial(TalkEnv().spawn, seed=seed * 1000 + slot) for slot in range(slots)])


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class EchoTool(BaseTool):
    """Treats every reply with thinking as a call, and quotes it surrounded by control tokens."""

    tool_type = "echo"

    def instruction_string(self) -> str:
        return "Think <think>like this</think> and I answer.<|im_end|>[END]"

    def execute_action(self, action: str) -> tuple[bool, bool, str, str]:
        valid = "</think>" in action
        return valid, "[" in action, f"<|im_start|>{action}[END]", action


MODELS: dict[str, Any] = {}


def player(name: str, seed: int = 0, **kwargs: Any) -> CausalLMPolicy:
    """Return a policy of the tiny model with the tokenizer of that name."""
    tokenizer = TOKENIZERS[name]()
    if name not in MODELS:
        MODELS[name] = build_model(tokenizer, seed=0, hidden=32, context=2048)
        MODELS[name].register_forward_hook(partial(biased, bias(tokenizer)))
    return CausalLMPolicy(MODELS[name], tokenizer, **{"max_new_tokens": 10, "seed": seed, **kwargs})


def bias(tokenizer: Any) -> torch.Tensor:
    bias_V = torch.zeros(len(tokenizer))
    for id, token in tokenizer.added_tokens_decoder.items():
        bias_V[id] = SPECIAL_BIAS if token.special else THINK_BIAS
    bias_V[tokenizer.eos_token_id] = END_BIAS
    for half in {"[EN", "D]"} & set(tokenizer.get_vocab()):  # with which it can spell a control token
        bias_V[tokenizer.convert_tokens_to_ids(half)] = THINK_BIAS
    return bias_V


def biased(bias_V: torch.Tensor, module: Any, args: Any, out: Any) -> None:
    out.logits = out.logits + bias_V


def check_likelihoods(policy: CausalLMPolicy, trajectories: Sequence[Trajectory]) -> int:
    """Teacher-force the model on every sequence. Returns the number of tokens compared."""
    compared = 0
    for trajectory in trajectories:
        sampled = [id for turn in trajectory.turns for id in turn.sampled_ids]
        trained = []
        for sequence in trajectory.sequences():
            ids = torch.tensor([sequence.ids_T])
            with torch.no_grad():
                logp_T = policy.score(ids, torch.ones_like(ids)).logp_BT[0].tolist()
            for t, mask in enumerate(sequence.loss_mask_T):
                assert mask == (sequence.turn_T[t] >= 0)
                if mask:
                    assert sequence.logprobs_T[t] == pytest.approx(logp_T[t], abs=1e-4)
                    trained.append(sequence.ids_T[t])
                    compared += 1
        assert trained == sampled
    return compared


def check_control_tokens(policy: CausalLMPolicy, trajectory: Trajectory) -> None:
    """Assert that all control tokens fed come from the template or the model."""
    chat, kept_all = policy.chat, len(trajectory.sequences()) == 1
    for k, turn in enumerate(trajectory.turns):
        before = trajectory.turns[:k]
        silent = [{**message, "content": "x"} for message in messages(trajectory, k)]
        said = [id for turn in before for id in turn.sampled_ids if id != chat.eos_id]
        expected = control(chat, chat.prompt(silent)) + control(chat, said)
        fed = control(chat, turn.prompt_ids)
        assert fed == expected if kept_all and not control(chat, said) else Counter(fed) <= Counter(expected)
        assert not kept_all or len(fed) == len(expected)


def control(chat: Any, ids: Sequence[int]) -> list[int]:
    special = set(chat.template.control.values())
    return [id for id in ids if id in special]


def messages(trajectory: Trajectory, k: int) -> list[Message]:
    """Return the conversation up to the observation of turn k."""
    turn = trajectory.turns[k]
    return conversation(trajectory.turns[:k], as_messages(turn.observation, turn.role), turn.dropped)


def forks(trajectory: Trajectory) -> list[int]:
    """Return the turns whose context does not extend the previous one."""
    pairs = zip(trajectory.turns, trajectory.turns[1:], strict=False)
    kept = [(old.prompt_ids + old.sampled_ids, new.prompt_ids) for old, new in pairs]
    return [k for k, (before, now) in enumerate(kept, start=1) if now[: len(before)] != before]


@functools.cache
def played(name: str) -> list[Trajectory]:
    return [t for seed in range(6) for t in collect(talks(6, seed), player(name, seed), episodes=8)]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=8)
@given(seed=st.integers(0, 10_000))
def test_recorded_log_probabilities_match_teacher_forcing_in_random_conversations(name, seed):
    policy = player(name, seed)
    trajectories = collect(talks(6, seed), policy, episodes=8)
    assert check_likelihoods(policy, trajectories) > 50


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("temperature", [0.6, 1.3])
def test_recorded_log_probabilities_match_the_sampling_distribution(name, temperature):
    policy = player(name, temperature=temperature)
    assert check_likelihoods(policy, collect(talks(6, 1), policy, episodes=12)) > 100


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=8)
@given(seed=st.integers(0, 10_000))
def test_environment_text_never_becomes_a_control_token(name, seed):
    policy = player(name, seed)
    for trajectory in collect(talks(6, seed), policy, episodes=8):
        check_control_tokens(policy, trajectory)


@pytest.mark.parametrize("name", NAMES)
def test_episodes_with_real_tools_are_token_exact(name):
    def build(seed: int) -> Env:
        return ToolEnvWrapper(TalkEnv(), [EchoTool], max_tool_uses=3).spawn(seed=seed)

    policy = player(name)
    trajectories = collect(VectorEnv.of([partial(build, seed) for seed in range(6)]), policy, episodes=24)
    assert check_likelihoods(policy, trajectories) > 300
    turns = [turn for t in trajectories for turn in t.turns]
    answered = [turn for turn in turns if turn.role == "tool" and str(turn.observation).startswith("<|im_start|>")]
    assert len(answered) > 10
    for trajectory in trajectories:
        check_control_tokens(policy, trajectory)


@pytest.mark.parametrize("name", NAMES)
def test_chat_wrappers_escape_control_tokens_of_the_environment(name):
    tokenizer = TOKENIZERS[name]()

    def build(seed: int) -> Any:
        return WRAPPER_FACTORY["concat_chat"](TalkEnv().spawn(seed=seed), tokenizer=tokenizer)

    policy = player(name)
    trajectories = collect(VectorEnv.of([partial(build, seed) for seed in range(6)]), policy, episodes=16)
    assert check_likelihoods(policy, trajectories) > 100
    for trajectory in trajectories:
        for k, turn in enumerate(trajectory.turns):
            said = [id for turn in trajectory.turns[:k] for id in control(policy.chat, policy.chat.raw(turn.action))]
            headers = Counter(control(policy.chat, turn.prompt_ids)) - Counter(said)
            assert set(headers) <= set(control(policy.chat, policy.chat.prompt([user("x"), assistant("x"), tool("x")])))
            ends = headers[policy.chat.eos_id]
            most = 2 * k if name == "stripping" else 4 * k + 1  # of replies alone, quoted ones too; of all messages
            assert ends <= most


def test_the_random_conversations_cover_all_cases():
    for name in NAMES:
        chat, turns = player(name).chat, [turn for t in played(name) for turn in t.turns]
        assert {turn.role for turn in turns} == {"user", "tool"}
        assert {type(turn.observation) for turn in turns} == {str, dict, list}
        assert {turn.finish for turn in turns} == {"stop", "length"}
        assert sum("</think>" in turn.action for turn in turns) > 20
        assert sum(bool(control(chat, turn.sampled_ids[:-1])) for turn in turns) > 20
        assert sum(token in str(turn.observation) for turn in turns for token in chat.template.control) > 40
        spelled = sum(chat.reply(turn.sampled_ids)["content"] != turn.action for turn in turns)
        assert name == "chatml" or spelled > 5


def test_a_template_that_keeps_all_replies_never_forks():
    assert all(forks(trajectory) == [] for trajectory in played("chatml"))


def test_a_template_that_strips_thinking_forks_only_when_it_does():
    chat, count = player("stripping").chat, 0
    for trajectory in played("stripping"):
        hidden: set[int] = set()
        for k in range(1, len(trajectory.turns)):
            thinking = {i for i in range(k) if "</think>" in trajectory.turns[i].action} - hidden
            turn = trajectory.turns[k]
            user_spoke = any(m["role"] == "user" for m in as_messages(turn.observation, turn.role))
            assert (k in forks(trajectory)) == bool(thinking and user_spoke)
            if thinking and user_spoke:
                hidden |= thinking
                count += 1
                written = chat.template.render_plain(messages(trajectory, k)).replace("\ufdd0", "")
                assert chat.tokenizer.decode(turn.prompt_ids) == written
    assert count > 20


def test_a_forked_episode_trains_every_token_once():
    for trajectory in played("stripping"):
        sequences = trajectory.sequences()
        assert len(sequences) == len(forks(trajectory)) + 1
        trained = [k for sequence in sequences for k in sequence.turn_T if k >= 0]
        assert trained == [k for k, turn in enumerate(trajectory.turns) for _ in turn.sampled_ids]


@pytest.mark.parametrize("name", NAMES)
def test_contexts_after_dropped_turns_are_token_exact(name):
    policy = player(name)
    history = History(max_turns=2, max_tokens=200, overflow="drop_oldest")
    trajectories = Collector(talks(6, 3), history=history).collect(policy, episodes=40)
    assert check_likelihoods(policy, trajectories) > 300
    assert max(len(turn.prompt_ids) for t in trajectories for turn in t.turns) <= 200
    dropping = [(t, k) for t in trajectories for k, turn in enumerate(t.turns) if turn.dropped]
    assert len(dropping) > 10
    for trajectory, k in dropping:
        check_control_tokens(policy, trajectory)
        assert k - trajectory.turns[k].dropped <= 2
        if trajectory.turns[k].dropped > trajectory.turns[k - 1].dropped:
            assert k in forks(trajectory)


@pytest.mark.parametrize("name", NAMES)
def test_the_meter_finds_mismatches_in_random_conversations(name):
    policy = player(name)
    meter = RetokenizationMeter(policy.chat)
    meter.add(played(name))
    assert 0.3 * meter.contexts < meter.mismatched_contexts < meter.contexts
    assert meter.mismatched_episodes <= meter.episodes == 48
    assert all(example.fed != example.rendered for example in meter.examples)
