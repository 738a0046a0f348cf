"""What the viewer shows of an episode."""

from __future__ import annotations

import json
from typing import Any

import pytest
from recorded import PIXEL, explained, failed, guessing, with_tools

from gem.errors import BadValue
from gem.evaluation.columns import Sample
from gem.evaluation.cost import Price
from gem.trajectory import Trajectory, Turn
from gem.viewer.episodes import body_of, dump, messages, parse, row_of


def row(trajectory: Trajectory) -> dict[str, Any]:
    return row_of(trajectory.to_json(), b"line")


def body(trajectory: Trajectory) -> dict[str, Any]:
    return body_of(trajectory.to_json())


def test_a_row_sums_up_an_episode():
    shown = row(guessing(8, turns=3))
    assert (shown["env"], shown["outcome"], shown["reward"]) == ("game:GuessTheNumber-v0-easy", "solved", 1.0)
    assert (shown["turns"], shown["tokens"], shown["update"], shown["task"]) == (3, 18, 2, "seed 1")
    assert shown["seconds"] == pytest.approx(0.753)
    assert (shown["invalid"], shown["tool_errors"], shown["forks"], shown["failure"]) == (0, 0, 0, None)


def test_a_row_counts_forks_invalid_actions_and_tool_errors():
    shown = row(with_tools())
    assert (shown["forks"], shown["invalid"], shown["tool_errors"]) == (1, 1, 1)


def test_the_agents_of_a_game_have_one_task_and_names_of_their_own():
    first, second = (row(guessing(8, agent=agent, group_id=f"seat {k}")) for k, agent in enumerate(("white", "black")))
    assert (first["agent"], second["agent"]) == ("white", "black")
    assert first["task"] == second["task"] == "game of seed 1" and row(guessing(8))["agent"] is None


def test_tool_calls_are_shown_with_their_errors():
    first, second, _ = body(with_tools())["turns"]
    assert first["calls"] == []
    assert second["calls"] == [{"name": "python", "arguments": None, "fault": "malformed"}]


def test_a_failed_episode_has_a_kind_of_failure_and_no_reward():
    shown = row(failed())
    assert (shown["outcome"], shown["failure"], shown["reward"]) == ("failed", "SandboxError", None)
    assert body(failed())["details"]["failure"] == "SandboxError: the fork server died"


@pytest.mark.parametrize(
    ("ends", "outcome"),
    [({"terminated": True}, "terminated"), ({"truncated": True}, "truncated"), ({}, "unfinished")],
)
def test_an_episode_without_a_stop_reason_is_named_by_its_end(ends: dict[str, Any], outcome: str):
    assert row(Trajectory(turns=[Turn("a", "b")], **ends))["outcome"] == outcome


@pytest.mark.parametrize(
    ("ids", "task"),
    [
        ({"group_id": 3, "row_id": 4}, "task 3"),
        ({"row_id": 4, "seed": 5}, "row 4"),
        ({"seed": 2**63}, f"seed {2**63}"),
        ({}, None),
    ],
)
def test_rollouts_of_one_task_share_its_group_row_or_seed(ids: dict[str, Any], task: str | None):
    assert row(Trajectory(turns=[Turn("a", "b")], **ids))["task"] == task


def test_the_context_that_drops_turns_is_a_fork():
    assert [turn["fork"] for turn in body(with_tools())["turns"]] == [False, False, True]
    assert [turn["fork"] for turn in body(guessing(1))["turns"]] == [False, False, False]


