r"""Multi-hop questions about an invented encyclopedia, to be answered by searching its pages.

Action       text with the answer between <answer> and </answer>, or in the format of ``answer_format``.
Observation  the question and the answer format; after the answer, whether it was correct.
Reward       1.0 for an accepted answer, else 0.0; -0.1 if no answer is found.
Ends         terminated after the first answer.
Bound        1.0 with the search tool: every question has one answer, which the pages state.

``SearchTool()`` around this environment searches the pages of the world that the question is about, without a server.

>>> from gem.tools.search.tool import SearchTool
>>> from gem.tools.tool_env_wrapper import ToolEnvWrapper
>>> env = ToolEnvWrapper(EncyclopediaQaEnv(hops=1, kind="chain"), tools=[SearchTool()])
>>> question, _ = env.reset(seed=0)
>>> page = env.unwrapped.row["pages"][0]
>>> page in env.step(f"<search>{page}</search>").observation
True
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from gem.datasets import Row
from gem.envs.questions.answer_format import Kind
from gem.envs.questions.qa_env import Grader, QaEnv
from gem.envs.web.wiki.articles import encyclopedia
from gem.envs.web.wiki.questions import Questions

if TYPE_CHECKING:
    from gem.tools.search.index import LexicalIndex


class EncyclopediaQaEnv(QaEnv):
    """See the module docstring.

    Args:
        hops: number of pages that have to be read, 1 to 4; None for any.
        kind: "chain", "comparison" or "count"; None for any.
        split: "train" (worlds 0 to 7) or "test" (8 and 9).
        seed, answer_format, reward: see QaEnv.

    Raises:
        BadValue: no questions have this kind and number of hops, or an argument is unknown.
    """

    def __init__(
        self,
        hops: int | None = None,
        kind: str | None = None,
        split: str = "train",
        *,
        seed: int | None = None,
        answer_format: Kind = "tag",
        reward: str | Grader = "exact",
    ) -> None:
        rows = Questions(hops, kind, split)
        super().__init__(dataset=rows, seed=seed, answer_format=answer_format, reward=reward)

    def search_index(self) -> LexicalIndex:
        """Return the index of the pages of the open question's world, for SearchTool."""
        return search_index(int(self.row["world"]))


def passages(world: int) -> list[Row]:
    """Return the pages of a world as rows of ``id``, ``title`` and ``text``, to index them with other tools."""
    articles = encyclopedia(world)
    return [
        {"id": str(number), "title": title, "text": page.text}
        for number, (title, page) in enumerate(articles.pages().items())
    ]


@lru_cache(maxsize=16)
def search_index(world: int) -> LexicalIndex:
    """Index the pages of a world in memory, for ``SearchTool(index=search_index(world))``."""
    from gem.tools.search.index import LexicalIndex  # imported here because it imports numpy

    return LexicalIndex.of(passages(world))
