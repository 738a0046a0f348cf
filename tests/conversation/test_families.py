"""Contexts and texts under the chat templates of 26 model families."""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import gem
from gem.conversation import ChatFormat
from gem.conversation.history import FULL_HISTORY, conversation, turn_messages
from gem.conversation.observations import as_messages
from gem.conversation.template import remove_whitespace
from gem.errors import BadValue
from gem.messages import Message, user
from gem.trajectory import Trajectory, Turn

pytestmark = pytest.mark.train

LOADED = runpy.run_path(str(Path(__file__).with_name("families.py")))
FAMILIES, tokenizer_of = LOADED["FAMILIES"], LOADED["tokenizer_of"]

SYSTEM: Message = {"role": "system", "content": "be brief"}

# What follows each of the replies: the role of an observation, "two" for two messages of the user.
FOLLOWED = [("user", "user"), ("tool", "tool"), ("tool", "user"), ("user", "tool"), ("two", "two")]
REPLIES = {
    "plain": r"the box is \boxed{7}",
    "thinking": "<think>\nthe ox\n</think>\n\n\\boxed{7}",
    "in thinking": "<think>\nthe",
    "call": '<tool_call>{"name": "the"}</tool_call>',
    "stop string": "<python>1 + 1</python>",
    "empty": "",
}


def reply_ids(chat: ChatFormat, context: str, text: str, end: str | None) -> list[int]:
    """Tokens of a reply as a model may sample them: in other pieces than the tokenizer's, "t" and "he" for "the"."""
    if context.endswith("<think>\n"):  # the prompt has opened the thinking
        text = text.removeprefix("<think>\n") if text.startswith("<think>") else f"ok\n</think>\n\n{text}"
    parts = text.replace("the", "t|he").split("|")
    ids = [id for part in parts for id in chat.template.encode_text(part)]
    return ids if end is None else [*ids, chat.tokenizer.convert_tokens_to_ids(end)]


def observed(role: str, k: int) -> tuple[Any, str]:
    said = f"line {k} of the box"
    return ([user(said), user("go on")], "user") if role == "two" else (said, role)


def play(chat: ChatFormat, text: str, end: str | None, followed: tuple[str, ...], first: Any = "task") -> list[Turn]:
    """Replies with a text and an end, and a turn without reply that holds the last context."""
    turns: list[Turn] = []
    for k, role in enumerate(("user", *followed)):
        observation, role = (first, "user") if k == 0 else observed(role, k)
        new = as_messages(observation, role)
        context = FULL_HISTORY.context(chat, turns, new, None).ids
        shown = chat.template.decode(list(context))
        sampled = reply_ids(chat, shown, text, end) if k < len(followed) else []
        turns.append(Turn(observation, chat.decode(sampled), context, sampled, role=role))
    return turns


def forks(chat: ChatFormat, family: Any, turns: list[Turn], k: int) -> bool:
    """Whether the template no longer shows a reply before turn k that it showed at the turn before."""
    is_user = turns[k].role == "user" or not chat.template.supports_tools
    thinks = ["</think>" in turn.action or was_cut_in_thinking(chat, turn) for turn in turns]
    since = next((j for j in range(k - 1, 0, -1) if turns[j].role == "user" or not family.tools), 0)
    if family.strips == "always":
        return thinks[k - 1]
    return family.strips == "at users" and is_user and any(thinks[since:k])


def scored(turn: Turn) -> Turn:
    return replace(turn, logprobs=[-1.0] * len(turn.sampled_ids), loss_mask=[1] * len(turn.sampled_ids))


def was_cut_in_thinking(chat: ChatFormat, turn: Turn) -> bool:
    """Whether the prompt has opened thinking that the reply neither closed nor ended."""
    opened = chat.template.decode(list(turn.context)).endswith("<think>\n")
    return opened and "</think>" not in turn.action and not chat.has_ended(turn.sampled_ids)


