"""Trajectories: packing into sequences and round trips through JSON Lines."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gem.core import StopReason
from gem.errors import BadValue
from gem.messages import ToolErrorType
from gem.trajectory import ScoreCheck, TokenSequence, Trajectory, Turn, read_jsonl, write_jsonl


def turn(prompt: list[int], sampled: list[int], reward: float | None = 0.0) -> Turn:
    logprobs = [-0.1 * token for token in sampled]
    return Turn("obs", "act", prompt, sampled, logprobs, [1] * len(sampled), finish="stop", reward=reward)


IDS = st.lists(st.integers(0, 9), max_size=5)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
OBSERVATIONS = st.text() | st.fixed_dictionaries({"text": st.text()}) | st.none()


@st.composite
def turns(draw: st.DrawFn) -> list[Turn]:
    """Generate turns whose contexts mostly extend the previous one."""
    before: list[int] = []
    made = []
    for _ in range(draw(st.integers(0, 5))):
        prompt = (before if draw(st.booleans()) else before[: draw(st.integers(0, 3))]) + draw(IDS)
        sampled = draw(IDS)
        made.append(
            Turn(
                observation=draw(OBSERVATIONS),
                action=draw(st.text()),
                context=prompt,
                sampled_ids=sampled,
                logprobs=[draw(FINITE) for _ in sampled],
                loss_mask=[draw(st.integers(0, 1)) for _ in sampled],
                finish=draw(st.sampled_from(["stop", "length", None])),
                reward=draw(st.none() | FINITE),
                reward_parts=draw(st.dictionaries(st.text(), FINITE, max_size=2)),
                invalid=draw(st.none() | st.text()),
                seconds={"policy": draw(st.floats(0, 9))},
                policy_version=draw(st.integers(0, 9)),
                explanation=draw(st.none() | st.text()),
                checks=draw(st.lists(st.builds(ScoreCheck, st.text(), st.booleans(), st.text()), max_size=2)),
            )
        )
        before = prompt + sampled
    return made


TRAJECTORIES = st.builds(
    Trajectory,
    env_id=st.none() | st.text(),
    slot=st.integers(0, 9),
    episode=st.integers(0, 9),
    seed=st.none() | st.integers(0, 2**62),
    turns=turns(),
    final_observation=OBSERVATIONS,
    terminated=st.booleans(),
    truncated=st.booleans(),
    stop_reason=st.none() | st.sampled_from([r.value for r in StopReason]),
    failure=st.none() | st.text(),
)


# Packing


def packed_slowly(turns_K: list[Turn]) -> list[list[tuple[int, int, float, int]]]:
    """Pack token by token, as (id, mask, logprob, turn): the slow reference."""
    packed: list[list[tuple[int, int, float, int]]] = []
    for k, t in enumerate(turns_K):
        known = [row[0] for row in packed[-1]] if packed else None
        if known is None or t.prompt_ids[: len(known)] != known:
            packed.append([])
            known = []
        for token in t.prompt_ids[len(known) :]:
            packed[-1].append((token, 0, 0.0, -1))
        for i, token in enumerate(t.sampled_ids):
            packed[-1].append((token, t.loss_mask[i], t.logprobs[i], k))
    return packed


@given(turns())
def test_packing_agrees_with_packing_token_by_token(made):
    assume(all(turn.prompt_ids for turn in made))
    packed = Trajectory(turns=made).sequences()
    rows = [list(zip(s.ids_T, s.loss_mask_T, s.logprobs_T, s.turn_T, strict=True)) for s in packed]
    assert [r for r in rows if r] == [r for r in packed_slowly(made) if r]


def test_extending_contexts_are_packed_into_one_sequence():
    first = turn([1, 2], [3, 9])
    second = turn([1, 2, 3, 9, 4], [5])
    assert Trajectory(turns=[first, second]).sequences() == [
        TokenSequence(
            ids_T=[1, 2, 3, 9, 4, 5],
            loss_mask_T=[0, 0, 1, 1, 0, 1],
            logprobs_T=[0.0, 0.0, *first.logprobs, 0.0, *second.logprobs],
            turn_T=[-1, -1, 0, 0, -1, 1],
        )
    ]


def test_a_context_that_does_not_extend_the_previous_one_starts_a_new_sequence():
    packed = Trajectory(turns=[turn([1, 2], [3]), turn([1, 4], [5]), turn([1, 4, 5, 6], [7])]).sequences()
    assert [s.ids_T for s in packed] == [[1, 2, 3], [1, 4, 5, 6, 7]]
    assert [s.turn_T for s in packed] == [[-1, -1, 0], [-1, -1, 1, -1, 2]]


def test_a_context_without_the_sampled_ids_starts_a_new_sequence():
    # A template that strips thinking: the next context contains the prompt but not the reply as sampled.
    packed = Trajectory(turns=[turn([1, 2], [3, 4]), turn([1, 2, 4, 5], [6])]).sequences()
    assert [s.ids_T for s in packed] == [[1, 2, 3, 4], [1, 2, 4, 5, 6]]


def test_packing_does_not_modify_turns():
    trajectory = Trajectory(turns=[turn([1], [2]), turn([1, 2, 3], [4])])
    before = trajectory.to_json()
    trajectory.sequences()
    assert trajectory.to_json() == before


def test_sequences_of_an_episode_without_tokens_are_an_error():
    with pytest.raises(BadValue, match="turn 1 has no token ids"):
        Trajectory(turns=[turn([1], [2]), Turn("obs", "act")]).sequences()
    assert Trajectory().sequences() == []


# Rewards and outcome


def test_the_total_reward_is_the_sum_over_turns():
    trajectory = Trajectory(turns=[turn([1], [2], 0.25), turn([1], [2], -0.1)])
    assert trajectory.rewards_K == [0.25, -0.1]
    assert trajectory.total_reward == pytest.approx(0.15)


def test_a_failed_trajectory_has_no_rewards():
    trajectory = Trajectory(turns=[turn([1], [2], 0.5), turn([1], [2], None)], failure="InfraError: server died")
    with pytest.raises(BadValue, match="server died"):
        _ = trajectory.rewards_K
    with pytest.raises(BadValue, match="server died"):
        _ = trajectory.total_reward


def test_solved_depends_on_the_stop_reason_and_not_on_the_reward():
    assert Trajectory(turns=[turn([1], [2], 0.2)], stop_reason="solved").solved
    assert not Trajectory(turns=[turn([1], [2], 1.0)], stop_reason="max_turns").solved
    assert not Trajectory(turns=[turn([1], [2], 1.0)]).solved


# JSONL


@pytest.mark.slow
@given(st.lists(TRAJECTORIES, max_size=3))
def test_json_text_round_trips_without_loss(trajectories):
    written = [json.dumps(t.to_json()) for t in trajectories]
    assert [Trajectory.from_json(json.loads(line)) for line in written] == trajectories


def test_the_name_of_a_reward_part_may_start_with_a_dollar_sign():
    trajectory = Trajectory(turns=[Turn("observation", "action", reward_parts={"$": 0.5, "format": 0.25})])
    assert Trajectory.from_json(json.loads(json.dumps(trajectory.to_json()))) == trajectory


def test_a_record_of_a_version_without_explanations_is_read():
    made = Trajectory("a", turns=[turn([1], [2])])
    data = json.loads(json.dumps(made.to_json()))
    del data["turns"][0]["explanation"], data["turns"][0]["checks"]
    assert Trajectory.from_json(data) == made


def test_checks_are_a_list_of_objects_in_json():
    (data,) = Trajectory(turns=[Turn("a", "b", checks=[ScoreCheck("unit tests", False, "2 of 3")])]).to_json()["turns"]
    assert data["checks"] == [{"name": "unit tests", "passed": False, "detail": "2 of 3"}]


def test_checks_are_read_from_a_mapping_or_a_list():
    assert ScoreCheck.read({"format": True, "database": False}) == [
        ScoreCheck("format", True),
        ScoreCheck("database", False),
    ]
    listed = [{"name": "format", "passed": True}, {"name": "database", "passed": False, "detail": "2 rows"}]
    assert ScoreCheck.read(listed) == [ScoreCheck("format", True), ScoreCheck("database", False, "2 rows")]


@pytest.mark.parametrize("checks", [3, "passed", ["a"], {"a": "wrong"}, {1: True}, [{"name": "a"}], [{"passed": True}]])
def test_other_values_are_no_checks(checks):
    with pytest.raises(BadValue, match="not checks"):
        ScoreCheck.read(checks)


def test_many_and_long_checks_are_cut_and_the_failed_ones_are_kept():
    read = ScoreCheck.read([{"name": f"{n}", "passed": n != 300, "detail": "x" * 5_000} for n in range(301)])
    assert (len(read), read[0].name, read[1].name) == (100, "300", "0")
    assert {len(check.detail) for check in read} == {2_000}


def test_a_file_round_trips_without_loss_and_is_appended_to(tmp_path):
    path = tmp_path / "trajectories.jsonl"
    made = [Trajectory(env_id="a", turns=[turn([1, 2], [3]), turn([1, 2, 3, 4], [5], 1 / 3)]), Trajectory(slot=3)]
    write_jsonl(path, made[:1])
    write_jsonl(path, made[1:])
    assert list(read_jsonl(path)) == made
    assert path.read_bytes().count(b"\n") == 2


def test_lines_are_ascii(tmp_path):
    path = tmp_path / "trajectories.jsonl"
    made = [Trajectory(turns=[Turn("日本\u2028", "\ud800 lone surrogate \x00 \n")])]
    write_jsonl(path, made)
    assert path.read_bytes().isascii()
    assert list(read_jsonl(path)) == made


def test_a_stop_reason_is_read_back_as_text():
    trajectory = Trajectory(stop_reason=str(StopReason.MAX_TURNS))
    assert Trajectory.from_json(json.loads(json.dumps(trajectory.to_json()))).stop_reason == "max_turns"


def test_the_file_size_is_linear_in_tokens():
    def size(turns_K: int) -> int:
        ids: list[int] = []
        made = []
        for _ in range(turns_K):
            made.append(turn([*ids, 1, 2, 3], [4]))
            ids += [1, 2, 3, 4]
        return len(json.dumps(Trajectory(turns=made).to_json()))

    assert size(200) < 2.5 * size(100)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "3",
        "null",
        "{}",
        '{"turns": 3}',
        '{"turns": [null]}',
        '{"turns": [{"prompt_ids": []}]}',
        '{"turns": [{"prompt_ids": {"keeps": "x", "adds": []}, "sampled_ids": []}]}',
        '{"turns": [], "slot": "first"}',
    ],
)
def test_an_invalid_line_is_reported_with_file_and_number(tmp_path, line):
    path = tmp_path / "trajectories.jsonl"
    write_jsonl(path, [Trajectory()])
    with path.open("a") as file:
        file.write(line + "\n")
    reading = read_jsonl(path)
    assert next(reading) == Trajectory()
    with pytest.raises(BadValue, match=r"trajectories\.jsonl, line 2: "):
        next(reading)


def test_a_binary_file_is_reported(tmp_path):
    path = tmp_path / "trajectories.jsonl"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadValue, match=r"trajectories\.jsonl, line 1: "):
        list(read_jsonl(path))


def test_a_missing_file_raises_file_not_found():
    with pytest.raises(FileNotFoundError):
        list(read_jsonl(Path("no/such/file.jsonl")))


NUMPY = [np.float32(0.1), np.int64(3), np.arange(6, dtype=np.int16).reshape(2, 3), np.array([np.nan])]
VALUES = [
    ("a", 1),
    {(1, 2)},  # one element: the order of a set is random
    frozenset({1}),
    b"\x00\xff",
    {"text": "a", 1: {"$tuple": 2}, ("b",): None, "$set": [1.5, True]},
    [float("inf"), -0.0, 2**70],
    [[], {}, (), set(), b"", ""],
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_observations_keep_their_types(value, tmp_path):
    made = Trajectory(turns=[Turn(value, "a"), Turn({"x": [value]}, "b")], final_observation=value, row_id=("a", 1))
    write_jsonl(tmp_path / "a.jsonl", [made])
    (read,) = read_jsonl(tmp_path / "a.jsonl")
    assert read == made and repr(read) == repr(made)  # repr() tells 1 from 1.0 and True


@pytest.mark.parametrize("value", NUMPY, ids=repr)
def test_numpy_values_keep_their_types(value):
    read = Trajectory.from_json(json.loads(json.dumps(Trajectory(final_observation=value).to_json())))
    assert type(read.final_observation) is type(value) and read.final_observation.dtype == value.dtype
    np.testing.assert_array_equal(read.final_observation, value)


def test_numpy_scalars_in_rewards_and_log_probabilities_become_numbers():
    made = Turn("obs", "act", [1], [np.int32(2)], [np.float32(-0.5)], [1], reward=np.float64(0.5))
    made.reward_parts = {"a": np.float32(0.5)}
    (read,) = Trajectory.from_json(json.loads(json.dumps(Trajectory(turns=[made]).to_json()))).turns
    assert (read.reward, read.reward_parts, read.logprobs, read.sampled_ids) == (0.5, {"a": 0.5}, [-0.5], [2])
    assert type(read.reward) is float and type(read.sampled_ids[0]) is int


def test_enums_and_numpy_scalars_in_typed_fields_become_text_and_numbers():
    made = Trajectory(slot=np.int64(2), seed=np.int64(3), terminated=np.bool_(True), stop_reason=StopReason.LOST)
    made.turns = [Turn("a", "b", invalid=ToolErrorType.MALFORMED, policy_version=np.int64(1))]
    read = Trajectory.from_json(json.loads(json.dumps(made.to_json())))
    assert (read.slot, read.seed, read.terminated, read.stop_reason) == (2, 3, True, "lost")
    assert (read.turns[0].invalid, read.turns[0].policy_version) == ("malformed", 1)
    assert {type(v) for v in (read.slot, read.seed, read.turns[0].policy_version)} == {int}


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_images_keep_every_pixel(mode):
    image = pytest.importorskip("PIL.Image", reason="needs the extra [vision]")
    picture = image.effect_noise((7, 5), 90).convert("RGBA").convert(mode)
    made = Trajectory(turns=[Turn({"text": "what?", "images": [picture]}, "a")])
    read = Trajectory.from_json(json.loads(json.dumps(made.to_json()))).turns[0].observation["images"][0]
    assert (read.mode, read.size, read.tobytes()) == (picture.mode, picture.size, picture.tobytes())
    assert read.getpalette() == picture.getpalette()


@pytest.mark.parametrize("value", [object(), {"a": [1j]}, StopReason.LOST, np.array([None]), range(3)])
def test_a_value_that_cannot_be_kept_is_refused_and_named(value, tmp_path):
    path = tmp_path / "a.jsonl"
    with pytest.raises(BadValue, match=r"turns\[0\]\.observation.* cannot be kept"):
        write_jsonl(path, [Trajectory(turns=[Turn(value, "a")])])
    assert path.read_bytes() == b""
    with pytest.raises(BadValue, match=r"turns\[0\] cannot be kept"):
        Trajectory(turns=[Turn("a", "b", reward="much")]).to_json()  # type: ignore[arg-type]


def test_an_image_of_an_unusual_mode_is_refused():
    image = pytest.importorskip("PIL.Image", reason="needs the extra [vision]")
    with pytest.raises(BadValue, match="mode 'F'; convert it"):
        Trajectory(final_observation=image.new("F", (1, 1))).to_json()


@pytest.mark.parametrize("data", [{"$none": 1}, {"$numpy": [1]}, {"$image": "!"}, {"$dict": [1]}], ids=str)
def test_an_unknown_encoding_is_reported(data):
    if "$image" in data:
        pytest.importorskip("PIL.Image", reason="needs the extra [vision]")
    with pytest.raises(BadValue, match="not a trajectory"):
        Trajectory.from_json({"turns": [], "final_observation": data})


def test_where_an_episode_comes_from_is_kept():
    made = Trajectory(
        "a", seed=3, row_id=7, group_id=3, model="m", sampling={"temperature": 0.5}, tools=[{"name": "f"}]
    )
    assert Trajectory.from_json(json.loads(json.dumps(made.to_json()))) == made


def test_contexts_share_their_storage_after_reading():
    made = []
    for k in range(100):
        made.append(turn([*(made[-1].prompt_ids + made[-1].sampled_ids if made else []), *range(1000)], [k]))
    read = Trajectory.from_json(json.loads(json.dumps(Trajectory(turns=made).to_json())))
    assert read.turns == made and len({id(t.context._buffer) for t in read.turns}) == 1


def test_a_failed_turn_is_written_without_a_reward():
    data = json.loads(json.dumps(Trajectory(turns=[turn([1], [2], None)]).to_json()))
    assert data["turns"][0]["reward"] is None
    assert not any(isinstance(v, float) and math.isnan(v) for v in data["turns"][0].values())


def test_a_missing_reward_is_not_zero():
    with pytest.raises(BadValue, match="has no rewards"):
        _ = Trajectory(turns=[Turn("seen", "said", reward=1.0), Turn("seen", "said", reward=None)]).rewards_K


def test_an_observation_that_is_nested_too_deep_is_an_error_and_no_recursion():
    deep: list = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(BadValue, match=r"turns\[0\] cannot be kept"):
        Trajectory("test:Env", turns=[Turn(observation=deep, action="a")]).to_json()
