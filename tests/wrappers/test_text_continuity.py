"""Text continuity: the next prompt of a wrapper begins with the previous prompt and the reply.

Replies with control tokens are the exception: their text is changed, and a new training sequence starts.
"""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gem.conversation import ChatFormat
from gem.core import Env, Step
from gem.policies import Reply, Request
from gem.rollout import collect
from gem.tools.function_tool import FunctionTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper
from gem.trajectory import Trajectory
from gem.vector import VectorEnv
from gem.wrappers import ObservationWrapper, get_wrapper_fns

START, END, OTHER = "<|im_start|>", "<|im_end|>", "<|endoftext|>"
CONTROL = {START: 0x110000, END: 0x110001, OTHER: 0x110002}
TEXT_OF = {id: text for text, id in CONTROL.items()}
MODES = ["concat_with_action", "concat_chat", "concat_chat_on_reset"]


class ChatML:
    """A tokenizer with the ChatML template. Tokens are characters, and one token per control token."""

    eos_token, eos_token_id = END, CONTROL[END]
    added_tokens_decoder = {id: SimpleNamespace(content=text, special=True) for id, text in TEXT_OF.items()}  # noqa: RUF012

    def apply_chat_template(self, messages: list[Any], tokenize: bool, add_generation_prompt: bool) -> str:
        text = "".join(self.message(m, i, messages) for i, m in enumerate(messages))
        return text + (f"{START}assistant\n" if add_generation_prompt else "")

    def message(self, message: Any, index: int, messages: list[Any]) -> str:
        return f"{START}{message['role']}\n{message['content']}{END}\n"

    def encode(self, text: str, add_special_tokens: bool, split_special_tokens: bool = False) -> list[int]:
        parts = [text] if split_special_tokens else re.split("(" + "|".join(map(re.escape, CONTROL)) + ")", text)
        return [id for part in parts for id in ([CONTROL[part]] if part in CONTROL else map(ord, part))]

    def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
        return "".join(TEXT_OF.get(id) or chr(id) for id in ids)


class Trims(ChatML):
    """Removes whitespace around each message."""

    def message(self, message: Any, index: int, messages: list[Any]) -> str:
        return super().message({**message, "content": message["content"].strip()}, index, messages)


class StripsThinking(Trims):
    """Shows the thinking of a reply until the next user message, as the template of Qwen3 does."""

    def message(self, message: Any, index: int, messages: list[Any]) -> str:
        content = message["content"]
        if message["role"] == "assistant" and any(m["role"] == "user" for m in messages[index:]):
            content = content.rpartition("</think>")[2]
        return super().message({**message, "content": content}, index, messages)


class QuotingEnv(Env):
    """Quotes the action between control tokens, with a board in the suffix."""

    def __init__(self, turns: int = 99) -> None:
        self.turns = turns

    def reset(self, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed)
        self.state = 0
        return "rules", {"suffix": "board 0"}

    def step(self, action: str) -> Step:
        self.state += 1
        info = {"prefix": "task", "suffix": f"board {self.state}"}
        return Step(f"{START}heard {action}{END}", terminated=self.state == self.turns, info=info)


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def wrapped(mode: str, tokenizer: Any = None, *, tools: bool = False, **arguments: Any) -> Any:
    env: Any = QuotingEnv(**arguments)
    env = ToolEnvWrapper(env, [FunctionTool(double, tag="double")]) if tools else env
    (wrap,) = get_wrapper_fns(mode, tokenizer=tokenizer or ChatML())
    return wrap(env)


def prompts(env: Any, replies: list[str]) -> list[str]:
    return [env.reset(seed=1)[0], *(env.step(reply)[0] for reply in replies)]


def is_plain(reply: str) -> bool:
    return not any(token in reply for token in CONTROL)


PLAIN = ["<|im_", "start|>", "<|", "|>", " ", "\n", "\n\n", "é", "🙂", "\ufdd0", "\u200b", "x", "<think>", "</think>"]
CALLS = ["<double>2</double>", "<double>", "<double>x</double>"]
REPLIES = st.lists(st.lists(st.sampled_from([*PLAIN, *CALLS]), max_size=5).map("".join), max_size=4)
FORGING = st.lists(st.sampled_from([*PLAIN, *CONTROL]), max_size=5).map("".join)


@pytest.mark.parametrize("tools", [False, True], ids=["alone", "with tools"])
@pytest.mark.parametrize("tokenizer", [ChatML, Trims])
@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=30)
@example([" 7 \n", "", "8"])
@given(replies=REPLIES)
def test_the_next_prompt_begins_with_the_prompt_and_the_reply(mode, tokenizer, tools, replies):
    replies = [reply for reply in replies if is_plain(reply)]
    shown = prompts(wrapped(mode, tokenizer(), tools=tools), replies)
    for k, reply in enumerate(replies):
        assert shown[k + 1].startswith(shown[k] + reply)


@pytest.mark.parametrize("mode", MODES[1:])
@settings(max_examples=60)
@given(replies=st.lists(FORGING, min_size=1, max_size=4))
def test_only_the_template_writes_control_tokens(mode, replies):
    shown = prompts(wrapped(mode), replies)
    for k in range(len(replies) + 1):
        messages = 2 * k + 1 if mode == "concat_chat" else 1
        assert [shown[k].count(token) for token in CONTROL] == [messages + 1, messages, 0]


