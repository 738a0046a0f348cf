"""What a model is shown of an episode: all of it or, past a limit, the task and the newest turns.

A context extends the one before by the ids that were sampled and those of the new messages, wherever that is what the
template would show. It starts anew (and forks a new TokenSequence) in two cases: where old turns are dropped, and where
the template no longer shows a reply that it showed before, as those do that strip the thinking of earlier turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from gem.conversation.chat import ChatFormat, squeezed
from gem.conversation.observations import as_messages
from gem.core import StopReason
from gem.errors import BadValue
from gem.messages import Message, assistant
from gem.trajectory import Turn


@dataclass(frozen=True)
class History:
    """Limits on what is shown of an episode, and what happens past them.

    The task (the first observation) is always shown. What is dropped are whole turns, the oldest first: a reply with
    what it brought. The newest turn is never dropped.

    Args:
        max_turns: earlier turns shown besides the task; None shows all.
        max_tokens: of a context, for policies that read tokens; None leaves it at what the policy itself takes.
        overflow: past a limit, "end" truncates the episode (stop reason "max_turns" or "max_tokens"), and
            "drop_oldest" drops as few turns as fit. An episode whose task and newest turn do not fit ends in any case.

    Raises BadValue for a limit below 1 and another overflow.
    """

    max_turns: int | None = None
    max_tokens: int | None = None
    overflow: Literal["end", "drop_oldest"] = "end"

    def __post_init__(self) -> None:
        for name, limit in (("max_turns", self.max_turns), ("max_tokens", self.max_tokens)):
            if limit is not None and limit < 1:
                raise BadValue(f"{name} must be at least 1 or None, got {limit}")
        if self.overflow not in ("end", "drop_oldest"):
            raise BadValue(f"overflow must be 'end' or 'drop_oldest', got {self.overflow!r}")

    def dropped(self, turns: Sequence[Turn]) -> int:
        """How many of the oldest turns max_turns leaves out of the next context, given those before."""
        before = turns[-1].dropped if turns else 0
        if self.max_turns is None or self.overflow == "end":
            return before
        return max(before, len(turns) - self.max_turns)

    def exceeded(self, turns: Sequence[Turn]) -> StopReason | None:
        """What ends the episode whatever its tokens: too many turns."""
        ends = self.overflow == "end" and self.max_turns is not None and len(turns) > self.max_turns
        return StopReason.MAX_TURNS if ends else None

    def context(self, chat: ChatFormat, turns: Sequence[Turn], new: Sequence[Message], limit: int | None) -> Context:
        """The next context.

        Args:
            turns: of the episode so far.
            new: the messages of the newest observation, the first one where there are no turns.
            limit: tokens that the policy takes; None without a limit.

        Raises BadValue when the first prompt is longer than max_tokens; one that is too long for the policy alone is
        the policy's to refuse.
        """
        dropped = self.dropped(turns)
        ids = context_ids(chat, turns, new, dropped)
        if not turns and self.max_tokens is not None and len(ids) > self.max_tokens:
            raise BadValue(f"the first prompt has {len(ids)} tokens, and max_tokens is {self.max_tokens}")
        most = min((tokens for tokens in (limit, self.max_tokens) if tokens is not None), default=None)
        while self.overflow == "drop_oldest" and most is not None and len(ids) > most and dropped < len(turns) - 1:
            dropped += 1
            ids = context_ids(chat, turns, new, dropped)
        fits = not turns or most is None or len(ids) <= most
        return Context(ids, dropped, self.exceeded(turns) or (None if fits else StopReason.MAX_TOKENS))


class Context(NamedTuple):
    """What to feed. dropped: turns left out. exceeded: the limit that ends the episode instead, None for none."""

    ids: list[int]
    dropped: int
    exceeded: StopReason | None


FULL_HISTORY = History()


def conversation(
    turns: Sequence[Turn],
    new: Sequence[Message],
    dropped: int = 0,
    reply: Callable[[Turn], Message] | None = None,
) -> list[Message]:
    """What was said, up to the newest messages: the task, then replies with what each brought, the oldest left out.

    reply: how a turn's reply is written; None writes the text of its action.
    """
    if not turns:
        return list(new)
    said = observed(turns[0])
    for k in range(dropped, len(turns)):
        said += [
            assistant(turns[k].action) if reply is None else reply(turns[k]),
            *(new if k == len(turns) - 1 else observed(turns[k + 1])),
        ]
    return said


def observed(turn: Turn) -> list[Message]:
    """The messages that a turn's agent saw last."""
    return as_messages(turn.observation, turn.role)