CASES = [
    pytest.param(name, reply, end, id=f"{name}-{reply}-{end or 'cut'}")
    for name, family in FAMILIES.items()
    for reply in REPLIES
    for end in (*family.ends, None)
]


@pytest.mark.parametrize(("name", "reply", "end"), CASES)
def test_contexts_extend_by_what_was_sampled_and_texts_are_what_was_sampled(name, reply, end):
    family, chat = FAMILIES[name], ChatFormat(tokenizer_of(name))
    assert chat.can_extend
    for followed in FOLLOWED:
        turns = play(chat, REPLIES[reply], end, followed)
        for k, turn in enumerate(turns[:-1]):
            assert turn.action == chat.template.decode(turn.sampled_ids).removesuffix(end or "")
            assert chat.has_ended(turn.sampled_ids) == (end is not None)
            kept, context = [*turn.context, *turn.sampled_ids], list(turns[k + 1].context)
            extends = context[: len(kept)] == kept
            assert extends != forks(chat, family, turns, k + 1), (followed, k)
            text, rest = chat.template.decode(context), chat.template.decode(context[len(kept) :])
            if any(was_cut_in_thinking(chat, turn) for turn in turns[: k + 1]):
                assert not extends or not was_cut_in_thinking(chat, turn) or rest.startswith("\n</think>\n\n")
                continue
            written = remove_whitespace(chat.template.render_plain(conversation(turns[: k + 1], new(turns[k + 1]))))
            if not extends:
                assert remove_whitespace(text) == written
            else:  # what the template writes after the reply, without what the model has sampled of it
                rest = remove_whitespace(rest)
                assert written.endswith(rest), (followed, k)
                before, said = written.removesuffix(rest), remove_whitespace(turn.action)
                assert before.endswith((said, said + remove_whitespace(end or "")))
                assert end is None or not rest.startswith(remove_whitespace(end)), "the end is repeated"


def new(turn: Turn) -> list[Message]:
    return turn_messages(turn)


def test_every_end_of_a_family_ends_replies_and_other_special_tokens_are_text():
    for name, family in FAMILIES.items():
        chat = ChatFormat(tokenizer_of(name))
        seven = chat.template.encode_text(r"\boxed{7}")
        ends = [chat.tokenizer.convert_tokens_to_ids(end) for end in family.ends]
        assert set(ends) <= chat.end_ids, name
        for end in ends:
            assert chat.decode([*seven, end]) == chat.decode([*seven, ends[0], end, end]) == r"\boxed{7}", name
            assert chat.decode([end, *seven]) == chat.tokenizer.decode([end]) + r"\boxed{7}", name
        others = set(chat.tokenizer.get_added_vocab()) - {chat.tokenizer.decode([id]) for id in chat.end_ids}
        for token in others:
            assert chat.decode([*seven, chat.tokenizer.convert_tokens_to_ids(token)]) == r"\boxed{7}" + token, name


def test_a_token_that_begins_every_question_is_no_end_of_replies():
    made = LOADED["Family"](
        template="{% for m in messages %}{{ (bos_token if m.role == 'user' else '') + m.content }}{% endfor %}",
        ends=("</s>",),
        bos="<s>",
    )
    chat = ChatFormat(LOADED["build"](made))
    assert (chat.eos_token, chat.template.decode(list(chat.end_ids))) == ("</s>", "</s>")
    fed = chat.prompt([user("a")])
    assert chat.template.decode(chat.extend(fed, chat.encode_reply("b"), "c")) == "<s>ab</s><s>c"


