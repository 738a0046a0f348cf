"""The embedded model and tokenizer: built offline and deterministically."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gem.conversation import ChatFormat
from gem.messages import assistant, user
from gem.rl.model.tiny import ASSISTANT, END, PAD, USER, Corpus, build_model, build_tokenizer, collect_corpus

pytestmark = pytest.mark.train

EASY = "game:GuessTheNumber-v0-easy"


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return collect_corpus(EASY, seed=0)


@pytest.fixture(scope="module")
def tokenizer(corpus) -> Any:
    return build_tokenizer([*corpus.observations, *corpus.actions])


def test_the_corpus_contains_rules_hints_and_legal_actions(corpus):
    assert any(text.startswith("Guess the secret integer") for text in corpus.observations)
    assert any(text.endswith("is too low.") for text in corpus.observations)
    assert {rf"\boxed{{{n}}}" for n in range(1, 11)} == set(corpus.actions)


def test_the_corpus_depends_only_on_the_seed(corpus):
    assert collect_corpus(EASY, seed=0) == corpus
    assert collect_corpus(EASY, seed=1) != corpus


def test_the_corpus_uses_the_arguments_of_the_environment():
    corpus = collect_corpus(EASY, 0, {"min_number": 3, "max_number": 4})
    assert {rf"\boxed{{{n}}}" for n in (3, 4)} == set(corpus.actions)


def test_building_the_tokenizer_is_deterministic(corpus, tokenizer):
    again = build_tokenizer([*corpus.observations, *corpus.actions])
    assert again.get_vocab() == tokenizer.get_vocab()


def test_the_tokenizer_merges_frequent_pairs_of_digits_and_phrases(tokenizer):
    assert [tokenizer.decode([t]) for t in tokenizer.encode("1024")] == ["10", "2", "4"]
    long = build_tokenizer(["1010101010"] * 100)
    assert [long.decode([t]) for t in long.encode("10101")] == ["10", "10", "1"]  # at most two digits are one token
    assert len(tokenizer.encode(" is too low.")) == 1
    assert len(tokenizer.encode(r"\boxed{10}")) == 3


def test_a_turn_costs_few_tokens(tokenizer):
    chat = ChatFormat(tokenizer)
    fed = chat.prompt([user("rules")])
    reply = chat.encode_reply(r"\boxed{10}")
    assert len(chat.extend(fed, reply, "Turn 1: 10 is too high.")) - len(fed) <= 15


@settings(deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_text_round_trips(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text


def test_each_control_token_is_one_token(tokenizer):
    ids = [tokenizer.encode(token, add_special_tokens=False) for token in (PAD, END, USER, ASSISTANT)]
    assert all(len(i) == 1 for i in ids)
    assert len({i[0] for i in ids}) == 4
    assert [tokenizer.eos_token_id, tokenizer.pad_token_id] == [ids[1][0], ids[0][0]]


def test_the_template_renders_turns_and_the_reply_header(tokenizer):
    messages = [user("rules"), assistant("7"), user("too low")]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert text == f"{USER}rules{ASSISTANT}7{END}{USER}too low{ASSISTANT}"


def test_context_extension_agrees_with_the_template(tokenizer):
    chat = ChatFormat(tokenizer)
    fed = chat.prompt([user("rules")])
    extended = chat.extend(fed, chat.encode_reply("7"), "too low")
    assert extended == chat.prompt([user("rules"), assistant("7"), user("too low")])


def test_the_model_has_about_100_000_parameters(tokenizer):
    assert 80_000 < build_model(tokenizer, seed=0).num_parameters() < 160_000


def test_the_logits_of_a_new_model_have_a_standard_deviation_near_one(tokenizer):
    for hidden in (32, 64, 128):
        with torch.no_grad():
            logits = build_model(tokenizer, seed=0, hidden=hidden)(torch.arange(40)[None]).logits
        assert 0.7 < float(logits.std()) < 1.4


def test_the_model_depends_only_on_its_seed(tokenizer):
    def weights(seed: int) -> Any:
        return torch.cat([p.flatten() for p in build_model(tokenizer, seed=seed).parameters()])

    torch.manual_seed(1)
    first = weights(0)
    torch.manual_seed(2)
    assert torch.equal(weights(0), first)
    assert not torch.equal(weights(1), first)


def test_building_a_model_does_not_use_the_global_random_stream(tokenizer):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    build_model(tokenizer, seed=0)
    assert torch.equal(torch.rand(1), expected)
