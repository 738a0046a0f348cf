"""History limits and contexts: extended token by token, or rendered from scratch if necessary."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gem.conversation import ChatFormat, History, RetokenizationMeter, retokenization_mismatch
from gem.conversation.history import conversation
from gem.conversation.observations import as_messages
from gem.core import Env, Step
from gem.errors import BadValue
from gem.messages import Message, Role, assistant, tool, user
from gem.policies import Reply, Request
from gem.rollout import Collector, play_seeds
from gem.trajectory import Trajectory, Turn
from gem.vector import VectorEnv

USER, ASSISTANT, TOOL, END = "\x01", "\x02", "\x04", "\x03"
HEADERS = {"user": USER, "assistant": ASSISTANT, "tool": TOOL}


class Letters:
    """Tokens are characters. Thinking is the text before a '~'."""

    chat_template = "see apply_chat_template"
    eos_token, eos_token_id = END, ord(END)

    def apply_chat_template(self, messages: list[Message], tokenize: bool, add_generation_prompt: bool) -> str:
        last = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=-1)
        shown = (self.message(message, answered=i < last) for i, message in enumerate(messages))
        return "".join(shown) + (ASSISTANT if add_generation_prompt else "")

    def message(self, message: Message, answered: bool) -> str:
        return f"{HEADERS[message['role']]}{message['content']}{END}"

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        return [ord(c) for c in text]

    def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
        return "".join(map(chr, ids))


class Strips(Letters):
    """Shows thinking until the next user message."""

    def message(self, message: Message, answered: bool) -> str:
        said = message["content"]
        if message["role"] == "assistant" and answered:
            said = said.rpartition("~")[2]
        return super().message({**message, "content": said}, answered)


class Trims(Letters):
    def message(self, message: Message, answered: bool) -> str:
        return super().message({**message, "content": message["content"].strip()}, answered)


class Forgets(Letters):
    """Shows no earlier reply."""

    def message(self, message: Message, answered: bool) -> str:
        return "" if message["role"] == "assistant" and answered else super().message(message, answered)


class Endless(Letters):
    def message(self, message: Message, answered: bool) -> str:
        return super().message(message, answered).removesuffix(END)


def ids(text: str) -> list[int]:
    return [ord(c) for c in text]


def play(
    tokenizer: Any,
    replies: list[str],
    observations: list[Any],
    roles: dict[int, Role] | None = None,
    history: History | None = None,
) -> list[Turn]:
    """Build the turns of an episode with these replies and observations."""
    chat, turns = ChatFormat(tokenizer), []
    for k, (reply, observation) in enumerate(zip(replies, observations, strict=True)):
        role: Role = (roles or {}).get(k, "user")
        context = (history or History()).context(chat, turns, as_messages(observation, role), None)
        assert context.exceeded is None
        sampled = ids(reply)
        turn = Turn(observation, chat.decode(sampled), context.ids, sampled, [0.0] * len(sampled), [1] * len(sampled))
        turns.append(replace(turn, role=role, dropped=context.dropped))
    return turns


def contexts(turns: list[Turn]) -> list[str]:
    return ["".join(map(chr, turn.prompt_ids)) for turn in turns]


# Extensions and forks


@pytest.mark.parametrize("tokenizer", [Letters, Strips, Trims])
def test_a_context_extends_the_previous_one_by_sampled_and_new_ids(tokenizer):
    turns = play(tokenizer(), [" a " + END, "b", "c" + END], ["rules", "one", "two"], {1: "tool"})
    assert contexts(turns) == [
        f"{USER}rules{END}{ASSISTANT}",
        f"{USER}rules{END}{ASSISTANT} a {END}{TOOL}one{END}{ASSISTANT}",
        f"{USER}rules{END}{ASSISTANT} a {END}{TOOL}one{END}{ASSISTANT}b{END}{USER}two{END}{ASSISTANT}",
    ]


def test_a_list_of_messages_extends_the_context_by_all_of_them():
    new = [tool("one"), tool("two"), user("next")]
    last = contexts(play(Letters(), ["a" + END, "b" + END], [[user("rules")], new]))[1]
    assert last == f"{USER}rules{END}{ASSISTANT}a{END}{TOOL}one{END}{TOOL}two{END}{USER}next{END}{ASSISTANT}"


def test_thinking_is_kept_during_tool_calls_and_forks_at_a_user_message():
    replies = ["hm~call" + END, "ok~7" + END, "so~8" + END, "9" + END]
    turns = play(Strips(), replies, ["rules", "2", "low", "high"], {1: "tool"})
    assert contexts(turns)[1:] == [
        f"{USER}rules{END}{ASSISTANT}hm~call{END}{TOOL}2{END}{ASSISTANT}",
        f"{USER}rules{END}{ASSISTANT}call{END}{TOOL}2{END}{ASSISTANT}7{END}{USER}low{END}{ASSISTANT}",
        f"{USER}rules{END}{ASSISTANT}call{END}{TOOL}2{END}{ASSISTANT}7{END}{USER}low{END}{ASSISTANT}8{END}{USER}high{END}{ASSISTANT}",
    ]
    assert len(Trajectory(turns=turns).sequences()) == 3


def test_replies_without_thinking_extend_a_forked_context():
    turns = play(Strips(), ["hm~7" + END, "8 " + END, "9" + END], ["rules", "low", "high"])
    assert contexts(turns)[2] == contexts(turns)[1] + f"8 {END}{USER}high{END}{ASSISTANT}"


def test_a_long_chain_of_tool_calls_is_not_rendered_again_every_turn():
    class Counts(Strips):
        written = read = 0

        def apply_chat_template(self, messages: list[Message], tokenize: bool, add_generation_prompt: bool) -> str:
            Counts.written += 1
            return super().apply_chat_template(messages, tokenize, add_generation_prompt)

        def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
            Counts.read += 1
            return super().decode(ids, skip_special_tokens)

    replies = [f"hm {k}~call {k}{END}" for k in range(50)]
    turns = play(Counts(), replies, ["task", *([tool(f"result {k}")] for k in range(49))])
    assert len(Trajectory(turns=turns).sequences()) == 1
    # A turn's new messages, its reply with an answer, and the contexts before and after; a few at the start.
    assert Counts.written <= 4 * len(turns) + 16
    # A reply's action, whether it is kept, and its message.
    assert Counts.read <= 3 * len(turns)


@pytest.mark.parametrize("length", [10, 5_000])
def test_cached_and_uncached_texts_are_encoded_alike(length):
    text = "x" * length
    last = contexts(play(Letters(), ["a" + END, "b" + END], [text, text]))[1]
    assert last == f"{USER}{text}{END}{ASSISTANT}a{END}{USER}{text}{END}{ASSISTANT}"


def test_repeated_and_quoted_thoughts_are_distinguished():
    same = ["hm~7" + END] * 4
    turns = play(Strips(), same, ["rules", "low", "you said hm~7", "you said hm~7"], {1: "user", 3: "tool"})
    stripped = f"{ASSISTANT}7{END}"
    assert (
        contexts(turns)[2] == f"{USER}rules{END}{stripped}{USER}low{END}{stripped}{USER}you said hm~7{END}{ASSISTANT}"
    )
    assert contexts(turns)[3] == contexts(turns)[2] + f"hm~7{END}{TOOL}you said hm~7{END}{ASSISTANT}"


@pytest.mark.parametrize("tokenizer", [Forgets, Endless])
def test_a_template_that_cannot_be_extended_renders_every_context(tokenizer):
    replies, observations = ["a" + END, "b" + END, "c" + END], ["rules", "one", "two"]
    turns = play(tokenizer(), replies, observations)
    for k, turn in enumerate(turns):
        said = conversation(turns[:k], as_messages(observations[k]))
        assert turn.prompt_ids == ids(tokenizer().apply_chat_template(said, False, True))


# Limits


def test_dropping_old_turns_keeps_the_task():
    replies = [f"{k}" + END for k in range(5)]
    turns = play(
        Letters(), replies, ["rules", "a", "b", "c", "d"], history=History(max_turns=2, overflow="drop_oldest")
    )
    assert [turn.dropped for turn in turns] == [0, 0, 0, 1, 2]
    assert (
        contexts(turns)[2] == f"{USER}rules{END}{ASSISTANT}0{END}{USER}a{END}{ASSISTANT}1{END}{USER}b{END}{ASSISTANT}"
    )
    assert (
        contexts(turns)[4] == f"{USER}rules{END}{ASSISTANT}2{END}{USER}c{END}{ASSISTANT}3{END}{USER}d{END}{ASSISTANT}"
    )
    assert len(Trajectory(turns=turns).sequences()) == 3


def test_remaining_turns_are_fed_as_sampled():
    history = History(max_turns=1, overflow="drop_oldest")
    turns = play(Trims(), [" a " + END, " b " + END, "c" + END], ["rules", "one", "two"], history=history)
    assert contexts(turns)[2] == f"{USER}rules{END}{ASSISTANT} b {END}{USER}two{END}{ASSISTANT}"


def test_stripped_thinking_stays_out_when_turns_are_dropped():
    history = History(max_turns=1, overflow="drop_oldest")
    turns = play(Strips(), ["a~1" + END, "b~2" + END, "c" + END], ["rules", "x", "y"], {2: "tool"}, history)
    assert contexts(turns)[1] == f"{USER}rules{END}{ASSISTANT}1{END}{USER}x{END}{ASSISTANT}"
    assert contexts(turns)[2] == f"{USER}rules{END}{ASSISTANT}b~2{END}{TOOL}y{END}{ASSISTANT}"


def test_thinking_stays_stripped_when_earlier_turns_are_dropped():
    history = History(max_turns=2, overflow="drop_oldest")
    turns = play(Strips(), ["a~1" + END, "b~2" + END, "c~3" + END, "d" + END], ["rules", "x", "y", "z"], {}, history)
    assert (
        contexts(turns)[3] == f"{USER}rules{END}{ASSISTANT}2{END}{USER}y{END}{ASSISTANT}3{END}{USER}z{END}{ASSISTANT}"
    )


def test_as_few_turns_as_possible_are_dropped_and_never_the_newest():
    chat = ChatFormat(Letters())
    turns = play(Letters(), [str(k) + END for k in range(4)], ["rules", "a", "b", "c"])

    def shown(max_tokens: int | None, limit: int | None = None, overflow: Any = "drop_oldest") -> Any:
        return History(max_tokens=max_tokens, overflow=overflow).context(chat, turns, [user("d")], limit)

    whole = shown(None)
    assert (whole.dropped, whole.exceeded, len(whole.ids)) == (0, None, 8 + 4 * 6)
    assert [shown(tokens).dropped for tokens in (32, 31, 26, 25, 20, 19, 14)] == [0, 1, 1, 2, 2, 3, 3]
    assert [shown(tokens).exceeded for tokens in (32, 14, 13)] == [None, None, "max_tokens"]
    assert shown(None, limit=25).dropped == shown(25, limit=30).dropped == shown(30, limit=25).dropped == 2
    assert shown(31, overflow="end").exceeded == "max_tokens"
    assert shown(32, overflow="end").exceeded is None


@pytest.mark.parametrize(
    ("kwargs", "says"),
    [
        ({"max_turns": 0}, "max_turns .*at least 1 or None.*got 0"),
        ({"max_tokens": -1}, "max_tokens .*at least 1 or None.*got -1"),
        ({"overflow": "drop"}, "overflow .*'end' or 'drop_oldest'.*'drop'"),
    ],
)
def test_invalid_limits_are_refused(kwargs, says):
    with pytest.raises(BadValue, match=says):
        History(**kwargs)


def test_a_first_prompt_past_the_limit_is_refused():
    with pytest.raises(BadValue, match=r"first prompt .*8 tokens.*max_tokens .*7"):
        History(max_tokens=7).context(ChatFormat(Letters()), [], [user("rules")], None)


# In a rollout


class CountEnv(Env):
    """Ten turns; every other observation is a tool result."""

    def reset(self, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed)
        self.state = 0
        return "rules", {"suffix": "board 0"}

    def step(self, action: str) -> Step:
        self.state += 1
        info: dict[str, Any] = {"use_tool": True} if self.state % 2 else {"suffix": f"board {self.state}"}
        return Step(f"turn {self.state}", 0.1, terminated=self.state == 10, info=info)


class Speller:
    """Replies with the number of the turn, in the tokens of Letters or as text only."""

    max_prompt_tokens: int | None = None
    version = 0

    def __init__(self, chat: ChatFormat | None, limit: int | None = None) -> None:
        self.chat, self.max_prompt_tokens = chat, limit
        self.requests: list[Request] = []

    def act(self, requests: Any) -> list[Reply]:
        self.requests += requests
        return [self.reply(str(request.key[2])) for request in requests]

    def reply(self, text: str) -> Reply:
        return Reply(text) if self.chat is None else Reply(text, ids(text + END), [0.0] * (len(text) + 1), "stop")


def test_tool_results_are_recorded_requested_and_fed_as_tool_messages():
    policy = Speller(ChatFormat(Letters()))
    (episode,) = Collector(VectorEnv.of([CountEnv])).collect(policy, episodes=1)
    assert [turn.role for turn in episode.turns][:4] == ["user", "tool", "user", "tool"]
    assert [request.role for request in policy.requests] == [turn.role for turn in episode.turns]
    assert contexts(episode.turns)[2].endswith(
        f"{TOOL}turn 1{END}{ASSISTANT}1{END}{USER}turn 2\nboard 2{END}{ASSISTANT}"
    )
    assert Trajectory.from_json(episode.to_json()) == episode


def test_a_long_episode_continues_if_old_turns_may_be_dropped():
    history = History(overflow="drop_oldest")
    (episode,) = Collector(VectorEnv.of([CountEnv]), history=history).collect(
        Speller(ChatFormat(Letters()), limit=80), episodes=1
    )
    assert (len(episode.turns), episode.terminated, episode.truncated) == (10, True, False)
    assert max(len(turn.prompt_ids) for turn in episode.turns) <= 80
    assert all(context.startswith(f"{USER}rules\nboard 0{END}{ASSISTANT}") for context in contexts(episode.turns))
    assert len(episode.sequences()) > 1


def test_a_long_episode_is_truncated_by_default():
    (episode,) = Collector(VectorEnv.of([CountEnv])).collect(Speller(ChatFormat(Letters()), limit=80), episodes=1)
    assert (episode.stop_reason, episode.terminated, episode.truncated) == ("max_tokens", False, True)
    assert 1 < len(episode.turns) < 10


@pytest.mark.parametrize("chat", [None, ChatFormat(Letters())], ids=["text", "tokens"])
def test_a_limit_of_turns_ends_an_episode_or_drops_turns(chat):
    def episode(history: History) -> tuple[Trajectory, Speller]:
        policy = Speller(chat)
        with VectorEnv.of([CountEnv], "disabled") as vec_env:
            return play_seeds(vec_env, policy, [0], history=history)[0], policy

    ended, _ = episode(History(max_turns=3))
    assert (ended.stop_reason, ended.truncated, len(ended.turns)) == ("max_turns", True, 4)
    whole, policy = episode(History(max_turns=3, overflow="drop_oldest"))
    assert (whole.terminated, len(whole.turns)) == (True, 10)
    dropped = [0, 0, 0, 0, 1, 2, 3, 4, 5, 6]
    assert [turn.dropped for turn in whole.turns] == [request.dropped for request in policy.requests] == dropped


def test_a_restored_collector_keeps_roles_and_dropped_turns():
    def build() -> Collector:
        return Collector(VectorEnv.of([CountEnv] * 2), history=History(max_turns=2, overflow="drop_oldest"))

    policy, collector, other = Speller(ChatFormat(Letters())), build(), build()
    collector.collect(policy, episodes=1)
    for _ in range(5):
        collector._scheduler.step(policy)
    other.set_state(collector.get_state())
    ours, theirs = (c.collect(policy, episodes=3) for c in (collector, other))
    assert [contexts(t.turns) for t in ours] == [contexts(t.turns) for t in theirs]
    assert [[turn.role for turn in t.turns] for t in ours] == [[turn.role for turn in t.turns] for t in theirs]


# Retokenization


def test_contexts_reproducible_from_text_have_no_mismatch():
    turns = play(Letters(), ["a" + END, "b" + END, "c" + END], ["rules", "one", "two"], {1: "tool"})
    assert retokenization_mismatch(ChatFormat(Letters()), turns) is None


def test_a_mismatch_names_turn_index_and_tokens():
    turns = play(Trims(), ["a" + END, "b " + END, "c" + END], ["rules", "one", "two"])
    found = retokenization_mismatch(ChatFormat(Trims()), turns)
    assert found is not None
    assert (found.turn, found.index) == (2, len(turns[1].prompt_ids) + 1)
    assert found.fed == (" ", END, USER, "t", "w", "o", END, ASSISTANT)
    assert found.rendered == (END, USER, "t", "w", "o", END, ASSISTANT)


def test_dropped_turns_are_no_mismatch():
    history = History(max_turns=1, overflow="drop_oldest")
    turns = play(Letters(), ["a" + END, "b" + END, "c" + END], ["rules", "one", "two"], history=history)
    assert turns[2].dropped == 1 and retokenization_mismatch(ChatFormat(Letters()), turns) is None


def test_the_meter_counts_over_a_run():
    meter = RetokenizationMeter(ChatFormat(Trims()))
    drifting, silent = [" a" + END, "b" + END, "c" + END], ["a" + END, "b" + END, "c" + END]
    for replies in (drifting, silent, drifting):
        meter.add([Trajectory(turns=play(Trims(), replies, ["rules", "one", "two"]))])
    assert (meter.episodes, meter.mismatched_episodes, meter.contexts, meter.mismatched_contexts) == (3, 2, 9, 4)
    assert [(example.turn, example.fed[:2]) for example in meter.examples] == [(1, (" ", "a"))] * 2
    assert str(meter).startswith("4 of 9 contexts and 2 of 3 episodes differ")


def test_a_conversation_is_the_task_and_all_later_messages():
    turns = [Turn("rules", "a"), Turn("one", "b", role="tool"), Turn([user("two")], "c")]
    everything = [user("rules"), assistant("a"), tool("one"), assistant("b"), user("two"), assistant("c"), user("new")]
    assert conversation(turns, [user("new")]) == everything
    assert conversation(turns, [user("new")], dropped=2) == [user("rules"), assistant("c"), user("new")]
    assert conversation([], [user("new")]) == [user("new")]
