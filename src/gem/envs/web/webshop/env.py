r"""WebShop: find a product that an instruction describes, choose its options and buy it.

Action       text with ``search[words]`` or ``click[value]``, in ``\boxed{…}`` or bare; the last one counts.
Observation  the page, in the format ``observation_mode``, and the admissible actions. A search shows 50 results, ten
             per page. Values are the buttons, the ids of products and the options of the page, in any case.
Reward       on Buy Now, from 0 to 1: see gem.envs.web.webshop.rewards. ``info`` has ``reward_parts``, ``r_type``,
             ``success`` (the reward is 1) and ``nouns`` (the rule that found the nouns of titles). An action without
             search or click costs ``format_error_reward`` and changes nothing; a click on what the page lacks changes
             nothing.
Ends         terminated on Buy Now, or after more than ``error_tolerance`` actions without search or click; truncated
             after ``max_turns`` turns.

The simulator of the published environment is github.com/princeton-nlp/WebShop; docs/webshop.md lists the differences.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from gem._internal.counts import check_count
from gem.core import Info, StopReason
from gem.envs.game import FORMAT_ERROR, GameEnv, Outcome
from gem.envs.web.webshop import mini, pages, published
from gem.envs.web.webshop.nouns import NounRule, noun_rule, nouns_by
from gem.envs.web.webshop.pages import Links
from gem.envs.web.webshop.products import Goal, ObservationMode, Product, Split
from gem.envs.web.webshop.rewards import Matching, matcher, score
from gem.envs.web.webshop.store import Catalogue
from gem.errors import BadValue
from gem.parsing import last_boxed, outside_thinking

PageName = Literal["search", "results", "item", "sub", "done"]
_START = re.compile(r"\b(search|click)\[", re.IGNORECASE)
_ACTION = re.compile(r"\s*(?:search|click)\[.+\]\s*", re.IGNORECASE | re.DOTALL)

WEBSHOP_INSTRUCTION_TEMPLATE = (
    "You are in a web shop. Buy a product that meets the instruction: its kind, its features, the options to choose "
    "and the price limit. Not every product shows all its features in the list of results.\n"
    r"Write one action per turn in a box: \boxed{{search[words]}} searches the shop, and \boxed{{click[value]}} clicks "
    f"a button, the id of a product or an option of the page. {pages.BUY} ends the episode. The reward, from 0 to 1, "
    "is the share of met conditions; a product of another kind earns less or nothing. A turn without an action earns "
    "{format_error:g}. You have {max_turns} turns."
)


@dataclass(frozen=True)
class State:
    """An episode: its goal, and what the browser shows.

    Args:
        goal: number of the goal in the catalogue.
        query: of the last search, in lower case.
        results: numbers of the products found.
        number: of the page of results, from 1.
        product: number of the open product; None on the search page and on results.
        sub: name of the open page of the product, such as Features.
        options: chosen values by name.
        visited: numbers of the products opened since the last search page.
        errors: actions so far without search or click.
        reward: of the purchase.
        instruction: shown instead of the goal's; None shows the goal's.
    """

    goal: int
    page: PageName = "search"
    query: str = ""
    results: tuple[int, ...] = ()
    number: int = 1
    product: int | None = None
    sub: str = ""
    options: tuple[tuple[str, str], ...] = ()
    visited: tuple[int, ...] = ()
    errors: int = 0
    reward: float = 0.0
    instruction: str | None = None


class ShopEnv(GameEnv):
    """The shop over any catalogue: see the module docstring.

    Args:
        catalogue: products, goals and search.
        group: name of the group of goals that episodes draw from.
        nouns: rule for the nouns of titles.
        session: number of the goal of all episodes; None draws one per episode.
        others: see WebshopEnv.

    Raises:
        BadValue: a value out of range, or no goals.
        MissingDependency: matching is "fuzzy" and rapidfuzz is not installed.
    """

    state: State
    _bought: Info
    move_format = r"\boxed{search[words]} or \boxed{click[value]}"

    def __init__(
        self,
        catalogue: Catalogue,
        group: str,
        *,
        observation_mode: ObservationMode,
        max_turns: int,
        show_attrs: bool,
        error_tolerance: int,
        format_error_reward: float,
        matching: Matching,
        nouns: NounRule,
        session: int | None = None,
        session_prefix: str | None = None,
    ) -> None:
        super().__init__(max_turns=max_turns, on_unreadable="continue")
        if observation_mode not in get_args(ObservationMode):
            raise BadValue(f"observation_mode must be 'html', 'text' or 'text_rich', got {observation_mode!r}")
        check_count("error_tolerance", error_tolerance, 0)
        matcher(matching)  # raises here if rapidfuzz is missing
        self.catalogue, self.span = catalogue, catalogue.groups[group]
        if not self.instances():
            raise BadValue(f"{catalogue.folder}: has no goals of the split {group}")
        self.observation_mode, self.show_attrs, self.matching, self.nouns = (
            observation_mode,
            show_attrs,
            matching,
            nouns,
        )
        self.error_tolerance, self.format_error_reward = error_tolerance, format_error_reward
        self._check_session(session)
        self.session, self.session_prefix = session, session_prefix or ""
        self._given: tuple[int | None, str | None] = (session, None)

    # ---- episodes

    def reset(
        self, seed: int | None = None, session: int | None = None, instruction_text: str | None = None
    ) -> tuple[str, Info]:
        """Start an episode.

        Args:
            seed: as for Env.reset().
            session: number of the goal among those of this environment's split, in their fixed order; None draws one,
                or takes the one of the constructor.
            instruction_text: shown instead of the goal's instruction.

        Raises:
            BadValue: for an invalid seed, or a session that is not from 0 to instances() - 1.
        """
        self._check_session(session)
        self._given = (self.session if session is None else session, instruction_text)
        observation, info = super().reset(seed)
        return observation, {**info, "goal": self.state.goal, "nouns": self.nouns}

    def start(self) -> State:
        session, instruction = self._given
        drawn = self.rng.randrange(self.instances())
        return State(self.span[0] + (drawn if session is None else session), instruction=instruction)

    def instances(self) -> int:
        return self.span[1] - self.span[0]

    def _check_session(self, session: int | None) -> None:
        check_count("session", session, 0, self.instances() - 1, optional=True)

    def goal(self) -> Goal:
        """Return the goal of the episode."""
        return self.catalogue.goal(self.state.goal)

    def rules(self) -> str:
        return WEBSHOP_INSTRUCTION_TEMPLATE.format(format_error=self.format_error_reward, max_turns=self.max_turns)

    # ---- actions

    def read(self, action: str) -> tuple[str, str] | None:
        return read_action(action)

    def play(self, move: tuple[str, str]) -> Outcome:
        name, value = move
        if name == "search":
            if not value:
                return Outcome("empty search; nothing changed.", invalid="empty_search")
            found = self.catalogue.search(value)
            self._show_page("results", query=value, results=found, number=1, product=None, options=())
            return Outcome("results.")
        target = self.clickable().get(value)
        if target is None:
            return Outcome("the page has nothing like that to click; nothing changed.", invalid="not_admissible")
        return self._click(*target)

    def _unreadable(self) -> Outcome:
        self.state = replace(self.state, errors=self.state.errors + 1)
        stop = StopReason.FORMAT if self.state.errors > self.error_tolerance else None
        line = f"no action found; use the format {self.move_format}."
        return Outcome(line, self.format_error_reward, stop, invalid="no_action")

    def _click(self, kind: str, value: str) -> Outcome:
        state = self.state
        if kind == "product":
            number = int(value)
            self._show_page("item", product=number, visited=tuple(dict.fromkeys((*state.visited, number))))
        elif kind == "option":
            name, _, chosen = value.partition("\n")
            self._show_page("item", options=tuple({**dict(state.options), name: chosen}.items()))
        elif value == pages.BACK:
            self.state = State(state.goal, errors=state.errors, instruction=state.instruction)
        elif value == pages.NEXT:
            self._show_page("results", number=state.number + 1)
        elif value == pages.PREVIOUS and state.page == "sub":
            self._show_page("item")
        elif value == pages.PREVIOUS:
            number = max(state.number - (state.page == "results"), 1)
            self._show_page("results", number=number, product=None, options=())
        elif value == pages.BUY:
            return self._buy()
        else:
            self._show_page("sub", sub=value)
        return Outcome("ok.")

    def _show_page(self, page: PageName, **changes: Any) -> None:
        self.state = replace(self.state, page=page, **changes)

    def _buy(self) -> Outcome:
        product = self._product()
        chosen = [value for _, value in self.state.options]
        result = score(product, chosen, self.goal(), nouns=nouns_by(self.nouns), matching=self.matching)
        self._show_page("done", reward=result.reward)
        stop = StopReason.SOLVED if result.reward == 1.0 else StopReason.LOST
        self._bought = {"r_type": result.r_type, "success": result.reward == 1.0, "nouns": self.nouns}
        found = "; ".join(f"{check['name']} {check['detail']}" for check in result.checks)
        self._bought |= {"explanation": f"Bought {product.title}: {found}.", "checks": result.checks}
        return Outcome("bought.", result.reward, stop, parts=result.parts)

    def step(self, action: str) -> Any:
        self._bought = {}
        step = super().step(action)
        step.info.update(self._bought)
        return step

    def clickable(self) -> dict[str, tuple[str, str]]:
        """Return what can be clicked: the value in lower case, with its kind and what it stands for."""
        state = self.state
        if state.page in ("search", "done"):
            return {}
        buttons = [pages.BACK]
        found: dict[str, tuple[str, str]] = {}
        if state.page == "results":
            buttons += [pages.PREVIOUS] * (state.number > 1) + [pages.NEXT]
            found = {self.catalogue.product(n).asin.lower(): ("product", str(n)) for n in self._shown_results()}
        else:
            buttons.append(pages.PREVIOUS)
        if state.page == "item":
            buttons += [*pages.SUBPAGES[: 4 if self.show_attrs else 3], pages.BUY]
            options = self._product().options
            found = {
                value.lower(): ("option", f"{name}\n{value}") for name, values in options.items() for value in values
            }
        return {**{button.lower(): ("button", button) for button in buttons}, **found}

    def admissible(self) -> list[str]:
        """Return the actions that the page allows, with ``search[words]`` for all searches."""
        if self.state.page == "done":
            return []
        return ["search[words]", *(f"click[{value}]" for value in self.clickable())]

    def sample_random_action(self) -> str:
        clicks = [action for action in self.admissible() if action.startswith("click[")]
        if not clicks or self.action_rng.random() < 0.1:
            words = self.get_instruction_text().split()
            start = self.action_rng.randrange(len(words))
            return rf"\boxed{{search[{' '.join(words[start : start + 4])}]}}"
        return rf"\boxed{{{self.action_rng.choice(clicks)}}}"

    def get_available_actions(self) -> dict[str, Any]:
        """Return {"has_search_bar", "clickables"} of the page, as the published class does."""
        return {"has_search_bar": self.state.page == "search", "clickables": list(self.clickable())}

    def parse_action(self, action: str) -> tuple[str, str] | None:
        """Return read_action()."""
        return read_action(action)

    # ---- pages

    @property
    def observation(self) -> str:
        """The open page, without rules and admissible actions."""
        return self.page()

    def get_instruction_text(self) -> str:
        return self.goal().instruction if self.state.instruction is None else self.state.instruction

    def get_task_prefix(self) -> str:
        """Return the rules card."""
        return self.rules()

    def board(self) -> str:
        suffix = self.get_task_suffix()
        return f"{self.page()}\n{suffix}" if suffix else self.page()

    def get_task_suffix(self) -> str:
        """Return the admissible actions, which follow the page; empty at the end."""
        actions = self.admissible()
        return f"Admissible actions: {', '.join(actions)}" if actions else ""

    def page(self) -> str:
        """Return the open page in the format of this environment."""
        state, instruction = self.state, self.get_instruction_text()
        links = Links(f"{self.session_prefix}{state.goal}", state.query, state.number, options=dict(state.options))
        links = links._replace(shown=self.observation_mode == "html")
        if state.product is None:
            if state.page == "search":
                return self._rendered(pages.search_page(links, instruction))
            shown = [self.catalogue.product(number) for number in self._shown_results()]
            visited = frozenset(p.asin for p, n in zip(shown, self._shown_results(), strict=True) if n in state.visited)
            return self._rendered(pages.results_page(links, instruction, shown, len(state.results), visited))
        product = self._product()
        links = links._replace(asin=product.asin)
        if state.page == "item":
            return self._rendered(pages.item_page(links, instruction, product, show_attrs=self.show_attrs))
        if state.page == "sub":
            return self._rendered(pages.sub_page(links, instruction, product, state.sub))
        return self._rendered(pages.done_page(product.asin, json.dumps(dict(state.options)), state.reward))

    def _rendered(self, pieces: Any) -> str:
        return pages.render(pieces, self.observation_mode)

    def _shown_results(self) -> tuple[int, ...]:
        start = (self.state.number - 1) * pages.PER_PAGE
        return self.state.results[start : start + pages.PER_PAGE]

    def _product(self) -> Product:
        assert self.state.product is not None
        return self.catalogue.product(self.state.product)


class WebshopEnv(ShopEnv):
    """The published WebShop, on the official data in ``$GEM_DATA/webshop``: see the module docstring.

    Args:
        observation_mode: "html", "text" (joined by [SEP]) or "text_rich" (with markers around what can be clicked).
        split: "test" (goals 0 to 499), "eval" (500 to 1499) or "train" (the rest).
        max_turns: turns allowed.
        show_attrs: add the page Attributes, which shows what the reward compares.
        session: number of the goal of all episodes among those of the split; None draws one per episode.
        session_prefix: written before the session in the addresses of html pages.
        error_tolerance: actions without search or click before the next one ends the episode.
        format_error_reward: reward of such an action.
        file: name of the file of products, such as "items_shuffle_1000.json"; None takes the full one if it is there.
        matching: how attributes and options are compared; "fuzzy" is the published way and needs rapidfuzz.
        nouns: how nouns of titles are found; "auto" is spaCy where it and its model are installed, else a word rule.

    Raises:
        BadValue: a value out of range, missing or malformed data, or a split without goals.
        MissingDependency: what ``matching`` or ``nouns`` needs is not installed.
    """

    def __init__(
        self,
        observation_mode: ObservationMode = "text",
        split: Split = "train",
        max_turns: int = 15,
        show_attrs: bool = False,
        session: int | None = None,
        session_prefix: str | None = None,
        error_tolerance: int = 0,
        format_error_reward: float = 0.0,
        *,
        file: str | None = None,
        matching: Matching = "fuzzy",
        nouns: Literal["auto"] | NounRule = "auto",
    ) -> None:
        if split not in get_args(Split):
            raise BadValue(f"split must be 'train', 'eval' or 'test', got {split!r}")
        matcher(matching)  # before data are converted
        super().__init__(
            published.published_catalogue(file),
            split,
            observation_mode=observation_mode,
            max_turns=max_turns,
            show_attrs=show_attrs,
            error_tolerance=error_tolerance,
            format_error_reward=format_error_reward,
            matching=matching,
            nouns=noun_rule(nouns),
            session=session,
            session_prefix=session_prefix,
        )


class MiniWebshopEnv(ShopEnv):
    """WebShop on a generated catalogue, which is built into the cache on first use: see the module docstring.

    Args:
        level: 1 names kind, two features and a price limit; 2 also an option; 3 also another feature and option.
        split: "train" or "test"; no product is right for goals of both.
        products: size of the catalogue.
        catalogue_seed: another number generates another catalogue.
        others: see WebshopEnv. Nouns are found by the word rule, so that rewards do not depend on what is installed.

    Raises:
        BadValue: a value out of range, or a cache that cannot be written.
        MissingDependency: matching is "fuzzy" and rapidfuzz is not installed.
    """

    def __init__(
        self,
        *,
        level: int = 2,
        split: Literal["train", "test"] = "train",
        observation_mode: ObservationMode = "text_rich",
        max_turns: int = 30,
        show_attrs: bool = False,
        error_tolerance: int = 15,
        format_error_reward: float = FORMAT_ERROR,
        matching: Matching = "exact",
        products: int = 20_000,
        catalogue_seed: int = 0,
    ) -> None:
        check_count("level", level, 1, max(mini.LEVELS))
        if split not in ("train", "test"):
            raise BadValue(f"split must be 'train' or 'test', got {split!r}")
        super().__init__(
            mini.mini_catalogue(products, catalogue_seed),
            f"{split}-{level}",
            observation_mode=observation_mode,
            max_turns=max_turns,
            show_attrs=show_attrs,
            error_tolerance=error_tolerance,
            format_error_reward=format_error_reward,
            matching=matching,
            nouns="words",
        )


def read_action(text: str) -> tuple[str, str] | None:
    r"""Return ("search" or "click", value in lower case) of the last action, in a box or bare; None without one.

    >>> read_action(r"I choose \boxed{click[Buy Now]}."), read_action("search[red shoes]"), read_action("buy it")
    (('click', 'buy now'), ('search', 'red shoes'), None)
    """
    text = outside_thinking(text)
    content = last_boxed(text, _ACTION)
    starts = list(_START.finditer(text if content is None else content))
    for match in reversed(starts) if content is None else starts:
        source = text if content is None else content
        value = _bracketed(source, match.end(), to_last=content is not None)
        if value is not None:
            return match[1].lower(), value.strip().lower()
    return None


def _bracketed(text: str, start: int, *, to_last: bool) -> str | None:
    """Return the text up to the bracket that closes the one before ``start``, or up to the last one of the text."""
    if to_last:
        return text[start : text.rindex("]")]
    depth = 1
    for match in re.compile(r"[\[\]\n]").finditer(text, start):
        if match[0] == "\n":
            return None
        depth += 1 if match[0] == "[" else -1
        if depth == 0:
            return text[start : match.start()]
    return None
