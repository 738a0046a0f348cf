"""Measure retokenization mismatches: contexts that differ from the same conversation rendered and encoded from text.

A trainer that stores only text trains on ids that differ from the sampled ids. Causes are replies that do not survive
decoding and encoding, templates that trim or rewrite messages, and text that looks like control tokens. Training in gem
is unaffected, because it uses the recorded ids; the meter measures what text-based training would have changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gem.conversation.chat import ChatFormat
from gem.conversation.history import conversation, turn_messages
from gem.trajectory import Trajectory, Turn

SNIPPET = 8  # number of tokens shown of each context


@dataclass(frozen=True)
class RetokenizationMismatch:
    """The first difference between a context that was fed and the same conversation rendered from text.

    Args:
        turn: index of the turn.
        index: of the first id that differs; the length of the shorter context if one is a prefix of the other.
        fed, rendered: up to eight tokens of each context from ``index`` on, as text.
    """

    turn: int
    index: int
    fed: tuple[str, ...]
    rendered: tuple[str, ...]


def retokenization_mismatch(chat: ChatFormat, turns: Sequence[Turn]) -> RetokenizationMismatch | None:
    """Return the first mismatch of an episode, or None if every context can be reproduced from text.

    Not meaningful for environments with an observation wrapper, where every prompt is rendered from text.
    """
    mismatches = (_mismatch_at(chat, turns, k) for k in range(len(turns)))
    return next((mismatch for mismatch in mismatches if mismatch is not None), None)


def _mismatch_at(chat: ChatFormat, turns: Sequence[Turn], k: int) -> RetokenizationMismatch | None:
    """Return the mismatch in the context of turn k, or None if the context can be reproduced from text."""
    messages = conversation(turns[:k], turn_messages(turns[k]), turns[k].dropped)
    rendered, fed = chat.raw(chat.template.render_plain(messages)), turns[k].prompt_ids
    if rendered == fed:
        return None
    pairs = enumerate(zip(rendered, fed, strict=False))
    index = next((i for i, (a, b) in pairs if a != b), min(len(rendered), len(fed)))
    return RetokenizationMismatch(k, index, _snippet(chat, fed, index), _snippet(chat, rendered, index))


def _snippet(chat: ChatFormat, ids: Sequence[int], start: int) -> tuple[str, ...]:
    return tuple(chat.template.decode([id]) for id in ids[start : start + SNIPPET])


@dataclass
class RetokenizationMeter:
    """Counts retokenization mismatches over a run.

    Args:
        chat: the format that produced the contexts.
        max_examples: maximum length of ``examples``.

    Attributes:
        episodes, contexts: number of episodes and contexts added.
        mismatched_episodes, mismatched_contexts: number of episodes and contexts with a mismatch.
        examples: the first mismatch of each of the first mismatched episodes.
    """

    chat: ChatFormat
    max_examples: int = 10
    episodes: int = 0
    contexts: int = 0
    mismatched_episodes: int = 0
    mismatched_contexts: int = 0
    examples: list[RetokenizationMismatch] = field(default_factory=list)

    def add(self, trajectories: Iterable[Trajectory]) -> None:
        """Add episodes to the counts."""
        for trajectory in trajectories:
            results = [_mismatch_at(self.chat, trajectory.turns, k) for k in range(len(trajectory.turns))]
            mismatches = [result for result in results if result is not None]
            self.episodes += 1
            self.contexts += len(results)
            self.mismatched_episodes += bool(mismatches)
            self.mismatched_contexts += len(mismatches)
            if mismatches and len(self.examples) < self.max_examples:
                self.examples.append(mismatches[0])

    def __str__(self) -> str:
        return (
            f"{self.mismatched_contexts} of {self.contexts} contexts and {self.mismatched_episodes} of "
            f"{self.episodes} episodes differ when rendered again from text"
        )
