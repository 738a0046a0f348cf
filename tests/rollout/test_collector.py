"""Collector: no episode dropped, no text tokenized again, failures marked.

Tokens are characters here: \\x01 starts a user message, \\x02 a reply, and \\x03 ends it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from gem.conversation import ChatFormat, History
from gem.core import Env, Step, StopReason
from gem.errors import BadValue, InfraError
from gem.policies import RandomPolicy, Reply, Request, ScriptedPolicy
from gem.registry import make
from gem.rollout import Collector, collect
from gem.tools.function_tool import FunctionTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper
from gem.trajectory import ScoreCheck, Trajectory, read_jsonl, write_jsonl
from gem.vector import VectorEnv, make_vec
from gem.wrappers import get_wrapper_fns

USER, ASSISTANT, END = "\x01", "\x02", "\x03"


class CharTokenizer:
    chat_template = "see apply_chat_template"
    eos_token, eos_token_id = END, ord(END)

    def apply_chat_template(self, messages, tokenize, add_generation_prompt):
        said = {"user": lambda text: USER + text, "assistant": lambda text: ASSISTANT + text + END}
        text = "".join(said[m["role"]](m["content"]) for m in messages)
        return text + (ASSISTANT if add_generation_prompt else "")

    def encode(self, text, add_special_tokens):
        return [ord(c) for c in text]

    def decode(self, ids, skip_special_tokens):
        return "".join(map(chr, ids))


class SpellingPolicy:
    """Replies with the number of the turn; replies at the turns of `cut_at` lack their end token."""

    max_prompt_tokens: int | None = None

    def __init__(self, cut_at: Sequence[int] = (), version: int = 0) -> None:
        self.chat = ChatFormat(CharTokenizer())
        self.cut_at, self.version = cut_at, version
        self.keys: list[tuple[int, int, int]] = []

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        self.keys += [request.key for request in requests]
        return [self.reply(request) for request in requests]

    def reply(self, request: Request) -> Reply:
        text = f"move {request.key[2]}"
        cut = request.key[2] in self.cut_at
        ids = [ord(c) for c in text] if cut else self.chat.encode_reply(text)
        return Reply(text, ids, [-float(len(request.prompt_ids))] * len(ids), "length" if cut else "stop")


@dataclass(frozen=True)
class Walk:
    length: int
    turn: int = 0


class WalkEnv(Env):
    """Episodes of 1 or 10 turns with equal probability; shows the turn, and a board in the suffix."""

    state: Walk

    def __init__(self, lengths: tuple[int, ...] = (1, 10), fails_at: int | None = None) -> None:
        self.lengths, self.fails_at = tuple(lengths), fails_at

    def reset(self, seed=None):
        super().reset(seed)
        self.state = Walk(self.rng.choice(self.lengths))
        return "rules", {"suffix": "board 0"}

    def step(self, action):
        self.state = state = replace(self.state, turn=self.state.turn + 1)
        if state.turn == self.fails_at:
            raise InfraError("the server died")
        over = state.turn == state.length
        info: dict[str, Any] = {"suffix": f"board {state.turn}", "reward_parts": {"step": 0.25, "style": -0.05}}
        if "x" in action:
            info["invalid"] = "x"
        if over:
            info["stop_reason"] = StopReason.SOLVED
        return Step(f"turn {state.turn}", 0.2, terminated=over, info=info)

    def sample_random_action(self):
        return self.action_rng.choice(["left", "right", "x"])


def walks(slots: int = 2, wrappers: str = "", tokenizer: Any = None, **kwargs: Any) -> VectorEnv:
    fns = get_wrapper_fns(wrappers, tokenizer=tokenizer)

    def build(seed: int) -> Any:
        env: Any = WalkEnv(**kwargs).spawn(seed=seed)
        for wrap in fns:
            env = wrap(env)
        return env

    return VectorEnv.of([partial(build, seed) for seed in range(slots)])


def text_of(ids: Sequence[int]) -> str:
    return "".join(map(chr, ids))


def without_clocks(trajectory: Trajectory) -> Trajectory:
    return replace(trajectory, turns=[replace(turn, seconds={}) for turn in trajectory.turns])


@pytest.mark.parametrize("policy", [RandomPolicy(), SpellingPolicy()], ids=["text", "tokens"])
def test_a_recorded_turn_has_every_field(policy):
    (episode,) = collect(make_vec("game:GuessTheNumber-v0"), policy, episodes=1)
    assert all(replace(turn) == turn for turn in episode.turns)  # reads every field


class CutEnv(Env):
    """Says half of a surrogate pair in every observation, the last one included."""

    def reset(self, seed=None):
        super().reset(seed)
        return "first \ud83d", {}

    def step(self, action):
        return Step("then \udc00\ud800", 1.0, terminated="2" in action)


class BytesTokenizer(CharTokenizer):
    def encode(self, text, add_special_tokens):
        return list(text.encode())


def test_half_of_a_surrogate_pair_in_an_observation_does_not_end_a_run_of_a_token_policy():
    policy = SpellingPolicy()
    policy.chat = ChatFormat(BytesTokenizer())
    vec_env = VectorEnv.of([CutEnv, CutEnv])
    assert [info["surrogates"] for info in vec_env.reset()[1]] == [1, 1]
    assert [info["surrogates"] for info in vec_env.step(["a", "b"]).infos_B] == [2, 2]
    for episode in collect(vec_env, policy, episodes=4):
        assert episode.failure is None
        assert [turn.observation for turn in episode.turns] == [
            "first \ufffd",
            "then \ufffd\ufffd",
            "then \ufffd\ufffd",
        ]


# In-flight episodes


def test_long_episodes_are_not_underrepresented():
    env = walks(slots=16)
    policy = ScriptedPolicy(["go"])
    episodes = [t for _ in range(63) for t in collect(env, policy, episodes=16)][:1000]
    assert {len(t.turns) for t in episodes} == {1, 10}
    assert sum(len(t.turns) == 10 for t in episodes) / 1000 == pytest.approx(0.5, abs=0.05)


def test_no_episode_is_dropped_or_returned_twice():
    env = walks(slots=4)
    collected = [t for _ in range(20) for t in collect(env, ScriptedPolicy(["go"]), episodes=3)]
    assert len(collected) == 60
    for slot in range(4):
        numbers = [t.episode for t in collected if t.slot == slot]
        assert numbers == list(range(len(numbers)))


def test_an_in_flight_episode_continues_in_the_next_batch():
    env = walks(slots=2, lengths=(3,))
    env.envs[0].lengths = (1,)
    first = collect(env, SpellingPolicy(version=1), episodes=2)
    assert [(t.slot, len(t.turns)) for t in first] == [(0, 1), (0, 1)]
    (long,) = (t for t in collect(env, SpellingPolicy(version=2), episodes=2) if t.slot == 1)
    assert [turn.policy_version for turn in long.turns] == [1, 1, 2]
    assert [turn.action for turn in long.turns] == ["move 0", "move 1", "move 2"]


def test_a_batch_by_transitions_consists_of_whole_episodes():
    batch = collect(walks(slots=3), ScriptedPolicy(["go"]), transitions=30)
    turns = [len(t.turns) for t in batch]
    assert sum(turns) >= 30 > sum(turns[:-1])
    assert set(turns) <= {1, 10}


@pytest.mark.parametrize(
    "size",
    [{}, {"episodes": 1, "transitions": 1}, {"episodes": 0}, {"transitions": 0}, {"episodes": -1}],
    ids=str,
)
def test_exactly_one_positive_size_is_required(size):
    with pytest.raises(BadValue, match=r"episodes or transitions, at least 1.*got"):
        collect(walks(), ScriptedPolicy(["go"]), **size)


@pytest.mark.parametrize("mode", ["next_step", "disabled"])
def test_other_autoreset_modes_are_refused(mode):
    with pytest.raises(BadValue, match=f"autoreset='same_step', got '{mode}'"):
        Collector(VectorEnv.of([WalkEnv], mode))


def test_a_manual_reset_of_the_vector_starts_new_episodes():
    env = walks(slots=2, lengths=(10,))
    env.envs[0].lengths = (1,)
    assert {t.slot for t in collect(env, ScriptedPolicy(["go"]), episodes=3)} == {0}  # slot 1 is under way
    env.reset(seed=5)
    long = next(t for t in collect(env, ScriptedPolicy(["go"]), episodes=11) if t.slot == 1)
    assert [turn.observation.split("\n")[0] for turn in long.turns] == ["rules", *(f"turn {k}" for k in range(1, 10))]


def test_a_restored_collector_continues_identically():
    def build() -> VectorEnv:
        return walks(slots=3, wrappers="concat_with_action, episode_tracking")

    collector, other = Collector(build()), Collector(build())
    collector.collect(RandomPolicy(), episodes=4)
    other.set_state(json.loads(json.dumps(collector.get_state())))
    ahead = [without_clocks(t) for t in collector.collect(RandomPolicy(), episodes=20)]
    assert [without_clocks(t) for t in other.collect(RandomPolicy(), episodes=20)] == ahead


def test_a_restored_collector_feeds_the_same_tokens():
    collector, other = Collector(walks(slots=2)), Collector(walks(slots=2))
    collector.collect(SpellingPolicy(cut_at=[3]), transitions=15)
    other.set_state(json.loads(json.dumps(collector.get_state())))
    ahead = [without_clocks(t) for t in collector.collect(SpellingPolicy(), episodes=6)]
    assert [without_clocks(t) for t in other.collect(SpellingPolicy(), episodes=6)] == ahead


# Tokens


def test_each_context_extends_the_previous_one_by_sampled_and_new_ids():
    (trajectory,) = collect(walks(slots=1, lengths=(4,)), SpellingPolicy(), episodes=1)
    for before, turn in zip(trajectory.turns, trajectory.turns[1:], strict=False):
        kept = before.prompt_ids + before.sampled_ids
        assert turn.prompt_ids[: len(kept)] == kept
        new = text_of(turn.prompt_ids[len(kept) :])
        assert (new[0], new[-1]) == (USER, ASSISTANT)
        assert new.count(USER) == new.count(ASSISTANT) == 1
    assert len(trajectory.sequences()) == 1


def test_the_contexts_of_a_long_episode_share_their_storage(monkeypatch):
    checked = []
    keeps = ChatFormat.keeps
    monkeypatch.setattr(ChatFormat, "keeps", lambda self, sampled: checked.append(sampled) or keeps(self, sampled))
    (trajectory,) = collect(walks(slots=1, lengths=(300,)), SpellingPolicy(cut_at=[7]), episodes=1)
    assert len({id(turn.context._buffer) for turn in trajectory.turns}) == 1
    assert len(checked) == 299  # each reply once
    restored = Trajectory.from_json(json.loads(json.dumps(trajectory.to_json())))
    assert restored == trajectory and restored.sequences() == trajectory.sequences()


def test_a_collector_of_images_can_be_saved():
    image = pytest.importorskip("PIL.Image", reason="needs the extra [vision]")
    with make_vec("vision:Charts", num_envs=2, seed=0) as env, make_vec("vision:Charts", num_envs=2, seed=0) as other:
        collector, copy = Collector(env), Collector(other)
        collector.collect(RandomPolicy(), episodes=2)
        copy.set_state(json.loads(json.dumps(collector.get_state())))
        made, again = (each.collect(RandomPolicy(), episodes=2) for each in (collector, copy))
    for mine, theirs in zip(made, again, strict=True):
        seen, restored = (t.turns[0].observation["images"][0] for t in (mine, theirs))
        assert isinstance(restored, image.Image) and seen.tobytes() == restored.tobytes()
        assert mine.turns[0].observation["text"] == theirs.turns[0].observation["text"]


def test_the_context_contains_the_conversation_so_far():
    (trajectory,) = collect(walks(slots=1, lengths=(2,)), SpellingPolicy(), episodes=1)
    shown = text_of(trajectory.turns[1].prompt_ids).replace("\nboard 0", "").replace("\nboard 1", "")
    assert shown == f"{USER}rules{ASSISTANT}move 0{END}{USER}turn 1{ASSISTANT}"


def test_the_end_token_added_to_a_cut_reply_is_not_trained():
    (trajectory,) = collect(walks(slots=1, lengths=(2,)), SpellingPolicy(cut_at=[0]), episodes=1)
    first, second = trajectory.turns
    assert (first.finish, second.finish) == ("length", "stop")
    assert ord(END) not in first.sampled_ids
    (sequence,) = trajectory.sequences()
    at = len(first.prompt_ids) + len(first.sampled_ids)
    assert sequence.ids_T[at] == ord(END)
    assert (sequence.loss_mask_T[at], sequence.logprobs_T[at], sequence.turn_T[at]) == (0, 0.0, -1)
    assert sequence.loss_mask_T[at - 1] == 1


def test_only_sampled_tokens_are_trained_with_their_log_probabilities():
    (trajectory,) = collect(walks(slots=1, lengths=(3,)), SpellingPolicy(), episodes=1)
    (sequence,) = trajectory.sequences()
    trained = [i for i, mask in enumerate(sequence.loss_mask_T) if mask]
    assert text_of([sequence.ids_T[i] for i in trained]) == f"move 0{END}move 1{END}move 2{END}"
    assert {sequence.turn_T[i] for i in trained} == {0, 1, 2}
    expected = [logp for turn in trajectory.turns for logp in turn.logprobs]
    assert [sequence.logprobs_T[i] for i in trained] == expected


def test_a_history_wrapper_gives_one_sequence_per_turn():
    (trajectory,) = collect(walks(slots=1, lengths=(3,), wrappers="concat"), SpellingPolicy(), episodes=1)
    assert [s.ids_T for s in trajectory.sequences()] == [t.prompt_ids + t.sampled_ids for t in trajectory.turns]
    last = text_of(trajectory.turns[2].prompt_ids)
    assert last.startswith(f"{USER}rules\n")
    assert last.count(USER) == last.count(ASSISTANT) == 1


@pytest.mark.parametrize("wrappers", ["concat_chat", "concat_chat, episode_tracking", "concat_chat_on_reset"])
def test_an_observation_that_is_a_prompt_is_fed_unchanged(wrappers):
    env = walks(slots=1, lengths=(3,), wrappers=wrappers, tokenizer=CharTokenizer())
    (trajectory,) = collect(env, SpellingPolicy(), episodes=1)
    assert [text_of(turn.prompt_ids) for turn in trajectory.turns] == [turn.observation for turn in trajectory.turns]


@pytest.mark.parametrize("wrappers", ["", "concat", "concat_with_action", "concat_chat", "episode_tracking"])
def test_the_suffix_appears_once_in_the_last_user_message(wrappers):
    env = walks(slots=1, lengths=(3,), wrappers=wrappers, tokenizer=CharTokenizer())
    (trajectory,) = collect(env, SpellingPolicy(), episodes=1)
    for k, turn in enumerate(trajectory.turns):
        before, _, last = text_of(turn.prompt_ids).rpartition(USER)
        last = last.removesuffix(ASSISTANT).removesuffix("\n")
        assert last.endswith(f"\nboard {k}")
        assert f"board {k}" not in before + last.removesuffix(f"board {k}")


def test_request_keys_are_unique():
    env, policy = walks(slots=3), SpellingPolicy()
    trajectories = [t for _ in range(5) for t in collect(env, policy, episodes=4)]
    assert len(set(policy.keys)) == len(policy.keys)
    for t in trajectories:
        assert {(t.slot, t.episode, k) for k in range(len(t.turns))} <= set(policy.keys)


# Records


def test_a_turn_records_observation_action_and_reward():
    (trajectory,) = collect(walks(slots=1, lengths=(2,)), ScriptedPolicy(["left", "x"]), episodes=1)
    first, second = trajectory.turns
    assert (first.action, first.invalid, second.action, second.invalid) == ("left", None, "x", "x")
    assert first.reward == 0.2
    assert first.reward_parts == {"step": 0.25, "style": -0.05}
    assert first.seconds["policy"] >= 0 and first.seconds["env"] >= 0
    assert (first.prompt_ids, first.sampled_ids, first.logprobs, first.finish) == ([], [], [], None)
    assert (trajectory.terminated, trajectory.truncated, trajectory.stop_reason) == (True, False, "solved")
    assert trajectory.solved
    assert trajectory.final_observation == "turn 2"
    assert trajectory.total_reward == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("info", "explanation", "checks"),
    [
        ({"explanation": "Because."}, "Because.", []),
        ({"checks": {"a": True, "b": False}}, None, [ScoreCheck("a", True), ScoreCheck("b", False)]),
        ({"explanation": "x" * 3_000}, "x" * 1_999 + "…", []),
        ({"explanation": ["x"], "checks": ["other things"]}, None, []),  # keys of a foreign environment
    ],
    ids=["text", "checks", "long", "foreign"],
)
def test_the_last_turn_has_the_explanation_and_the_checks_of_the_environment(info, explanation, checks):
    class Explained(WalkEnv):
        def step(self, action):
            step = super().step(action)
            return step._replace(info={**step.info, **info}) if step.terminated else step

    env = VectorEnv.of([partial(Explained, lengths=(2,))])
    ((first, last),) = (t.turns for t in collect(env, ScriptedPolicy(["left"]), episodes=1))
    assert (first.explanation, first.checks) == (None, [])
    assert (last.explanation, last.checks) == (explanation, checks)


def test_an_episode_that_a_limit_ends_says_so():
    collector = Collector(walks(slots=1, lengths=(9,)), history=History(max_turns=2))
    (episode,) = collector.collect(ScriptedPolicy(["left"]), episodes=1)
    assert (len(episode.turns), episode.turns[-1].explanation) == (3, "The turn limit was reached.")


def test_requests_and_turns_include_prefix_and_suffix():
    seen = []

    class Looking(ScriptedPolicy):
        def act(self, requests):
            seen.extend(request.observation for request in requests)
            return super().act(requests)

    (trajectory,) = collect(walks(slots=1, lengths=(2,)), Looking(["go"]), episodes=1)
    assert seen == [turn.observation for turn in trajectory.turns] == ["rules\nboard 0", "turn 1\nboard 1"]


def test_a_turn_limit_is_recorded_as_a_truncation():
    env = make_vec("game:GuessTheNumber-v0", num_envs=1, max_turns=2)
    (trajectory,) = collect(env, ScriptedPolicy([r"\boxed{99}"]), episodes=1)
    assert (trajectory.env_id, len(trajectory.turns)) == ("game:GuessTheNumber-v0", 2)
    assert (trajectory.terminated, trajectory.truncated, trajectory.stop_reason) == (False, True, "max_turns")
    assert trajectory.turns[0].invalid == "out_of_range"


def test_a_failed_episode_is_returned_without_rewards():
    env = VectorEnv.of([lambda: WalkEnv((3,)), lambda: WalkEnv((3,), fails_at=2)])
    batch = collect(env, ScriptedPolicy(["go"]), episodes=2)
    failed, whole = batch
    assert (failed.slot, failed.failure, failed.stop_reason) == (1, "InfraError: the server died", "failed")
    assert [turn.reward for turn in failed.turns] == [0.2, None]
    assert (failed.terminated, failed.truncated) == (False, True)
    assert not failed.solved
    assert (whole.failure, len(whole.turns)) == (None, 3)


def test_an_episode_past_the_context_limit_is_truncated_and_the_next_one_starts():
    policy = SpellingPolicy()
    policy.max_prompt_tokens = 60
    first, second = collect(walks(slots=1, lengths=(10,)), policy, episodes=2)
    assert (first.stop_reason, first.terminated, first.truncated) == ("max_tokens", False, True)
    assert first.final_observation.startswith(f"turn {len(first.turns)}")
    assert max(len(turn.prompt_ids) for turn in first.turns) <= 60
    assert (second.episode, second.turns[0].prompt_ids) == (1, first.turns[0].prompt_ids)


def test_collected_episodes_round_trip_through_jsonl(tmp_path):
    batch = collect(walks(slots=3), SpellingPolicy(cut_at=[1]), episodes=9)
    batch += collect(VectorEnv.of([lambda: WalkEnv((3,), fails_at=2)]), RandomPolicy(), episodes=2)
    write_jsonl(tmp_path / "trajectories.jsonl", batch)
    assert list(read_jsonl(tmp_path / "trajectories.jsonl")) == batch


def test_the_same_seeds_give_the_same_episodes():
    def play() -> list[Trajectory]:
        return [without_clocks(t) for t in collect(walks(slots=3), RandomPolicy(), episodes=10)]

    assert play() == play()


@pytest.mark.parametrize(
    ("policy", "message"),
    [(lambda requests: [], "policy .*object with act"), (RandomPolicy, "got <class .*RandomPolicy'>")],
)
def test_a_function_or_a_class_is_no_policy(policy: Any, message: str) -> None:
    with pytest.raises(BadValue, match=message):
        collect(make_vec("game:GuessTheNumber-v0"), policy, episodes=1)


def test_one_environment_is_no_vector() -> None:
    env: Any = make("game:GuessTheNumber-v0")
    with pytest.raises(BadValue, match=r"vec_env .*gem.make_vec.*<GuessTheNumberEnv"):
        collect(env, RandomPolicy(), episodes=1)


def test_a_size_must_be_an_integer() -> None:
    size: Any = "2"
    with pytest.raises(BadValue, match="got episodes='2'"):
        collect(make_vec("game:GuessTheNumber-v0"), RandomPolicy(), episodes=size)


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def test_a_turn_records_its_tool_calls_and_their_faults(tmp_path):
    def call(name: str) -> str:
        return f'<tool_call>\n{{"name": "{name}", "arguments": {{"number": 2}}}}\n</tool_call>'

    env = ToolEnvWrapper(
        make("game:GuessTheNumber-v0-easy", seed=0), [FunctionTool(double)], format="hermes", max_messages=3
    )
    policy = ScriptedPolicy([call("double"), call("triple"), "\\boxed{1}"])
    (episode,) = collect(VectorEnv.of([lambda: env]), policy, episodes=1)
    calls = [[(c["name"], c["arguments"], c["fault"]) for c in turn.tool_calls] for turn in episode.turns]
    assert calls == [[("double", {"number": 2}, None)], [("triple", {"number": 2}, "unknown_tool")], []]
    write_jsonl(tmp_path / "a.jsonl", [episode])
    assert list(read_jsonl(tmp_path / "a.jsonl")) == [episode]