def test_an_end_token_that_another_follows_is_not_repeated():
    """Kimi's models end with <|im_end|>[EOS], batches are padded with <|endoftext|>."""
    chat = ChatFormat(tokenizer_of("qwen2.5"))
    im_end, padding = (chat.tokenizer.convert_tokens_to_ids(token) for token in ("<|im_end|>", "<|endoftext|>"))
    seven = chat.template.encode_text(r"\boxed{7}")
    (new, *others) = (chat.new_ids([*seven, *ends], "x") for ends in ([im_end], [im_end, padding], [im_end] * 2))
    assert others == [new, new] and chat.template.decode(new).startswith("\n<|im_start|>user\nx<|im_end|>")
    for ends in ([], [padding]):
        assert chat.new_ids([*seven, *ends], "x") == [im_end, *new]


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(
    "first", [[SYSTEM, user("task")], [user("task"), user("more")], [SYSTEM, user("alpha"), user("gamma")]]
)
def test_system_messages_and_several_user_messages_open_a_conversation(name, first):
    chat = ChatFormat(tokenizer_of(name))
    turns = play(chat, r"\boxed{7}", FAMILIES[name].ends[0], ("two", "two"), first)
    shown = chat.template.decode(list(turns[-1].context))
    texts = [message["content"] for message in first]
    assert [shown.count(text) for text in texts] == [1] * len(texts) and shown.count("go on") == 2
    assert sorted(texts, key=shown.index) == texts
    thinks = any("</think>" in turn.action for turn in turns)  # where the prompt opens thinking
    assert len(Trajectory(turns=[scored(turn) for turn in turns]).sequences()) == (3 if thinks else 1)


def test_a_template_that_refuses_what_its_model_writes_is_refused_at_the_start():
    with pytest.raises(BadValue, match=r"'<\|channel\|>final<\|message\|>'.*EndpointPolicy without a tokenizer"):
        ChatFormat(LOADED["harmony"]())


def test_the_ends_of_a_generation_config_in_the_folder_of_the_tokenizer_end_replies(tmp_path):
    import transformers

    tokenizer = tokenizer_of("yi")
    other = tokenizer.convert_tokens_to_ids("x")
    tokenizer.save_pretrained(tmp_path)
    for eos, expected in ((other, {other}), ([other, 7], {other, 7}), (None, set())):
        (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": eos}))
        chat = ChatFormat(transformers.AutoTokenizer.from_pretrained(tmp_path))
        assert chat.end_ids == ChatFormat(tokenizer).end_ids | expected
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": "</s>"}))
    with pytest.raises(BadValue, match=r"eos_token_id .*'</s>'"):
        ChatFormat(transformers.AutoTokenizer.from_pretrained(tmp_path))


@pytest.mark.parametrize("name", ["qwen2.5", "llama-3", "gemma-2", "glm-4"])
def test_an_action_has_no_end_token_and_the_record_has_all_ids(name):
    pytest.importorskip("aiohttp", reason="needs the extra [eval]")
    from gem.policies.endpoint import Endpoint, EndpointPolicy
    from gem.rollout import play_seeds
    from gem.testing.fakes import Answer, FakeEndpoint

    tokenizer, chat = tokenizer_of(name), ChatFormat(tokenizer_of(name))
    ends = [tokenizer.convert_tokens_to_ids(end) for end in FAMILIES[name].ends]

    def script(asked: Any) -> Answer:
        ids = [*chat.template.encode_text(r"\boxed{7}"), ends[len(fake.requests) % len(ends)]]
        logprobs = {"tokens": [""] * len(ids), "token_logprobs": [-1.0] * len(ids)}
        choice = {"text": "", "token_ids": ids, "logprobs": logprobs, "finish_reason": "stop"}
        return Answer(body=json.dumps({"choices": [choice]}))

    vec_env = gem.make_vec("game:GuessTheNumber-v0-hard", num_envs=1, autoreset="disabled")
    with vec_env, FakeEndpoint(script) as fake, Endpoint(fake.url, "m") as endpoint:
        (played,) = play_seeds(vec_env, EndpointPolicy(endpoint, tokenizer=tokenizer, max_tokens=9), [1])
    assert len(played.turns) > 2 and {turn.action for turn in played.turns} == {r"\boxed{7}"}
    assert {turn.sampled_ids[-1] for turn in played.turns} == set(ends)
    assert set(ends) <= set(fake.requests[0].body["stop_token_ids"])
    assert len(played.sequences()) == 1
