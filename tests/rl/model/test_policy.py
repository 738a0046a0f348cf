"""CausalLMPolicy: sampling, recorded log-probabilities and scoring."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
import transformers
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gem.errors import BadValue
from gem.messages import user
from gem.policies import Reply, Request
from gem.rl.metrics import summarize
from gem.rl.model.policy import CausalLMPolicy
from gem.rl.model.sampling import nucleus, pad_left
from gem.rl.model.tiny import build_model, build_tokenizer, collect_corpus
from gem.rollout import collect, play_seeds
from gem.trajectory import TokenSequence, Trajectory, read_jsonl, write_jsonl
from gem.vector import make_vec
from gem.wrappers import get_wrapper_fns

pytestmark = pytest.mark.train

EASY = "game:GuessTheNumber-v0-easy"
END_BIAS = 4.0  # added to the end token's logit, so that a model that knows nothing ends about a fifth of its replies


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    corpus = collect_corpus(EASY, seed=0)
    return build_tokenizer([*corpus.observations, *corpus.actions], vocabulary=320)


@pytest.fixture(scope="module")
def model(tokenizer) -> Any:
    model = build_model(tokenizer, seed=0, hidden=32, context=256)
    bias = torch.zeros(len(tokenizer))
    bias[tokenizer.eos_token_id] = END_BIAS

    def end_sooner(module, args, out):
        out.logits = out.logits + bias

    model.register_forward_hook(end_sooner)
    return model


def policy(model: Any, tokenizer: Any, **kwargs: Any) -> CausalLMPolicy:
    return CausalLMPolicy(model, tokenizer, **{"max_new_tokens": 6, "seed": 3, **kwargs})


def requests(player: CausalLMPolicy, count: int) -> list[Request]:
    """Return requests of different lengths from different slots."""
    return [Request("", player.chat.prompt([user("rules " * (i % 5) + str(i))]), (i, 0, 0), str) for i in range(count)]


def play(player: CausalLMPolicy, episodes: int = 20, wrappers: str = "") -> list[Trajectory]:
    # on_unreadable="continue": a model that knows nothing still plays all four turns.
    fns = get_wrapper_fns(wrappers, tokenizer=player.tokenizer)
    env = make_vec(EASY, num_envs=6, seed=1, wrappers=fns, on_unreadable="continue")
    return collect(env, player, episodes=episodes)


def test_a_reply_ends_with_any_end_token_of_model_and_tokenizer(model, tokenizer):
    end, question = tokenizer.eos_token_id, requests(policy(model, tokenizer), 40)
    others = tokenizer.convert_tokens_to_ids(["a", "e", "<|pad|>"])
    before = [reply.sampled_ids for reply in policy(model, tokenizer, max_new_tokens=12).act(question)]
    named = model.generation_config.eos_token_id
    model.generation_config.eos_token_id = [end, *others]
    try:
        player = policy(model, tokenizer, max_new_tokens=12)
        replies = player.act(question)
    finally:
        model.generation_config.eos_token_id = named
    assert player.stop_ids == sorted([end, *others])
    assert {reply.sampled_ids[-1] for reply in replies} > {end}
    for ids, reply in zip(before, replies, strict=True):
        stop = next((t + 1 for t, id in enumerate(ids) if id in player.stop_ids), None)
        assert reply.sampled_ids == ids[:stop]
        assert reply.text == tokenizer.decode(ids if stop is None else ids[: stop - 1])
        assert reply.finish == ("length" if stop is None else "stop")
        assert len(reply.logprobs) == len(reply.sampled_ids)
    cut = next(reply.sampled_ids for reply in replies if reply.sampled_ids[-1] in others)
    fed = player.chat.extend([], cut, "next")
    assert fed[: len(cut) + 1] == [*cut, end]  # the template's own end follows, as a fed token


def score(player: CausalLMPolicy, sequences: Sequence[TokenSequence]) -> list[list[float]]:
    """Teacher-force packed sequences in one right-padded batch and return their log-probabilities."""
    width = max(len(s.ids_T) for s in sequences)
    ids = torch.tensor([[*s.ids_T, *[player.pad_id] * (width - len(s.ids_T))] for s in sequences])
    attend = torch.tensor([[1] * len(s.ids_T) + [0] * (width - len(s.ids_T)) for s in sequences])
    with torch.no_grad():
        return player.score(ids, attend).logp_BT.tolist()


# The token contract


@pytest.mark.parametrize("wrappers", ["", "concat", "concat_chat"])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_recorded_log_probabilities_match_teacher_forcing(model, tokenizer, temperature, wrappers):
    player = policy(model, tokenizer, temperature=temperature)
    sequences = [s for t in play(player, wrappers=wrappers) for s in t.sequences()]
    checked = 0
    for sequence, logps in zip(sequences, score(player, sequences), strict=True):
        for recorded, scored, mask in zip(sequence.logprobs_T, logps, sequence.loss_mask_T, strict=False):
            if mask:
                assert recorded == pytest.approx(scored, abs=1e-4)
                checked += 1
    assert checked > 200


def test_an_episode_is_packed_into_one_sequence(model, tokenizer):
    for trajectory in play(policy(model, tokenizer)):
        assert len(trajectory.turns) == 4 or trajectory.solved
        assert len(trajectory.sequences()) == 1
        for before, turn in zip(trajectory.turns, trajectory.turns[1:], strict=False):
            kept = before.prompt_ids + before.sampled_ids
            assert turn.prompt_ids[: len(kept)] == kept


def test_cut_replies_get_an_untrained_end_token(model, tokenizer):
    trajectories = play(policy(model, tokenizer))
    finishes = {turn.finish for t in trajectories for turn in t.turns}
    assert finishes == {"stop", "length"}
    for trajectory in trajectories:
        (sequence,) = trajectory.sequences()
        for before, turn in zip(trajectory.turns, trajectory.turns[1:], strict=False):
            at = len(before.prompt_ids) + len(before.sampled_ids)
            if before.finish == "length":
                assert len(before.sampled_ids) == 6 and tokenizer.eos_token_id not in before.sampled_ids
                assert (sequence.ids_T[at], sequence.loss_mask_T[at]) == (tokenizer.eos_token_id, 0)
            else:
                assert before.sampled_ids.index(tokenizer.eos_token_id) == len(before.sampled_ids) - 1
                assert turn.prompt_ids[at] != tokenizer.eos_token_id


def test_the_text_of_a_reply_is_its_decoded_ids(model, tokenizer):
    for trajectory in play(policy(model, tokenizer), episodes=8):
        for turn in trajectory.turns:
            ids = [t for t in turn.sampled_ids if t != tokenizer.eos_token_id]
            assert turn.action == tokenizer.decode(ids)


def test_a_history_wrapper_gives_one_sequence_per_turn(model, tokenizer):
    for trajectory in play(policy(model, tokenizer), episodes=6, wrappers="concat"):
        assert len(trajectory.sequences()) == len(trajectory.turns)


def test_episodes_round_trip_through_jsonl(model, tokenizer, tmp_path):
    trajectories = play(policy(model, tokenizer), episodes=6)
    write_jsonl(tmp_path / "t.jsonl", trajectories)
    assert list(read_jsonl(tmp_path / "t.jsonl")) == trajectories


# Sampling


@pytest.mark.parametrize("kwargs", [{}, {"temperature": 0.5}, {"top_p": 0.8}, {"temperature": 0.0}], ids=str)
def test_a_reply_does_not_depend_on_the_rest_of_the_batch(model, tokenizer, kwargs):
    player = policy(model, tokenizer, **kwargs)
    asked = requests(player, 12)
    together = player.act(asked)
    alone = [reply for request in asked for reply in player.act([request])]
    in_threes = policy(model, tokenizer, max_batch=3, **kwargs).act(asked)
    backwards = player.act(asked[::-1])[::-1]
    for other in (alone, in_threes, backwards):
        assert [r.sampled_ids for r in other] == [r.sampled_ids for r in together]
        for mine, theirs in zip(together, other, strict=True):
            assert mine.logprobs == pytest.approx(theirs.logprobs, abs=1e-5)


def test_padding_does_not_shift_absolute_positions(tokenizer):
    # Rotary positions are relative, so the tiny Qwen3 would not notice; GPT-2's are absolute.
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_positions=128, n_embd=32, n_layer=1, n_head=2, initializer_range=0.5
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        player = policy(transformers.GPT2LMHeadModel(config), tokenizer)
    asked = requests(player, 8)
    alone = [reply for request in asked for reply in player.act([request])]
    for mine, theirs in zip(player.act(asked), alone, strict=True):
        assert mine.sampled_ids == theirs.sampled_ids
        assert mine.logprobs == pytest.approx(theirs.logprobs, abs=1e-4)


def test_a_reply_depends_on_its_key_and_the_seed(model, tokenizer):
    def replies(seed: int, keys: Sequence[tuple[int, int, int]]) -> list[Reply]:
        player = policy(model, tokenizer, seed=seed)
        prompt = player.chat.prompt([user("rules")])
        return player.act([Request("", prompt, key, str) for key in keys])

    keys = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)]
    assert replies(1, keys) == replies(1, keys)
    assert replies(1, keys) == replies(1, keys[::-1])[::-1]
    assert len({tuple(r.sampled_ids) for r in replies(1, keys)}) == 4
    assert replies(2, keys) != replies(1, keys)


def test_token_frequencies_match_the_model(model, tokenizer):
    player = policy(model, tokenizer, max_new_tokens=1)
    prompt, draws = player.chat.prompt([user("rules")]), 4000
    drawn = [r.sampled_ids[0] for r in player.act([Request("", prompt, (i, 0, 0), str) for i in range(draws)])]
    with torch.no_grad():
        p_V = model(input_ids=torch.tensor([prompt])).logits[0, -1].softmax(-1).tolist()
    for token in sorted(range(len(p_V)), key=lambda v: -p_V[v])[:10]:
        spread = math.sqrt(draws * p_V[token] * (1 - p_V[token]))
        assert abs(drawn.count(token) - draws * p_V[token]) < 5 * spread


def test_temperature_zero_takes_the_most_likely_token_with_log_probability_zero(model, tokenizer):
    player = policy(model, tokenizer).variant(temperature=0.0)
    (request,) = requests(player, 1)
    (reply,) = player.act([request])
    ids = list(request.prompt_ids)
    for token in reply.sampled_ids:
        with torch.no_grad():
            assert token == int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax())
        ids.append(token)
    assert reply.logprobs == [0.0] * len(reply.sampled_ids)


def test_recorded_log_probabilities_match_the_nucleus(model, tokenizer):
    player = policy(model, tokenizer, top_p=0.7, temperature=0.8)
    for request, reply in zip(asked := requests(player, 8), player.act(asked), strict=True):
        ids = list(request.prompt_ids)
        for token, logp in zip(reply.sampled_ids, reply.logprobs, strict=True):
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([ids])).logits[0, -1].double() / 0.8
            kept = nucleus_slowly(logits.log_softmax(-1).tolist(), 0.7)
            assert kept[token] == pytest.approx(logp, abs=1e-4)
            ids.append(token)


def nucleus_slowly(logps: list[float], top_p: float) -> list[float]:
    kept, mass = [], 0.0
    for token in sorted(range(len(logps)), key=lambda v: -logps[v]):
        if mass >= top_p:
            break
        kept.append(token)
        mass += math.exp(logps[token])
    return [logp - math.log(mass) if token in kept else -math.inf for token, logp in enumerate(logps)]


@settings(deadline=None)
@given(st.lists(st.integers(-80, 80), min_size=1, max_size=12, unique=True), st.floats(0.01, 1.0))
def test_the_nucleus_agrees_with_the_plain_loop(tenths, top_p):
    logp_V = torch.tensor(tenths, dtype=torch.float64).div(10).log_softmax(-1)
    masses = logp_V.sort(descending=True).values.exp().cumsum(-1)
    assume((masses - top_p).abs().min() > 1e-9)  # on the border itself, rounding decides
    expected = nucleus_slowly(logp_V.tolist(), top_p)
    assert nucleus(logp_V[None], top_p)[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_golden_nucleus():
    logp = torch.tensor([[0.5, 0.3, 0.2]]).log()
    assert nucleus(logp, 0.6).exp()[0].tolist() == pytest.approx([0.625, 0.375, 0.0])
    assert nucleus(logp, 0.1).exp()[0].tolist() == pytest.approx([1.0, 0.0, 0.0])
    assert nucleus(logp, 1.0).exp()[0].tolist() == pytest.approx([0.5, 0.3, 0.2])


def test_prompts_are_padded_on_the_left():
    ids, attend = pad_left([[1, 2, 3], [4]], fill=9)
    assert ids.tolist() == [[1, 2, 3], [9, 9, 4]]
    assert attend.tolist() == [[1, 1, 1], [0, 0, 1]]


# Scoring


def test_scores_and_entropies_agree_with_a_plain_loop(model, tokenizer):
    player = policy(model, tokenizer, temperature=0.7)
    ids = [*tokenizer.encode("Turn 1: 10 is too high."), tokenizer.eos_token_id]
    scores = player.score(torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.long))
    assert (scores.logp_BT[0, 0], scores.entropy_BT[0, 0]) == (0.0, 0.0)
    for t in range(1, len(ids)):
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids[:t]])).logits[0, -1]
        logps = (logits / 0.7).log_softmax(-1).tolist()
        assert float(scores.logp_BT[0, t].detach()) == pytest.approx(logps[ids[t]], abs=1e-4)
        entropy = -sum(math.exp(logp) * logp for logp in logps)
        assert float(scores.entropy_BT[0, t].detach()) == pytest.approx(entropy, abs=1e-4)


def test_scores_carry_gradient_and_sampling_carries_none(model, tokenizer):
    player = policy(model, tokenizer)
    assert player.score(torch.tensor([[4, 5, 6]]), torch.ones(1, 3, dtype=torch.long)).logp_BT.requires_grad
    player.act(requests(player, 2))
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("kwargs", [{"temperature": 0.0}, {"top_p": 0.9}])
def test_scoring_is_refused_for_greedy_and_nucleus_sampling(model, tokenizer, kwargs):
    with pytest.raises(BadValue, match="cannot train at temperature"):
        policy(model, tokenizer, **kwargs).score(torch.tensor([[4, 5]]), torch.ones(1, 2, dtype=torch.long))


# Limits and invalid arguments


def test_an_episode_past_the_context_limit_is_truncated(model, tokenizer):
    player = policy(model, tokenizer, max_new_tokens=60)
    trajectories = play(player, episodes=12)
    limits = [t for t in trajectories if t.stop_reason == "max_tokens"]
    assert limits and all(t.truncated and not t.terminated for t in limits)
    assert max(len(turn.prompt_ids) for t in trajectories for turn in t.turns) <= player.max_prompt_tokens


def test_an_episode_whose_first_prompt_is_past_the_context_limit_is_truncated_and_the_others_go_on(model, tokenizer):
    player = policy(model, tokenizer)
    short, long = requests(player, 2)
    too_long = Reply("", finish="context_overflow")
    long = replace(long, prompt_ids=list(long.prompt_ids) * 100)
    (expected,) = player.act([short])
    first, reply, last = player.act([long, short, long])
    assert first == last == too_long
    assert reply == replace(expected, logprobs=pytest.approx(expected.logprobs, abs=1e-5))
    (trajectory,) = play(policy(model, tokenizer, max_new_tokens=250), episodes=1)
    assert (trajectory.stop_reason, trajectory.truncated, trajectory.turns[0].sampled_ids) == ("max_tokens", True, [])


@pytest.mark.parametrize("kwargs", [{}, {"temperature": 0.0}, {"temperature": 0.5}, {"top_p": 0.8}], ids=str)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_reply_with_logits_that_are_not_finite_fails_and_the_others_do_not(model, tokenizer, value, kwargs):
    def damage(module: Any, args: Any, out: Any) -> None:
        out.logits[0] = value  # of one row of the batch

    player = policy(model, tokenizer, **kwargs)
    asked = requests(player, 6)
    expected = player.act(asked)
    with damaged(model, damage):
        replies = policy(model, tokenizer, **kwargs).act(asked)
    failed = [reply for reply in replies if reply.failure is not None]
    assert 0 < len(failed) < 6
    assert all("not finite" in reply.failure and not reply.text and not reply.sampled_ids for reply in failed)
    for reply, other in zip(replies, expected, strict=True):
        assert reply.failure is not None or reply.sampled_ids == other.sampled_ids


@contextmanager
def damaged(model: Any, hook: Any) -> Iterator[None]:
    handle = model.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def test_one_logit_that_is_not_a_number_is_enough(model, tokenizer):
    def damage(module: Any, args: Any, out: Any) -> None:
        out.logits[..., 5] = math.nan

    for temperature in (0.0, 1.0):
        player = policy(model, tokenizer, temperature=temperature)
        with damaged(model, damage):
            assert all(reply.failure for reply in player.act(requests(player, 3)))


def test_tokens_that_a_model_rules_out_are_no_failure(model, tokenizer):
    def rule_out(module: Any, args: Any, out: Any) -> None:
        out.logits[..., 5:] = -math.inf

    for temperature in (0.0, 1.0):
        player = policy(model, tokenizer, temperature=temperature)
        with damaged(model, rule_out):
            assert all(max(reply.sampled_ids) < 5 for reply in player.act(requests(player, 3)))


def test_an_evaluation_counts_episodes_with_logits_that_are_not_finite_as_failed(model, tokenizer):
    def damage(module: Any, args: Any, out: Any) -> None:
        out.logits[0] = math.nan

    player = policy(model, tokenizer, temperature=0.0)
    with (
        make_vec(EASY, num_envs=2, seed=1, autoreset="disabled", on_unreadable="continue") as vec_env,
        damaged(model, damage),
    ):
        played = play_seeds(vec_env, player, [1, 2, 3, 4])
    scores = summarize(played)
    failed = [t for t in played if t.failure is not None]
    assert scores["failed"] == len(failed) > 0
    assert all("not finite" in t.failure for t in failed)


def test_no_requests_give_no_replies(model, tokenizer):
    assert policy(model, tokenizer).act([]) == []


def test_a_policy_names_the_type_of_its_weights_and_of_its_computation(model, tokenizer):
    weights = str(model.dtype).removeprefix("torch.")
    assert policy(model, tokenizer).backend() == {"weights": weights, "computation": weights, "device": "cpu"}
    assert policy(model, tokenizer, bf16=True).backend()["computation"] == "bfloat16"
    model.config.quantization_config = {"quant_method": "awq"}
    try:
        assert policy(model, tokenizer).backend()["weights"] == "awq"
    finally:
        del model.config.quantization_config


@pytest.mark.parametrize(
    ("kwargs", "says"),
    [
        ({"temperature": -0.1}, r"temperature .*>= 0.*got -0\.1"),
        ({"temperature": math.nan}, "temperature .*>= 0.*got nan"),
        ({"top_p": 0.0}, r"top_p must be in \(0, 1\], got 0.0"),
        ({"top_p": 1.1}, r"top_p must be in \(0, 1\], got 1.1"),
        ({"max_new_tokens": 0}, "max_new_tokens .*>= 1.*got 0"),
        ({"max_batch": 0}, "must be >= 1"),
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused(model, tokenizer, kwargs, says):
    with pytest.raises(BadValue, match=says):
        policy(model, tokenizer, **kwargs)
