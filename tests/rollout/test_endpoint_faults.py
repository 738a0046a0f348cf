"""An endpoint with faults: every episode finishes or fails with its cause, and sequences are exact.

``python benchmarks/endpoint.py`` plays 2,000 episodes and measures their throughput.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="needs the extra [eval]")

from gem.core import Env, Step, StopReason
from gem.policies import Endpoint, EndpointPolicy
from gem.rollout import play_seeds
from gem.testing.fakes.endpoint import FakeEndpoint, FaultyModel
from gem.trajectory import Trajectory
from gem.vector import VectorEnv

thread_env = partial(VectorEnv.of, backend="thread")

ASSISTANT, END = "\x02", "\x03"


class CharTokenizer:
    """One token per character."""

    chat_template = "see apply_chat_template"
    eos_token, eos_token_id = END, ord(END)

    def apply_chat_template(self, messages, tokenize, add_generation_prompt):
        said = {"user": lambda text: "\x01" + text, "assistant": lambda text: ASSISTANT + text + END}
        text = "".join(said[m["role"]](m["content"]) for m in messages)
        return text + (ASSISTANT if add_generation_prompt else "")

    def encode(self, text, add_special_tokens):
        return [ord(c) for c in text]

    def decode(self, ids, skip_special_tokens):
        return "".join(map(chr, ids))


class TalkEnv(Env):
    """Takes 2 to 5 turns."""

    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed)
        self.state = self.rng.randint(2, 5)
        return f"task {seed}", {}

    def step(self, action: str) -> Step:
        self.state -= 1
        info = {"stop_reason": StopReason.SOLVED} if self.state == 0 else {}
        return Step(f"{action}? {self.state} left", float(self.state == 0), terminated=self.state == 0, info=info)


@pytest.mark.slow
@pytest.mark.parametrize("retries", [0, 5])
@pytest.mark.parametrize("vector", [VectorEnv.of, thread_env])
def test_every_episode_finishes_or_fails_with_its_cause_and_sequences_are_exact(vector, retries):
    with (
        FakeEndpoint(FaultyModel(faults=0.02, latency=0.001), strict=True) as fake,
        Endpoint(fake.url, "m", timeout=0.5, retries=retries, backoff=0.001) as endpoint,
        vector([TalkEnv] * 8, "disabled") as vec_env,
    ):
        policy = EndpointPolicy(endpoint, tokenizer=CharTokenizer(), max_tokens=16)
        played = play_seeds(vec_env, policy, range(80))
    assert fake.refused == []
    assert [episode.seed for episode in played] == list(range(80))
    outcomes = {"failed" if episode.failure else episode.stop_reason for episode in played}
    assert outcomes == {"solved", "refused", "failed"}
    for episode in played:
        assert episode.terminated != episode.truncated
        assert (episode.stop_reason == "failed") == (episode.failure is not None)
        assert episode.failure is None or episode.failure.startswith(("EndpointError: ", "RequestRefused: "))
        check_exact(episode)


def check_exact(episode: Trajectory) -> None:
    rows = []
    for turn in episode.turns:
        if turn.finish == "content_filter":
            assert not turn.sampled_ids and turn is episode.turns[-1]
        else:
            assert (turn.sampled_ids, turn.logprobs) == FaultyModel.reply(turn.prompt_ids)
            assert turn.action + END == "".join(map(chr, turn.sampled_ids))
        rows += zip(turn.sampled_ids, turn.logprobs, strict=True)
    sequences = episode.sequences()
    assert [s.ids_T for s in sequences] == [turn.prompt_ids + turn.sampled_ids for turn in episode.turns[-1:]]
    for sequence in sequences:
        tokens = zip(sequence.ids_T, sequence.logprobs_T, sequence.loss_mask_T, strict=True)
        assert [(id, logp) for id, logp, mask in tokens if mask] == rows
