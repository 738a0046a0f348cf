r"""WikiGame: go from one page of an encyclopedia to another by following links.

Action       text containing ``\boxed{title}`` with the title of a link that was shown, in any case; the last box
             counts. ``\boxed{<PREV_PAGE>}`` goes back, in the variants that allow it. ``\boxed{<MORE_LINKS>}`` shows
             the next links of a page with more than ``links_per_page``.
Observation  the result of the move, then the page: title, beginning of the text, links.
Reward       1.0 on the target page; 0.0 for any other move, also for an invalid one; -0.1 for a turn without a
             readable move, which ends the game.
Ends         terminated on the target page, on a dead end in the variant "noregrets", or on an unreadable turn;
             truncated after ``turn_limit()`` turns, which are at least as many as a shortest path needs.
Bound        1.0: in the encyclopedias of gem every page can be reached from every other.

A variant says which pages can be named besides those to which the current page links: in "eidetic" every page whose
link was shown before, in the others none. "oneback" and "freenav" allow to go back, "oneback" not twice in a row;
there, a dead end sends the player back, which takes one more turn.

>>> env = WikiGameEnv(level=1, max_turns=30)
>>> rules, _ = env.reset(seed=0)
>>> Oracle(env).act(rules) in rules
True
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

from gem._internal.counts import check_count
from gem._internal.text import shorten
from gem.core import StopReason
from gem.envs.game import FORMAT_ERROR, SUCCESS, GameEnv, OnUnreadable, Outcome
from gem.envs.web.wiki.articles import encyclopedia, worlds_of
from gem.envs.web.wiki.graph import click_path
from gem.envs.web.wiki.pages import BaseWikiTrawler, WikiPage, shown, shown_box, summary, title_key
from gem.envs.web.wiki.tasks import LEVELS, draw_task, linked, place_of, walk_task
from gem.errors import BadValue, ToolError
from gem.parsing import boxes, last_boxed, outside_thinking, tidied
from gem.seeding import stream

BACK, MORE = "<PREV_PAGE>", "<MORE_LINKS>"
LONGEST_TITLE = 500  # characters of a move; MediaWiki allows titles of 255 bytes
Variant = Literal["noregrets", "oneback", "freenav", "eidetic"]
Unit = Literal["characters", "words", "sentences"]


@dataclass(frozen=True)
class State:
    """An episode.

    Args:
        world: number of the world; None with another encyclopedia.
        target: title of the page to reach.
        turns: number of turns that a known path takes.
        path: titles of the pages from the start to the current one. Going back removes the last title.
        named: the link that led to the current page, which may be a redirect.
        shown: number of links of the current page that were shown.
        seen: titles of all links that were shown, in the variant "eidetic".
        back: whether the last move went back.
    """

    world: int | None
    target: str
    turns: int
    path: tuple[str, ...]
    named: str
    shown: int
    seen: tuple[str, ...] = ()
    back: bool = False


class WikiGameEnv(GameEnv):
    r"""See the module docstring for the rules. The first arguments are those of the published package.

    Args:
        max_turns: turns allowed, or more if a shortest path needs more.
        backend: "gem", the encyclopedias of gem; "mw", a MediaWiki server; "kiwix", a ZIM file.
        trawler_kwargs: arguments of MediaWikiTrawler or KiwixWikiTrawler. The published addresses are the defaults.
        page_summary_length: how much of the text of a page is shown: a number, and "characters", "words" or
            "sentences".
        variant: "noregrets", "oneback", "freenav" or "eidetic"; see the module docstring.
        level: difficulty from 1 to 4 by distance and number of links, see LEVELS; None means 2. Only for "gem".
        split: "train" or "test": which worlds are played. Only for "gem".
        links_per_page: maximum number of links that are shown at once.
        success_reward, step_reward, invalid_reward, format_reward: rewards for the target, for any other valid move,
            for an invalid move and for a turn without a readable move. The published values are 1, -0.05, -0.2, -0.2.
        on_unreadable: see GameEnv.

    Raises:
        BadValue: an argument is out of range.
        MissingDependency: the backend needs an extra that is not installed.
    """

    VALID_BACKENDS: ClassVar[tuple[str, ...]] = ("gem", "mw", "kiwix")
    VALID_SUMMARY_UNITS: ClassVar[tuple[str, ...]] = get_args(Unit)
    VALID_VARIANTS: ClassVar[tuple[str, ...]] = get_args(Variant)

    state: State
    move_format = r"\boxed{title}"

    def __init__(
        self,
        max_turns: int = 10,
        backend: str = "gem",
        trawler_kwargs: Mapping[str, Any] | None = None,
        page_summary_length: tuple[int, str] = (100, "characters"),
        variant: str = "noregrets",
        *,
        level: int | None = None,
        split: str = "train",
        links_per_page: int = 50,
        success_reward: float = SUCCESS,
        step_reward: float = 0.0,
        invalid_reward: float = 0.0,
        format_reward: float = FORMAT_ERROR,
        on_unreadable: OnUnreadable = "end",
    ) -> None:
        super().__init__(max_turns=max_turns, on_unreadable=on_unreadable)
        for name, value, valid in (
            ("backend", backend, self.VALID_BACKENDS),
            ("variant", variant, self.VALID_VARIANTS),
            ("the unit of page_summary_length", page_summary_length[1], self.VALID_SUMMARY_UNITS),
        ):
            if value not in valid:
                raise BadValue(f"{name} must be one of {', '.join(map(repr, valid))}, got {value!r}")
        check_count("page_summary_length", page_summary_length[0], 0)
        check_count("links_per_page", links_per_page)
        if level is not None and (backend != "gem" or level not in LEVELS):
            raise BadValue(f"level must be from 1 to {len(LEVELS)} with backend='gem', else None, got {level!r}")
        self.backend, self.variant, self.links_per_page = backend, variant, links_per_page
        self.page_summary_length, self.level, self.worlds = page_summary_length, level or 2, worlds_of(split)
        self.rewards = {"success": success_reward, "step": step_reward, "invalid": invalid_reward}
        self.format_reward = format_reward
        self._trawler = _trawler(backend, trawler_kwargs)
        self._page: WikiPage | None = None

    @property
    def source(self) -> BaseWikiTrawler:
        """The encyclopedia of the current episode."""
        return self._trawler or encyclopedia(self.state.world or 0)

    @property
    def page(self) -> WikiPage:
        """The current page. It is kept, so that an episode reads it once."""
        title = self.state.path[-1]
        if self._page is None or self._page.title != title:
            page = self.source.get_page(title)
            if page is None:
                raise ToolError(f"{self.source.url}: the page {title!r} has disappeared")
            self._page = page
        return self._page

    def start(self) -> State:
        if self._trawler is None:
            world = self.rng.choice(self.worlds)
            source = encyclopedia(world)
            first, target, turns = draw_task(source, LEVELS[self.level], self.rng, self.links_per_page)
        else:
            world = None
            first, target, turns = walk_task(self._trawler, self.rng, self.links_per_page)
        self._page = None
        self.state = State(world, target, turns, (first,), first, self.links_per_page)
        self.state = self._with_seen(self.state)
        return self.state

    def turn_limit(self) -> int:
        return max(self.max_turns, self.state.turns)

    def rules(self) -> str:
        lines = [
            f"Wikipedia game: go from the page {shown(self.page.title)} to the page {shown(self.state.target)} by "
            f"following links, in at most {self.turn_limit()} turns.",
            rf"Write the title of a link in a box, like {shown_box(self.page.links[0])}. " + _RULES[self.variant],
        ]
        if len(self.page.links) > self.links_per_page or self.backend != "gem":
            lines.append(rf"A page shows {self.links_per_page} links; \boxed{{{MORE}}} shows more and takes a turn.")
        rewards = self.rewards
        lines.append(
            f"Reaching the target earns {rewards['success']:g}, any other link {rewards['step']:g}, a page to which no "
            f"link was shown {rewards['invalid']:g}, and a turn without a title {self.format_reward:g}."
        )
        return "\n".join(lines)

    def read(self, action: str) -> str | None:
        action = outside_thinking(action)
        content = last_boxed(action)
        if content is None:
            content = max((BACK, MORE), key=action.rfind)
            return content if content in action else None
        if not content.strip() or len(content) > LONGEST_TITLE:
            return None
        command = tidied(content).upper()
        return command if command in (BACK, MORE) else self._link_named(content) or title_key(tidied(content))

    def play(self, move: str) -> Outcome:
        if move == BACK:
            return self._go_back()
        if move == MORE:
            return self._show_more()
        if move not in self.links():
            return self._invalid(f"no link to {shorten(shown(move), 80)} was shown.", "unknown_link")
        page = self.source.get_page(move)
        if page is None:
            return self._invalid(f"the page {shown(move)} does not exist.", "missing_page")
        state = self.state
        self._page = page
        path = (*state.path, page.title)
        self.state = self._with_seen(replace(state, path=path, named=move, shown=self.links_per_page, back=False))
        if title_key(page.title) == title_key(state.target):
            return Outcome(f"you reached {shown(page.title)}.", self.rewards["success"], StopReason.SOLVED)
        line = f"you went to {shown(page.title)}."
        return Outcome(line, self.rewards["step"]) if page.links else self._dead_end(line)

    def _go_back(self) -> Outcome:
        state = self.state
        if self.variant not in ("oneback", "freenav"):
            return self._invalid("going back is not allowed.", "not_allowed")
        if len(state.path) < 2:
            return self._invalid("there is no page to go back to.", "no_previous_page")
        if self.variant == "oneback" and state.back:
            return self._invalid("you cannot go back twice in a row.", "not_allowed")
        self._leave()
        return Outcome(f"you went back to {shown(self.page.title)}.", self.rewards["step"])

    def _leave(self) -> None:
        path = self.state.path[:-1]
        self.state = replace(self.state, path=path, named=path[-1], shown=self.links_per_page, back=True)

    def _show_more(self) -> Outcome:
        if self.state.shown >= len(self.page.links):
            return self._invalid("all links of this page are shown.", "no_more_links")
        state = replace(self.state, shown=self.state.shown + self.links_per_page)
        self.state = self._with_seen(state)
        return Outcome("more links.", self.rewards["step"])

    def _dead_end(self, line: str) -> Outcome:
        if self.variant in ("oneback", "freenav"):
            self.turn += 1
            self._leave()
            return Outcome(
                f"{line} It has no links, so you are back on {shown(self.page.title)}.", self.rewards["step"]
            )
        if self.variant == "eidetic" and self.state.seen:
            return Outcome(line, self.rewards["step"])
        return Outcome(f"{line} It has no links, so the game is over.", self.rewards["step"], StopReason.LOST)

    def _invalid(self, line: str, reason: str) -> Outcome:
        return Outcome(line, self.rewards["invalid"], invalid=reason)

    def _unreadable(self) -> Outcome:
        return replace(super()._unreadable(), reward=self.format_reward)

    def _with_seen(self, state: State) -> State:
        if self.variant != "eidetic":
            return state
        self.state = state
        return replace(state, seen=tuple(dict.fromkeys([*state.seen, *self.page.links[: state.shown]])))

    def links(self) -> tuple[str, ...]:
        """Return the titles that can be named now."""
        current = self.page.links[: self.state.shown]
        return tuple(dict.fromkeys([*current, *self.state.seen]))

    def _link_named(self, text: str) -> str | None:
        """Return the link with this title, regardless of case; the exact title goes first."""
        links = self.links()
        for form in (
            str.strip,
            title_key,
            lambda title: title_key(shown(title)),
            lambda t: title_key(tidied(shown(t))),
        ):
            wanted = form(text)
            for link in links:
                if form(link) == wanted:
                    return link
        return None

    def board(self) -> str:
        page, state = self.page, self.state
        other = "" if title_key(state.named) == title_key(page.title) else f" (redirected from {shown(state.named)})"
        lines = [f"Page: {shown(page.title)}{other}"]
        if self.page_summary_length[0]:
            lines.append(summary(page.text, *self.page_summary_length))
        boxes = [shown_box(link) for link in page.links[state.shown - self.links_per_page : state.shown]]
        first, count = state.shown - self.links_per_page + 1, len(page.links)
        which = "" if count <= self.links_per_page else f" {first} to {first + len(boxes) - 1} of {count}"
        more = rf" (more: \boxed{{{MORE}}})" if state.shown < count else ""
        lines.append(f"Links{which}: {', '.join(boxes) or 'none'}{more}")
        return "\n".join(lines)

    def state_key(self) -> str:
        return f"{self.board()}\n{self.state.seen}{self.state.back}"

    def secrets(self) -> list[str]:
        return []

    def sample_random_action(self) -> str:
        return shown_box(self.action_rng.choice(self.links()))

    def close(self) -> None:
        if self._trawler is not None:
            self._trawler.close()


_RULES = {
    "noregrets": "Only links of the page that you are on count, and you cannot go back.",
    "oneback": rf"\boxed{{{BACK}}} goes back to the page before, but not twice in a row. Going back takes a turn.",
    "freenav": rf"\boxed{{{BACK}}} goes back to the page before. Going back takes a turn.",
    "eidetic": "You can name any page to which a link was shown in this game. You cannot go back otherwise.",
}


def _trawler(backend: str, kwargs: Mapping[str, Any] | None) -> BaseWikiTrawler | None:
    """Return the source of a backend, or None for the encyclopedias of gem."""
    if backend == "gem":
        if kwargs:
            raise BadValue(f"trawler_kwargs are for the backends 'mw' and 'kiwix', got {dict(kwargs)!r}")
        return None
    if backend == "mw":
        from gem.envs.web.wiki.mediawiki import MediaWikiTrawler

        return MediaWikiTrawler(**(kwargs or {}))
    from gem.envs.web.wiki.kiwix import KiwixWikiTrawler

    return KiwixWikiTrawler(**(kwargs or {}))


class Oracle:
    """Follows a shortest path in the graph."""

    def __init__(self, env: WikiGameEnv) -> None:
        self.env = env
        self._path: list[str] = []

    def act(self, observation: str) -> str:
        env, here = self.env, self.env.page.title
        if here not in self._path[:-1]:
            self._path = click_path(here, env.state.target, linked(env.source)) or [here, here]
        place = place_of(env.source, here, self._path[self._path.index(here) + 1])
        return rf"\boxed{{{MORE}}}" if place >= env.state.shown else shown_box(env.page.links[place])


class WordOverlap:
    """Takes the link that has the most words in common with the target and was named least; uses only observations.

    Ties are broken at random.
    """

    def __init__(self, env: WikiGameEnv) -> None:
        self._rng = stream(env.action_rng.getrandbits(32), "word overlap")
        self._target: set[str] = set()
        self._named: Counter[str] = Counter()

    def act(self, observation: str) -> str:
        if found := _TARGET.search(observation):
            self._target = _words(found[1])
        links = boxes(observation.rpartition("\nLinks")[2])
        if not links:
            return rf"\boxed{{{BACK}}}"
        best = max(links, key=lambda link: (len(_words(link) & self._target), -self._named[link], self._rng.random()))
        self._named[best] += 1
        return shown_box(best)


_TARGET = re.compile(r"to the page (.+?) by following links")


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold())) - {"the", "of", "a", "an"}
