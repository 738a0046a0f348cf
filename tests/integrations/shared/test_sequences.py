"""pack_episode(): one sequence while contexts extend each other, rewards on the last token of a turn, limits."""

from __future__ import annotations

import pytest

from gem.errors import BadValue
from gem.integrations.shared.sequences import count, pack_batch, pack_episode, pad, rebn, turn_returns
from gem.rl.estimate.advantages import normalize_batch
from gem.trajectory import Continuation, Trajectory, Turn, continuation


def turn(context, sampled, reward=0.0) -> Turn:
    logprobs = [-float(token) for token in sampled]
    return Turn("o", "a", context, sampled, logprobs, [1] * len(sampled), reward=reward)


def episode(*turns: Turn, env_id="a") -> Trajectory:
    return Trajectory(env_id, turns=list(turns), terminated=True)


EXTENDS = episode(turn([1, 2], [3, 4], 0.5), turn([1, 2, 3, 4, 5], [6, 7], 1.0))


def test_an_episode_whose_contexts_extend_is_one_sequence():
    packed = pack_episode(EXTENDS)
    (sequence,) = packed.sequences
    assert sequence.ids_T == [1, 2, 3, 4, 5, 6, 7]
    assert sequence.mask_T == [0, 0, 1, 1, 0, 1, 1]
    assert sequence.logprobs_T == [0, 0, -3, -4, 0, -6, -7]
    assert sequence.rewards_T == [0, 0, 0, 0.5, 0, 0, 1.0]
    assert (sequence.prompt_ids, sequence.response_ids) == ([1, 2], [3, 4, 5, 6, 7])
    assert sequence.response(sequence.mask_T) == [1, 1, 0, 1, 1]
    assert sequence.per_token([2, 3]) == [0, 0, 2, 2, 0, 3, 3]
    assert packed.counts["clean"] == 1 and not sequence.truncated


def test_a_context_that_drops_a_turn_starts_a_new_sequence():
    packed = pack_episode(episode(turn([1], [2], 0.5), turn([1, 2, 3], [4]), turn([1, 3, 4, 5], [6], 1.0)))
    assert [s.ids_T for s in packed.sequences] == [[1, 2, 3, 4], [1, 3, 4, 5, 6]]
    assert [s.mask_T for s in packed.sequences] == [[0, 1, 0, 1], [0, 0, 0, 0, 1]]
    assert [s.rewards_T for s in packed.sequences] == [[0, 0.5, 0, 0], [0, 0, 0, 0, 1.0]]
    assert packed.last is packed.sequences[1]
    names = ("clean", "realign", "fork", "truncated", "lost", "dropped")
    assert count([packed, pack_episode(EXTENDS)]) == dict(zip(names, (2, 0, 1, 0, 0, 0), strict=True))


REENCODED = episode(turn([1], [2, 3, 4], 0.5), turn([1, 2, 9, 8, 5], [6], 1.0))


def test_a_reply_that_was_encoded_again_forks_by_default():
    assert len(pack_episode(REENCODED).sequences) == 2


def test_realignment_replaces_the_end_of_the_reply_by_tokens_that_are_not_trained():
    packed = pack_episode(REENCODED, realign_tokens=2)
    (sequence,) = packed.sequences
    assert sequence.ids_T == [1, 2, 9, 8, 5, 6]
    assert sequence.mask_T == [0, 1, 0, 0, 0, 1]
    assert sequence.logprobs_T == [0, -2, 0, 0, 0, -6]
    assert sequence.rewards_T == [0, 0.5, 0, 0, 0, 1.0], "the reward is on the last token that is left of its turn"
    assert packed.counts["realign"] == 1


@pytest.mark.parametrize(
    ("context", "tokens", "expected"),
    [
        ([1, 2, 3, 4, 5], 0, (Continuation.CLEAN, 4)),
        ([1, 2, 3, 4], 0, (Continuation.CLEAN, 4)),
        ([1, 2, 3, 9], 1, (Continuation.REALIGN, 3)),
        ([1, 2, 9, 9], 1, (Continuation.FORK, 2)),
        ([1, 9, 9, 9], 9, (Continuation.FORK, 1)),  # no token of the reply would be left
        ([9], 9, (Continuation.FORK, 0)),
    ],
)
def test_a_continuation_depends_on_how_many_tokens_of_the_reply_are_replaced(context, tokens, expected):
    assert continuation(turn([1], [2, 3, 4]), turn(context, [7]), tokens) == expected