@pytest.mark.parametrize("mode", MODES[1:])
@pytest.mark.parametrize("reply", [f"a{START}system\nb", f"a{END}\n", OTHER])
def test_a_reply_with_control_tokens_is_shown_without_them(mode, reply):
    first, second, third = prompts(wrapped(mode), [reply, "next"])
    assert second.startswith(first) and (not second.startswith(first + reply) or reply == f"a{END}\n")
    assert third.startswith(second + "next")


@pytest.mark.parametrize("reply", [f"7{END}", f"7 \n{END}", END])
def test_a_conversation_continues_after_the_end_token_of_the_template(reply):
    first, second = prompts(wrapped("concat_chat"), [reply])
    assert second.startswith(f"{first}{reply}\n{START}user\n")


def test_a_template_that_strips_thinking_starts_over_when_it_does():
    first, second, third, fourth = prompts(
        wrapped("concat_chat", StripsThinking(), tools=True),
        ["<think>a</think> <double>2</double>", "<think>b</think>7", "8"],
    )
    assert second.startswith(first + "<think>a</think> <double>2</double>")  # a tool has answered
    assert "<think>" not in third.partition("heard")[0]
    assert fourth.startswith(third + "8")


@pytest.mark.parametrize(("tokenizer", "shown"), [(ChatML, "hm\n</think>\n\n"), (StripsThinking, "")])
def test_thinking_that_the_prompt_opened_and_a_limit_cut_is_closed(tokenizer, shown):
    class Opens(tokenizer):
        def apply_chat_template(self, messages: list[Any], tokenize: bool, add_generation_prompt: bool) -> str:
            text = super().apply_chat_template(messages, tokenize, add_generation_prompt)
            return text + ("<think>\n" if add_generation_prompt else "")

    first, second, third = prompts(wrapped("concat_chat", Opens()), ["hm", "ok</think>7"])
    opened = "<think>\n" if shown else ""
    assert second.startswith(first.removesuffix("<think>\n") + opened + shown + END)
    assert third.startswith(f"{second}ok</think>7{END}") == bool(shown)


def test_a_template_without_earlier_replies_renders_every_prompt_from_scratch():
    class Forgets(ChatML):
        def message(self, message: Any, index: int, messages: list[Any]) -> str:
            return "" if message["role"] == "assistant" else super().message(message, index, messages)

    for k, prompt in enumerate(prompts(wrapped("concat_chat", Forgets()), ["7", "8"])):
        assert [prompt.count(f"{START}{role}") for role in ("user", "assistant")] == [k + 1, 1]


@pytest.mark.parametrize("mode", MODES)
def test_a_restored_and_a_forked_episode_continue_the_same_text(mode):
    env = wrapped(mode, StripsThinking())
    prompts(env, [" 7 ", "<think>b</think>8"])
    restored, fork = wrapped(mode, StripsThinking()), env.spawn(same_state=True)
    restored.set_state(json.loads(json.dumps(env.get_state())))
    for reply in ("9", " 10 "):
        assert restored.step(reply)[0] == fork.step(reply)[0] == env.step(reply)[0]


def test_a_bounded_history_and_observations_alone_are_not_continuous():
    env = ObservationWrapper(QuotingEnv(), include_action=True, max_history_length=1)
    assert prompts(env, ["7", "8"])[2] == f"rules\nboard 0\n8\ntask\n{START}heard 8{END}\nboard 2\n"
    assert prompts(wrapped("concat"), ["7"])[1] == f"rules\ntask\n{START}heard 7{END}\nboard 1"


# Trajectories of rollouts


class SpellingPolicy:
    """Says the given replies, as the token ids of their characters and control tokens."""

    max_prompt_tokens, version = None, 0

    def __init__(self, replies: list[str]) -> None:
        self.chat, self.replies = ChatFormat(ChatML()), replies

    def act(self, requests: list[Request]) -> list[Reply]:
        return [self.reply(self.replies[request.key[2]]) for request in requests]

    def reply(self, text: str) -> Reply:
        ids = self.chat.raw(text)
        return Reply(self.chat.decode(ids), ids, [-1.0] * len(ids), "stop" if text.endswith(END) else "length")


def played(mode: str, replies: list[str]) -> Trajectory:
    env = VectorEnv.of([lambda: wrapped(mode, turns=len(replies))])
    (trajectory,) = collect(env, SpellingPolicy(replies), episodes=1)
    return trajectory


@settings(max_examples=30)
@given(replies=st.lists(FORGING.filter(is_plain), min_size=1, max_size=4), ended=st.booleans())
def test_plain_replies_make_one_training_sequence(replies, ended):
    said = [reply + END if ended else reply for reply in replies]
    trajectory = played("concat_chat", said)
    assert len(trajectory.sequences()) == 1
    text = [ChatML().decode(turn.prompt_ids, False) for turn in trajectory.turns]
    assert text == [turn.observation for turn in trajectory.turns]
    assert len(played("concat_chat_on_reset", replies).sequences()) == 1


@pytest.mark.parametrize(
    ("mode", "replies", "sequences"),
    [
        ("concat_chat", [f"a{START}b{END}", f"c{END}", "d"], 2),
        ("concat_chat", [f"a{OTHER}", "c", f"{START}d", "e"], 3),
        ("concat_chat_on_reset", ["a", f"b{START}c", "d"], 2),
        ("concat_chat_on_reset", [f"a{END}", "b"], 2),  # this mode has no end of a reply
    ],
)
def test_a_reply_with_control_tokens_starts_a_training_sequence(mode, replies, sequences):
    trajectory = played(mode, replies)
    assert len(trajectory.sequences()) == sequences
    for turn in trajectory.turns:
        assert ChatML().decode(turn.prompt_ids, False) == turn.observation
