"""A meter of drift: where a conversation written anew from text would not be the ids that were really fed.

A trainer that keeps text and renders it again feeds those other ids: replies that do not survive decoding and encoding,
templates that trim or rewrite what was said, texts that look like control tokens. Here nothing of it reaches training;
the meter says how much it would have been.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gem.conversation.chat import ChatFormat
from gem.conversation.history import conversation, observed
from gem.trajectory import Trajectory, Turn

SNIPPET = 8  # tokens shown on either side


@dataclass(frozen=True)
class Drift:
    """The first difference between a context that was fed and the same conversation written anew.

    Args:
        turn: whose context it is.
        index: of the first id that differs; the length of the shorter one where one begins with the other.
        fed, rendered: up to eight tokens of each from there on, as text.
    """

    turn: int
    index: int
    fed: tuple[str, ...]
    rendered: tuple[str, ...]


def drift(chat: ChatFormat, turns: Sequence[Turn]) -> Drift | None:
    """Where the contexts of an episode first differ from the conversation so far, rendered and encoded as text.

    None where they never do. For episodes whose history the rollout kept: not those of an environment with an
    observation wrapper, whose every prompt is rendered anew.
    """
    return next((found for k in range(len(turns)) if (found := drift_of(chat, turns, k)) is not None), None)


def drift_of(chat: ChatFormat, turns: Sequence[Turn], k: int) -> Drift | None:
    """Where the context of turn k differs; None where it does not."""
    said = conversation(turns[:k], observed(turns[k]), turns[k].dropped)
    rendered, fed = chat.raw(chat.template.render_plain(said)), turns[k].prompt_ids
    if rendered == fed:
        return None
    pairs = zip(rendered, fed, strict=False)
    index = next((i for i, (one, other) in enumerate(pairs) if one != other), min(len(rendered), len(fed)))
    return Drift(k, index, _texts(chat, fed[index : index + SNIPPET]), _texts(chat, rendered[index : index + SNIPPET]))


def _texts(chat: ChatFormat, ids: Sequence[int]) -> tuple[str, ...]:
    return tuple(chat.template.decode([id]) for id in ids)


@dataclass
class DriftMeter:
    """Drift over a run: give it every episode.

    Args:
        chat: that wrote the contexts.

    Attributes:
        episodes, contexts: how many were added.
        drifted_episodes, drifted_contexts: how many of them would not come out again from text.
        examples: the first difference of each of the first few episodes that drifted.
    """

    chat: ChatFormat
    most_examples: int = 10
    episodes: int = 0
    contexts: int = 0
    drifted_episodes: int = 0
    drifted_contexts: int = 0
    examples: list[Drift] = field(default_factory=list)

    def add(self, trajectories: Iterable[Trajectory]) -> None:
        for trajectory in trajectories:
            found = [drift_of(self.chat, trajectory.turns, k) for k in range(len(trajectory.turns))]
            drifted = [one for one in found if one is not None]
            self.episodes += 1
            self.contexts += len(found)
            self.drifted_episodes += bool(drifted)
            self.drifted_contexts += len(drifted)
            if drifted and len(self.examples) < self.most_examples:
                self.examples.append(drifted[0])

    def __str__(self) -> str:
        return (
            f"{self.drifted_contexts} of {self.contexts} contexts and {self.drifted_episodes} of {self.episodes} "
            "episodes would differ if they were written anew from text"
        )