def context_ids(chat: ChatFormat, turns: Sequence[Turn], new: Sequence[Message], dropped: int) -> list[int]:
    """The ids of the next context: an extension of the last one where nothing shown before is hidden now."""
    if not turns:
        return chat.prompt(new)
    last = turns[-1]
    if not chat.extends:
        return _rendered(chat, turns, new, dropped)
    if dropped == last.dropped:
        if _shows_as_before(chat, turns, new):
            return chat.extend(last.prompt_ids, last.sampled_ids, new)
    elif _shows_all(chat, turns, new, dropped):
        ids = chat.prompt(observed(turns[0]))
        for k in range(dropped, len(turns)):
            ids = chat.extend(ids, turns[k].sampled_ids, new if k == len(turns) - 1 else observed(turns[k + 1]))
        return ids
    return _rendered(chat, turns, new, dropped)


def _rendered(chat: ChatFormat, turns: Sequence[Turn], new: Sequence[Message], dropped: int) -> list[int]:
    return chat.prompt(_said(chat, turns, new, dropped))


def _said(chat: ChatFormat, turns: Sequence[Turn], new: Sequence[Message], dropped: int) -> list[Message]:
    return conversation(turns, new, dropped, lambda turn: chat.reply(turn.sampled_ids))


def _shows_as_before(chat: ChatFormat, turns: Sequence[Turn], new: Sequence[Message]) -> bool:
    """Whether the template shows all replies with the new messages that it showed without them, and the last one."""
    dropped = turns[-1].dropped
    at_risk = [turn for turn in turns[dropped:] if not chat.keeps(turn.sampled_ids)]
    if not at_risk:  # the usual case, and a fast one
        return True
    said = _said(chat, turns, new, dropped)
    before = said[: -1 - len(new)]
    was, now = chat.template.render(before), chat.template.render(said)
    if now.startswith(was):
        # As while tools answer: all that was shown still is, and only the last reply is in question.
        said, before, was, now = said[len(before) :], [], "", now[len(was) :]
        at_risk = [turn for turn in at_risk if turn is turns[-1]]
    shown, shown_before = _Shown(chat, now, said), _Shown(chat, was, before)
    last = _text(chat, turns[-1])
    texts = dict.fromkeys(_text(chat, turn) for turn in reversed(at_risk))  # the newest is stripped first
    return all(shown.count(text) >= shown_before.count(text) + (text == last) for text in texts)


def _shows_all(chat: ChatFormat, turns: Sequence[Turn], new: Sequence[Message], dropped: int) -> bool:
    """Whether the template shows every reply that is not dropped."""
    at_risk = Counter(_text(chat, turn) for turn in turns[dropped:] if not chat.keeps(turn.sampled_ids))
    if not at_risk:
        return True
    said = _said(chat, turns, new, dropped)
    shown = _Shown(chat, chat.template.render(said), said)
    return all(shown.count(text) == count for text, count in at_risk.items())


def _text(chat: ChatFormat, turn: Turn) -> str:
    return squeezed(chat.reply(turn.sampled_ids)["content"])


class _Shown:
    """What the template made of a conversation."""

    def __init__(self, chat: ChatFormat, rendered: str, said: Sequence[Message]) -> None:
        self._shown = squeezed(rendered)
        self._others = [squeezed(chat.template.safe(m["content"])) for m in said if m["role"] != "assistant"]

    def count(self, text: str) -> int:
        """How often a reply is shown in full, quotations by others not counted."""
        return self._shown.count(text) - sum(other.count(text) for other in self._others)
