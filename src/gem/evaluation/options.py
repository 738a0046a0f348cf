"""What an evaluation adds to every environment and to the policy: a prompt template, tools, a token budget."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from gem._internal.typed import Count, check_fields
from gem.conversation.prompt_template import PromptTemplate
from gem.errors import BadValue
from gem.evaluation.tasks import Wrap
from gem.evaluation.versions import digest
from gem.policies import Policy, Reply, Request, is_async
from gem.policies.usage import token_counts, token_usage
from gem.seeding import derive
from gem.wrappers.prompt_template import PromptTemplateWrapper
from gem.wrappers.wrapper_factory import has_tool, mcp_wrapper


@dataclass(frozen=True, kw_only=True)
class EvalOptions:
    """Options of evaluate().

    Args:
        prompt_template: a name of gem.conversation.prompt_template, or a file; None for no words of its own.
        mcp: JSON file with MCP servers, whose tools are offered in each environment; None for no tools.
        token_limit: maximum number of tokens per episode, those of prompts and of replies; None for no limit.
        native_tools: whether the tools of wrappers are called natively, as those of MCP servers are at an endpoint.
    """

    prompt_template: str | None = None
    mcp: str | None = None
    token_limit: Count | None = None
    native_tools: bool = False

    def __post_init__(self) -> None:
        check_fields(self)

    def wraps(self, policy: Policy) -> tuple[list[Wrap], list[Wrap]]:
        """Return the wrappers below and above those of an environment.

        Raises:
            BadValue: for an unusable file, or native calls by a policy that cannot make them.
        """
        inner: list[Wrap] = []
        outer: list[Wrap] = []
        native = is_async(policy) and policy.chat is None
        if self.native_tools and not native:
            raise BadValue("native_tools needs a model at an endpoint that gets messages, and not token ids")
        if self.mcp is not None:
            inner.append(mcp_wrapper(self.mcp, native=native))
        if self.prompt_template is not None:
            outer.append(partial(PromptTemplateWrapper, template=PromptTemplate.load(self.prompt_template)))
        return inner, outer

    def check_used(self, wrappers: Iterable[str]) -> None:
        """Raise BadValue for native calls if none of these comma-separated names of wrappers is that of a tool."""
        if self.native_tools and not any(map(has_tool, wrappers)):
            raise BadValue("native_tools has no effect: no environment has a wrapper with a tool, such as python_tool")

    def settings(self) -> dict[str, Any]:
        """Return what a resumed run may not change, as JSON data. The content of files is hashed."""
        found: dict[str, Any] = {}
        if self.prompt_template is not None:
            template = PromptTemplate.load(self.prompt_template)
            found["prompt_template"] = {"name": template.name, "hash": digest(template.text.encode())}
        if self.mcp is not None:
            found["mcp"] = {"file": self.mcp, "hash": digest(Path(self.mcp).read_bytes())}
        if self.token_limit is not None:
            found["token_limit"] = self.token_limit
        if self.native_tools:
            found["native_tools"] = True
        return found

    def limited(self, policy: Policy, *more: Budget) -> Policy:
        """Return the policy with the token budget, with the context of its model as a limit, and with more budgets."""
        budgets = [*more]
        if self.token_limit is not None or (policy.chat is not None and policy.max_prompt_tokens is not None):
            budgets.append(TokenBudget(self.token_limit, policy.max_prompt_tokens))
        return Budgeted(policy, budgets) if budgets else policy


class Budget(Protocol):
    """A limit that counts replies."""

    def ending(self, request: Request) -> Reply | None:
        """Return the reply that ends an episode over the limit, instead of the policy's; None if it is not over it."""

    def count(self, request: Request, reply: Reply) -> None:
        """Count a reply of the policy."""


class SampledByTask:
    """A policy that samples an episode by its task and rollout, whatever its place in the evaluation is.

    Args:
        tasks: ids of the tasks, in the order of the episodes.
        first: number of the first of these episodes.
    """

    def __init__(self, policy: Any, tasks: Iterable[str], first: int) -> None:
        self.policy = policy
        rollouts = Counter[str]()
        self._streams: dict[int, int] = {}
        for number, task in enumerate(tasks, start=first):
            self._streams[number] = derive("sampling", task, rollouts[task])
            rollouts[task] += 1
        if is_async(policy):
            self.submit = lambda request: policy.submit(self._by_task(request))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        replies: list[Reply] = self.policy.act([self._by_task(request) for request in requests])
        return replies

    def _by_task(self, request: Request) -> Request:
        _, episode, turn = request.key
        return replace(request, stream=(self._streams[episode], turn))


class TokenBudget:
    """Ends episodes, as with a full context, once their prompts and replies have used up a number of tokens.

    The reply that exceeds the budget is still played. An episode also ends at a prompt that is too long for the policy;
    a first prompt would otherwise stop the whole run.

    Args:
        limit: tokens per episode. Of an endpoint, those that it reports. None for no budget.
        max_prompt_tokens: of the policy.
    """

    def __init__(self, limit: int | None, max_prompt_tokens: int | None) -> None:
        self.limit = math.inf if limit is None else limit
        self.max_prompt_tokens = math.inf if max_prompt_tokens is None else max_prompt_tokens
        self._spent: dict[int, int] = {}  # by episode

    def ending(self, request: Request) -> Reply | None:
        _, episode, turn = request.key
        if turn == 0:
            self._spent[episode] = 0
        is_over = self._spent[episode] >= self.limit or len(request.prompt_ids) > self.max_prompt_tokens
        return _OVER if is_over else None

    def count(self, request: Request, reply: Reply) -> None:
        fed = len(reply.prompt_ids) or len(request.prompt_ids)
        self._spent[request.key[1]] += sum(token_counts(token_usage(reply.usage), fed, len(reply.sampled_ids)))


class Budgeted:
    """A policy that is asked while its budgets last."""

    def __init__(self, policy: Any, budgets: Sequence[Budget]) -> None:
        self.policy, self.budgets = policy, budgets
        if is_async(policy):
            self.submit = self._submit

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        endings = list(map(self._ending, requests))
        asked = [request for request, ending in zip(requests, endings, strict=True) if ending is None]
        replies = iter(self.policy.act(asked) if asked else [])
        return [
            self._counted(request, next(replies)) if ending is None else ending
            for request, ending in zip(requests, endings, strict=True)
        ]

    def _submit(self, request: Request) -> Future[Reply]:
        if (ending := self._ending(request)) is not None:
            future: Future[Reply] = Future()
            future.set_result(ending)
            return future
        future = self.policy.submit(request)
        future.add_done_callback(partial(self._count, request))
        return future

    def _ending(self, request: Request) -> Reply | None:
        endings = [budget.ending(request) for budget in self.budgets]
        return next((ending for ending in endings if ending is not None), None)

    def _counted(self, request: Request, reply: Reply) -> Reply:
        for budget in self.budgets:
            budget.count(request, reply)
        return reply

    def _count(self, request: Request, future: Future[Reply]) -> None:
        if not future.cancelled() and future.exception() is None:
            self._counted(request, future.result())


_OVER = Reply("", finish="context_overflow")