def test_tokens_keep_their_log_probabilities_and_loss_mask():
    turn = body(guessing(1))["turns"][1]
    assert len(turn["ids"]) == len(turn["logprobs"]) == len(turn["mask"]) == 6
    assert turn["fed"] == [4, 5, 6] and turn["context"] == 12
    assert turn["mask"] == [0, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("call", [None, 5, "x", {"function": None}, {"function": []}, {"function": "x"}], ids=str)
def test_a_native_call_of_another_shape_is_shown(call):
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    trajectory = Trajectory("test", turns=[Turn("a", "b", message=message)])
    [turn] = body(trajectory)["turns"]
    assert "calls" in json.dumps(turn)


def test_a_reply_shows_reasoning_and_native_calls():
    assert body(with_tools())["turns"][0]["reply"] == {
        "role": "assistant",
        "text": "",
        "calls": [{"name": "python", "arguments": {"code": "print(6 * 7)"}}],
        "reasoning": "Multiply.",
    }


def test_a_tool_result_and_a_list_of_messages_keep_their_roles():
    first, second, third = body(with_tools())["turns"]
    assert [message["role"] for message in first["observation"]] == ["system", "user"]
    assert second["observation"] == [{"role": "tool", "text": "[timeout]"}]
    assert third["observation"] == [{"role": "user", "text": "Look.", "images": [f"data:image/png;base64,{PIXEL}"]}]


@pytest.mark.parametrize(
    ("observation", "shown"),
    [
        (
            {"text": "Look.", "images": [{"$image": PIXEL}]},
            {"text": "Look.", "images": [f"data:image/png;base64,{PIXEL}"]},
        ),
        (
            {"text": "Look.", "images": {"$tuple": ["https://host/a.png"]}},
            {"text": "Look.\n[image: https://host/a.png]"},
        ),
        ({"text": "a", "images": ["data:image/svg+xml,<svg/>"]}, {"text": "a\n[image: data:image/svg+xml,<svg/>]"}),
        ({"board": [1], "path": "C:\\a\nb"}, {"text": "", "data": {"board": [1], "path": "C:\\a\nb"}}),
        ({"id": 2**60}, {"text": "", "data": {"id": str(2**60)}}),
        (None, {"text": "", "data": None}),
    ],
)
def test_images_are_embedded_or_named_and_other_data_is_kept(observation: Any, shown: dict[str, Any]):
    assert messages(observation, "user") == [{"role": "user", **shown}]


@pytest.mark.parametrize(
    ("observation", "title"),
    [
        ("Solve $x^2 = 4$.\n\nThink.", "Solve x^2 = 4.\n\nThink."),
        ([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Go."}], "Go."),
        ({"text": "Look.", "images": []}, "Look."),
        ({"question": "Why?", "n": 3}, "Why?"),
        ("", ""),
    ],
)
def test_a_title_is_the_beginning_of_the_message_of_the_user(observation: Any, title: str):
    assert row(Trajectory(turns=[Turn(observation, "a")]))["title"] == title


def test_an_episode_says_why_it_has_its_score():
    first, second = (body_of(data)["why"] for data in explained())
    assert first["explanation"] == "All tests pass." and [check["passed"] for check in first["checks"]] == [True, True]
    assert second["checks"][1] == {"name": "negative", "passed": False, "detail": "got -1, expected 1"}
    assert body(guessing(1))["why"] == {}


@pytest.mark.parametrize("checks", [3, "x", [None], [{"passed": 1}], {"name": "a", "passed": "yes"}], ids=str)
def test_checks_of_another_shape_are_text_and_pass_only_with_true(checks: Any):
    data = guessing(1).to_json()
    data["turns"][-1] |= {"checks": checks, "explanation": {"a": 1}}
    why = body_of(data)["why"]
    assert all(check["passed"] is False for check in why.get("checks", []))
    assert why["explanation"] == '{\n "a": 1\n}'


def test_numbers_that_json_lacks_are_shown_as_text():
    trajectory = Trajectory(turns=[Turn("a", "b", sampled_ids=[1], logprobs=[float("-inf")], reward=float("nan"))])
    turn = body(trajectory)["turns"][0]
    assert (turn["reward"], turn["logprobs"], row(trajectory)["reward"]) == ("nan", ["-inf"], "nan")
    assert json.loads(dump({"usage": float("inf"), "items": [1.5]})) == {"usage": "inf", "items": [1.5]}


def test_dumped_json_cannot_end_a_script_element():
    assert dump({"a": "</script><!-- & \u2028 \ud800"}) == (
        '{"a":"\\u003c/script\\u003e\\u003c!-- \\u0026 \\u2028 \\ud800"}'
    )


@pytest.mark.parametrize(
    "line",
    [b"{", b"[1]", b'{"turns": 3}', b"\xff", b"[" * 100_000, b'{"update": 1}'],
    ids=["a", "b", "c", "d", "e", "f"],
)
def test_a_line_that_is_not_a_trajectory_is_refused(line: bytes):
    with pytest.raises(BadValue, match=r"not JSON|not a trajectory"):
        parse(line)


@pytest.mark.parametrize(
    "turn",
    [
        3,
        {},
        {"prompt_ids": {}},
        {"prompt_ids": {"keeps": "a", "adds": []}},
        {"prompt_ids": {"keeps": 0, "adds": [[1]]}, "observation": "a", "action": "b"},
    ],
)
def test_a_malformed_turn_is_refused(turn: Any):
    data = {"turns": [turn]}
    with pytest.raises(BadValue, match="not a trajectory"):
        body_of(data)


def test_a_row_has_the_cost_of_the_report_where_only_token_ids_are_recorded():
    price, played = Price(input=2.0, output=8.0), Trajectory(turns=[Turn("q", "a", [1, 2, 3], [4, 5])])
    cost = row_of(played.to_json(), b"line", price)["cost"]
    assert cost == Sample.of(played, price).cost == pytest.approx(22e-6)