def test_the_reward_of_a_turn_without_tokens_is_added_to_the_turn_before():
    (sequence,) = pack_episode(episode(turn([1], [2], 0.5), turn([1, 2, 3], [], 0.25))).sequences
    assert sequence.rewards_T == [0, 0.75, 0]


def test_a_limit_cuts_the_end_and_moves_its_rewards():
    packed = pack_episode(EXTENDS, max_tokens=5)
    (sequence,) = packed.sequences
    assert (sequence.ids_T, sequence.rewards_T) == ([1, 2, 3, 4, 5], [0, 0, 0, 1.5, 0])
    assert sequence.truncated and packed.counts["truncated"] == packed.counts["lost"] == 1
    assert pack_episode(EXTENDS, max_response=3).sequences == [sequence]
    assert pack_episode(EXTENDS, max_tokens=7, max_response=5).sequences == pack_episode(EXTENDS).sequences


def test_sequences_without_sampled_tokens_are_left_out_unless_all_are():
    forked = episode(turn([1], [2]), turn([5, 6, 7], [8], 1.0))
    assert [s.ids_T for s in pack_episode(forked, max_tokens=2).sequences] == [[1, 2]]
    (last,) = pack_episode(forked, max_tokens=1).sequences
    assert (last.ids_T, last.mask_T, last.prompt_length) == ([5], [0], 1)


def test_episodes_that_failed_or_have_no_turns_are_refused():
    with pytest.raises(BadValue, match="failed"):
        pack_episode(Trajectory(turns=EXTENDS.turns, failure="down"))
    with pytest.raises(BadValue, match="without turns"):
        pack_episode(Trajectory())
    with pytest.raises(BadValue, match="without sampled tokens"):
        pack_episode(episode(turn([1], [], 1.0)))


def test_rows_are_padded_on_either_side():
    assert pad([[1], [2, 3]], 0) == [[1, 0], [2, 3]]
    assert pad([[1], [2, 3]], 0, length=3, left=True) == [[0, 0, 1], [0, 2, 3]]
    assert pad([], 0) == []
    with pytest.raises(BadValue, match="does not fit in 1"):
        pad([[1, 2]], 0, length=1)


def test_returns_are_discounted_by_environment():
    other = episode(*EXTENDS.turns, env_id="b")
    assert turn_returns(EXTENDS, 0.5).tolist() == [1.0, 1.0]
    assert turn_returns(other, {"a": 0.5, "b": 1.0}).tolist() == [1.5, 1.0]
    with pytest.raises(BadValue, match=r"gamma .*'b'.*: a$"):
        turn_returns(other, {"a": 0.5})


def test_rebn_normalizes_over_all_turns_of_the_batch():
    advantages = rebn([EXTENDS, episode(turn([1], [2], 3.0))], 0.5)
    assert [len(advantages_K) for advantages_K in advantages] == [2, 1]
    assert [a for advantages_K in advantages for a in advantages_K] == normalize_batch([1.0, 1.0, 3.0]).tolist()


def test_a_batch_drops_and_counts_episodes_without_a_sampled_token():
    overflowed = Trajectory("a", truncated=True, stop_reason="max_tokens")
    failed = Trajectory("a", turns=[turn([1], [2])], truncated=True, failure="down")
    refused = episode(turn([1, 2], []))
    batch = pack_batch([overflowed, EXTENDS, failed, refused], max_response=3)
    assert [packed is None for packed in batch] == [True, False, True, True]
    assert batch[1].sequences == pack_episode(EXTENDS, max_response=3).sequences
    assert count(batch)["dropped"] == 3 and count(batch)["truncated"] == 1


def test_a_batch_of_episodes_played_as_text_is_refused():
    with pytest.raises(BadValue, match="no token ids"):
        pack_batch([EXTENDS, Trajectory("a", turns=[Turn("o", "a")], terminated=True)])
