"""Module paths of the published package, and the modules that they name here.

One import hook reads the table: ``import gem.tools.search_tool`` imports gem.tools.search.tool, and both names are the
same module. Packages, such as gem.envs.multiagent, have the names of the module. Type checkers and editors do not run
the hook, so new code should use the paths on the right.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType

PUBLISHED = {
    "gem.envs.code_env": "gem.envs.questions.code_env",
    "gem.envs.math_env": "gem.envs.questions.math_env",
    "gem.envs.math_visual_env": "gem.envs.questions.math_visual_env",
    "gem.envs.qa_env": "gem.envs.questions.qa_env",
    "gem.envs.reasoning_gym": "gem.envs.questions.reasoning_gym.env",
    "gem.envs.game_env.crosswords": "gem.envs.games.words.crosswords",
    "gem.envs.game_env.crosswords.crosswords": "gem.envs.games.words.crosswords",
    "gem.envs.game_env.fifteen_puzzle": "gem.envs.games.grids.fifteen_puzzle",
    "gem.envs.game_env.game_2048": "gem.envs.games.grids.game2048",
    "gem.envs.game_env.guess_the_number": "gem.envs.games.guess_the_number",
    "gem.envs.game_env.hangman": "gem.envs.games.words.hangman",
    "gem.envs.game_env.mastermind": "gem.envs.games.mastermind",
    "gem.envs.game_env.minesweeper": "gem.envs.games.grids.minesweeper",
    "gem.envs.game_env.sokoban": "gem.envs.games.grids.sokoban",
    "gem.envs.game_env.sokoban.sokoban": "gem.envs.games.grids.sokoban",
    "gem.envs.game_env.sudoku": "gem.envs.games.grids.sudoku",
    "gem.envs.game_env.tower_of_hanoi": "gem.envs.games.tower_of_hanoi",
    "gem.envs.game_env.wikigame": "gem.envs.games.words.wikigame",
    "gem.envs.game_env.wikigame.backend": "gem.envs.web.wiki.sources",
    "gem.envs.game_env.wikigame.wikigame": "gem.envs.games.words.wikigame",
    "gem.envs.game_env.word_search": "gem.envs.games.words.word_search",
    "gem.envs.game_env.wordle": "gem.envs.games.words.wordle",
    "gem.envs.multiagent": "gem.multiagent",
    "gem.envs.multiagent.multi_agent_env": "gem.multiagent",
    "gem.envs.webshop.webshop": "gem.envs.web.webshop.env",
    "gem.tools.mcp_server.time_mcp": "gem.tools.mcp.time_server",
    "gem.tools.mcp_tool": "gem.tools.mcp.tool",
    "gem.tools.python_code_tool": "gem.tools.python.tool",
    "gem.tools.search_engine.google_search_server": "gem.tools.search.google_search_server",
    "gem.tools.search_engine.retrieval_server": "gem.tools.search.retrieval_server",
    "gem.tools.search_engine.serp_search_server": "gem.tools.search.serp_search_server",
    "gem.tools.search_tool": "gem.tools.search.tool",
    "gem.vector.async_vector_env": "gem.utils.vector_env",
    "gem.vector.sync_vector_env": "gem.utils.vector_env",
    "gem.vector.vector_env": "gem.utils.vector_env",
    "gem.wrappers.episode_tracking_wrapper": "gem.wrappers.episode_tracking",
    "gem.wrappers.observation_wrapper": "gem.utils.observation_wrapper",
}
# Published packages that are no folder here.
_PACKAGES = {
    *("gem.envs.game_env", "gem.envs.game_env.crosswords", "gem.envs.game_env.sokoban", "gem.envs.game_env.wikigame"),
    *("gem.envs.multiagent", "gem.envs.webshop", "gem.tools.mcp_server", "gem.tools.search_engine"),
}


class PublishedPaths:
    """Finder and loader of the published paths."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in PUBLISHED and name not in _PACKAGES:
            return None
        import importlib.util  # here, because `import gem` needs it only for a published path

        if name in _PACKAGES:
            return ModuleSpec(name, PublishedPaths, is_package=True)  # type: ignore[arg-type]
        home = importlib.util.find_spec(PUBLISHED[name])
        return home and ModuleSpec(name, PublishedPaths, origin=home.origin)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        """Return the module here, or a package without files, with the names of a module here if the table says so."""
        home = importlib.import_module(PUBLISHED[spec.name]) if spec.name in PUBLISHED else None
        if home is not None and spec.name not in _PACKAGES:
            spec.loader_state = home.__spec__  # the import system is about to replace it
            return home
        package = ModuleType(spec.name, None if home is None else home.__doc__)
        if home is not None:
            vars(package).update({name: value for name, value in vars(home).items() if name[0] != "_"})
        return package

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Give a module that create_module() returned its own spec back."""
        spec = module.__spec__
        if spec is not None and spec.loader_state is not None:
            module.__spec__ = spec.loader_state

    @staticmethod
    def get_code(name: str) -> CodeType | None:
        """Return the code of a module, for ``python -m``."""
        import importlib.util

        found = importlib.util.find_spec(PUBLISHED[name]) if name in PUBLISHED else None
        return found.loader.get_code(found.name) if found and found.loader else None  # type: ignore[attr-defined]


def install() -> None:
    # First, because Python takes a folder that an older version has left for a package.
    if PublishedPaths not in sys.meta_path:
        sys.meta_path.insert(0, PublishedPaths)
