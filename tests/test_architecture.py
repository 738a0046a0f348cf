"""The architecture: modules import only from rows above their own, without cycles, and each library has its homes."""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from gem._published import PUBLISHED

pytestmark = pytest.mark.slow  # `make check` runs them

SRC = Path(__file__).parent.parent / "src"
MODULES = {
    ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((SRC / "gem").rglob("*.py"))
    if "repositories" not in path.parts  # files of tasks
}

# Each name is a row; a package is one row.
ROWS = [
    *("errors", "messages", "seeding", "parsing", "_internal"),
    *("core", "multiagent", "registry", "token_ids"),
    *("trajectory", "conversation", "datasets", "sandbox", "vector"),
    *("policies", "tools"),
    "graders",
    *("envs", "wrappers"),
    "rollout",
    *("evaluation", "rl", "testing", "viewer"),
    *("integrations", "utils", "cli"),
]

# Rows inside packages: the contract, its implementations, the facade. A name is a module or a package below; every one
# of a listed package is in a row.
SUB_ROWS = {
    "_internal": [
        ("inbound",),
        ("counts", "event_loop", "framing", "json_codec", "http_server", "imports", "text"),
        ("folders", "typed"),
        ("annotations", "http_client", "worker_process"),
        ("construction", "worker_pool"),
        ("__init__",),
    ],
    "conversation": [
        ("observations", "prompt_template", "template"),
        ("chat",),
        ("history",),
        ("retokenization",),
        ("__init__",),
    ],
    "datasets": [("rows",), ("load",), ("stream",), ("tasks",), ("__init__",)],
    "sandbox": [
        ("admission", "machine_protocol", "output", "results", "screen"),
        ("inputs", "machine", "process"),
        ("base",),
        ("interpreter_session", "usual_imports"),
        ("forkserver", "remote"),
        ("command",),
        ("containers",),
        ("factory",),
        ("__init__",),
    ],
    "sandbox.command": [("inside", "inside_relay", "sandbox"), ("bubblewrap", "subprocess_"), ("__init__",)],
    "sandbox.containers": [("engine", "shell"), ("machine",), ("sandbox",), ("__init__",)],
    "sandbox.forkserver": [
        ("protocol", "syscalls"),
        ("linux",),
        ("limits",),
        ("isolation",),
        ("entry",),
        ("server",),
        ("host",),
        ("__init__",),
    ],
    "sandbox.forkserver.host": [
        ("execution",),
        ("lasting", "launch"),
        ("batch", "probe", "session"),
        ("machine",),
        ("sandbox",),
        ("__init__",),
    ],
    "sandbox.remote": [("protocol",), ("client", "server"), ("__init__",)],
    "vector": [
        ("slots", "stats"),
        ("engine", "orders", "worker"),
        ("worker_engine",),
        ("sync", "thread", "async_", "process", "ray"),
        ("base",),
        ("make",),
        ("__init__",),
    ],
    "policies": [
        ("base", "model_list", "refusals", "usage"),
        ("completion",),
        ("chat_requests",),
        ("endpoint",),
        ("customer", "function"),
        ("__init__",),
    ],
    "tools": [
        ("arguments", "formats"),
        ("base_tool",),
        ("machine", "mcp", "python", "search"),
        ("function_tool", "lookup_tool", "tool_env_wrapper"),
        ("__init__",),
    ],
    "tools.formats": [("base", "tag_scanner"), ("bare_calls",), ("json_calls",), ("tags",), ("__init__",)],
    "tools.machine": [("base",), ("editor",), ("shell",), ("__init__",)],
    "tools.mcp": [
        ("config", "limits", "schema", "time_server"),
        ("content", "http", "stdio"),
        ("session",),
        ("client",),
        ("tool",),
        ("__init__",),
    ],
    "tools.search": [
        (
            "addresses",
            "corpus",
        ),
        ("ranking",),
        ("numpy_engine", "tantivy_engine"),
        ("index",),
        ("client", "dense", "server"),
        ("tool", "web"),
        ("retrieval_server", "google_search_server", "serp_search_server"),
        ("__init__",),
    ],
    "graders": [("base", "pool"), ("code", "exact", "judge", "math", "rubric"), ("gold_audit",), ("__init__",)],
    "graders.code": [("checker", "compare"), ("tests",), ("grader",), ("__init__",)],
    "graders.math": [
        ("languages", "lexer", "tree"),
        ("heads", "units", "words"),
        ("symbolic", "values"),
        ("engine", "parser", "question", "sets"),
        ("equal",),
        ("asked",),
        ("grader", "warm"),
        ("__init__",),
    ],
    "graders.math.parser": [
        ("vocabulary",),
        ("cursor", "reader"),
        ("names",),
        ("constructs",),
        ("atoms",),
        ("expression",),
        ("answer",),
        ("__init__",),
    ],
    "graders.math.equal": [
        ("core", "normal"),
        ("collections", "notations"),
        ("formulas",),
        ("families",),
        ("__init__",),
    ],
    "graders.math.asked": [("forms", "pieces", "quantities"), ("order", "sentences"), ("readings",), ("__init__",)],
    "envs": [
        ("spec_defaults", "game", "dataset_env", "invented"),
        ("computers", "table", "web"),
        ("desks", "games", "questions"),
        ("catalog", "registration"),
        ("__init__",),
    ],
    "envs.computers": [
        ("commands", "keys", "task"),
        ("verify",),
        ("shell_env",),
        ("mcpmark", "terminal"),
        ("containers",),
        ("swe",),
        ("__init__",),
    ],
    "envs.desks": [("desk", "tau"), ("__init__",)],
    "envs.games": [
        ("baselines", "specs"),
        ("bandit", "blackjack", "grids", "guess_the_number", "lookup", "mastermind", "tower_of_hanoi", "words"),
        ("players",),
        ("__init__",),
    ],
    "envs.questions": [
        ("answer_format", "corrupted", "facts", "families", "specs", "worked_out"),
        ("code_env", "math_env", "qa_env", "reasoning_gym", "vision"),
        ("code_solutions", "encyclopedia_qa", "math_visual_env"),
        ("generated",),
        ("__init__",),
    ],
    "envs.table": [
        ("matrix", "messages", "random_play"),
        ("game",),
        ("boards", "colonel_blotto", "dont_say_it", "liars_dice", "mafia", "negotiation"),
        ("poker", "poker_solver", "prisoners_dilemma", "sealed_auction"),
        ("players",),
        ("make",),
        ("__init__",),
    ],
    "envs.web": [("text",), ("webshop", "wiki"), ("forms",), ("__init__",)],
    "rollout": [
        ("episode",),
        ("requests",),
        ("scheduler",),
        ("collector", "games", "groups", "play", "stepwise"),
        ("branches", "policy_player"),
        ("__init__",),
    ],
    "evaluation": [
        ("cost", "metrics", "options", "records", "tasks", "versions"),
        ("columns", "ratings", "suites"),
        ("report",),
        ("logs",),
        ("compare", "run", "tournament"),
        ("exchange", "plot", "rescore"),
        ("__init__",),
    ],
    "evaluation.logs": [("services", "spans"), ("run_log",), ("__init__",)],
    "rl": [
        ("choices", "environments", "metrics"),
        ("estimate",),
        ("options",),
        ("config",),
        ("checks", "config_file"),
        ("model",),
        ("data", "minimal"),
        ("run",),
        ("__init__",),
    ],
    "rl.estimate": [("advantages", "losses"), ("batch",), ("__init__",)],
    "rl.model": [
        ("kv_cache", "scoring", "tiny", "vision"),
        ("loading", "cuda_graphs", "critic"),
        ("lora", "memory", "sampling"),
        ("policy",),
        ("agreement", "remote", "strategy"),
        ("__init__",),
    ],
    "rl.data": [("curriculum", "evaluation", "imitation", "self_play"), ("mixture",), ("__init__",)],
    "rl.run": [
        ("evaluator", "folder", "learner", "monitor"),
        ("build",),
        ("dry_run", "plots", "trainer"),
        ("__init__",),
    ],
    "integrations": [
        ("shared",),
        ("areal", "nemo_rl", "oat", "openrlhf", "pettingzoo", "rl2", "roll", "skyrl", "slime", "tinker"),
        ("tinker_cookbook", "trl", "verifiers", "verl"),
        ("__init__",),
    ],
    "viewer": [("episodes", "formulas", "tokens"), ("recordings", "results"), ("page",), ("server",), ("__init__",)],
    "cli": [
        ("output",),
        ("flags", "data"),
        ("bench", "check", "eval", "export", "list", "play", "replay", "sandbox", "tournament", "train", "view"),
        ("info", "plot"),
        ("__init__",),
    ],
    "cli.eval": [("display", "policies"), ("folders",), ("command",), ("__init__",)],
    "testing": [
        ("check", "fakes", "plain_data"),
        ("check_judge", "check_rows", "check_tool", "env", "sandbox"),
        ("__init__",),
    ],
    "testing.env": [
        ("growth", "playthroughs", "process_state", "target"),
        ("harness", "side_effects"),
        ("rollouts",),
        ("construction", "determinism", "interface", "process", "scores", "secrets"),
        ("check_env",),
        ("__init__",),
    ],
    "testing.sandbox": [("programs",), ("interference", "limits"), ("check_sandbox",), ("__init__",)],
}

# Reached by id, entry point, published name or command; no other package imports them.
LEAVES = {"envs", "integrations", "utils", "cli"}

# The compatibility layer: modules that would not exist without the published package. No other module imports them.
COMPATIBILITY = {module for module in MODULES if module.startswith("gem.utils.")}

# Public classes of one name in several modules, and why.
SAME_NAME = {
    "State": "each game's own state: get_state() names the field, not the class",
    "Oracle": "each game's own oracle, beside the game",
    "Config": "each command's flags, in the command's module",
}
# Modules of the compatibility layer that define classes of ours again, with the published arguments.
PUBLISHED_AGAIN = {"gem.utils.vector_env", "gem.utils.observation_wrapper"}

# Doors forward to other modules lazily. __main__ is `python -m gem`, another name of the command line.
DOORS = {"gem", "gem._published", "gem.envs.registration"}
MAIN = "gem.__main__"

# The strings in these modules name environments' classes, which the registry resolves when one is made.
CATALOGS = {
    "gem.registry",
    *("gem.envs.catalog", "gem.envs.games.specs", "gem.envs.questions.specs", "gem.envs.questions.reasoning_gym.specs"),
}

# Every third-party library, with the packages and modules under gem that may import it. All others are refused.
ANYWHERE = [""]
HOMES = {
    # core dependencies
    "gymnasium": ["integrations.pettingzoo"],
    "numpy": [
        "integrations.pettingzoo",
        "_internal.json_codec",
        "evaluation",
        "rl",
        "vector",
        "utils",
        "tools.search",
        "envs",
        "testing.env.process_state",
    ],
    "msgspec": ANYWHERE,
    "rich": ["cli", "tools.search"],
    # extras
    "PIL": ["_internal.inbound", "envs", "tools"],
    "aiohttp": ["_internal.http_client", "tools.search", "testing", "sandbox.remote"],
    "yarl": ["tools.search"],  # the URLs of aiohttp
    "anyio": ["tools"],
    "cloudpickle": ["_internal"],
    "datasets": ["datasets", "integrations"],
    "httpx2": ["tools"],
    "huggingface_hub": ["datasets"],
    "jsonschema": ["tools"],
    "opentelemetry": ["evaluation.logs"],
    "loguru": ["envs.desks.tau.tau2"],
    "latex2mathml": ["viewer.formulas"],
    "libzim": ["envs.web.wiki.kiwix"],
    "matplotlib": ["rl", "evaluation"],
    "mcp": ["tools", "envs.computers.mcpmark.postgres_server"],
    "prometheus_client": ["tools.search"],
    "pyarrow": ["datasets"],
    "pyte": ["sandbox.screen"],
    "wcwidth": ["sandbox.screen"],
    "ray": ["vector.ray", "integrations.openrlhf", "integrations.nemo_rl"],
    "reasoning_gym": ["envs"],
    "referencing": ["tools"],
    "peft": ["rl"],
    "safetensors": ["rl"],
    "selectolax": ["tools.search"],
    "starlette": ["tools.search", "sandbox.remote.server"],
    "sympy": ["graders", "envs"],
    "tantivy": ["tools.search"],
    "snowballstemmer": ["tools.search"],
    "spacy": ["envs.web.webshop.nouns"],
    "psycopg2": ["envs.computers.mcpmark.postgres"],
    "rapidfuzz": ["envs.web.webshop.rewards"],
    "swebench": ["envs.computers.swe.outcomes"],
    "tensorboard": ["evaluation.logs"],
    "tokenizers": ["rl", "conversation", "viewer"],
    "torch": ["rl", "integrations"],
    "trackio": ["evaluation.logs"],
    "yaml": ["_internal.inbound"],
    "backports": ["_internal.inbound"],
    "transformers": ["rl", "conversation", "integrations"],
    "chz": ["integrations.tinker_cookbook"],
    "tinker": ["integrations"],
    "tinker_cookbook": ["integrations.tinker_cookbook"],
    "areal": ["integrations.areal"],
    "oat": ["integrations.oat"],
    "pettingzoo": ["integrations.pettingzoo"],
    "trl": ["integrations.trl"],
    "verifiers": ["integrations.verifiers"],
    "verl": ["integrations.verl"],
    "openrlhf": ["integrations.openrlhf"],
    "RL2": ["integrations.rl2"],
    "roll": ["integrations.roll"],
    "slime": ["integrations.slime"],
    "skyrl": ["integrations.skyrl"],
    "skyrl_gym": ["integrations.skyrl"],
    "nemo_rl": ["integrations.nemo_rl"],
    "wandb": ["evaluation.logs"],
    "uvicorn": ["_internal.http_server"],
}

# Modules that may import by name (importlib, __import__), run source text (exec) or change sys.modules, and why.
DYNAMIC = {
    "gem._published": "imports the modules of published paths",
    "gem.envs.desks.tau.checkout": "imports modules of a checkout of others, whose names are data",
    "gem": "forwards its public names lazily",
    "gem.errors": "require() imports a library of an extra",
    "gem._internal.imports": "resolve() imports what a string names, for the rest of gem",
    "gem.envs.computers.swe.driver": "runs inside a machine: hidden tests from a file",
    "gem.sandbox.command.inside": "runs in a container without gem: builds its modules from source text",
    "gem.sandbox.command.inside_relay": "runs in a container without gem",
    "gem.sandbox.forkserver.entry.cells": "runs the cells of a session",
    "gem.sandbox.forkserver.entry.program": "runs the program under test",
    "gem.sandbox.forkserver.isolation.semaphores": "replaces modules of multiprocessing in the fork server",
    "gem.sandbox.forkserver.server.server": "imports the libraries that programs may use before it forks",
    "gem.testing.env.side_effects": "runs as a script that measures what an import costs",
}

# General readers. What comes from outside is read by gem._internal.inbound, which bounds it; a module that uses one of
# these itself is listed with what it reads.
READERS = {
    *("json.loads", "json.load", "json.JSONDecoder", "tomllib.loads", "tomllib.load", "yaml.safe_load", "yaml.load"),
    *("msgspec.json.decode", "msgspec.json.Decoder", "msgspec.msgpack.decode", "msgspec.msgpack.Decoder"),
    *("pickle.loads", "pickle.load", "pickle.Unpickler", "marshal.loads", "shelve.open", "torch.load"),
    *("zipfile.ZipFile", "tarfile.open", "shutil.unpack_archive", "Image.open", "image.open", "pil.open"),
    *("gzip.open", "gzip.decompress", "zlib.decompress", "zlib.decompressobj", "bz2.open", "lzma.open"),
}
READ_HERE = {
    "gem._internal.inbound": "the guard itself",
    "gem._internal.framing": "messages between processes of gem, which no sandboxed program reaches",
    "gem.vector.worker": "likewise",
    "gem.vector.worker_engine": "likewise",
    "gem.cli.flags": "the command line",
    "gem.datasets.load": "streams gzip, and counts what comes out",
    "gem.evaluation.exchange.inspect_logs": "opens a zip archive, whose members the guard reads",
    "gem.graders.judge": "keeps duplicate keys; the bounds are checked before",
    "gem.envs.computers.mcpmark.shop": "reads numbers as decimals; the bounds are checked before",
    "gem.sandbox.forkserver.host.session": "decodes to a type; the bounds are checked before",
    "gem.tools.search.server": "decodes to a type; the bounds are checked before",
    "gem.tools.search.client": "msgpack, whose depth msgspec bounds",
    "gem.policies.chat_requests": "checks that a text is a JSON object; the bounds are checked before",
    "gem.testing.fakes.openai_schema": "decodes to types what gem itself has sent",
    "gem.tools.formats.base": "finds where a value in a text ends; the bounds are checked after",
    "gem.tools.arguments": "builds a decoder to see whether msgspec has the type",
    "gem.sandbox.containers.machine": "streams archives, and counts what comes out",
    "gem.sandbox.forkserver.protocol": "messages of the fork server to its children",
    "gem.sandbox.machine_protocol": "also runs inside, without gem; its callers check the bounds",
    **dict.fromkeys(
        (
            *("gem.sandbox.command.inside", "gem.sandbox.command.inside_relay", "gem.sandbox.forkserver.entry.cells"),
            *("gem.sandbox.forkserver.entry.case_runner", "gem.sandbox.forkserver.entry.machine_init"),
            *("gem.sandbox.forkserver.entry.values", "gem.envs.computers.containers.exported_verifier"),
        ),
        "runs inside a sandbox or a container",
    ),
    "gem.sandbox.command.bubblewrap": "what bwrap itself reports",
    **dict.fromkeys(
        (
            *("gem.envs.computers.containers.harbor_export", "gem.envs.computers.terminal.archive"),
            *("gem.evaluation.records", "gem.evaluation.run", "gem.graders.gold_audit", "gem.integrations.openrlhf"),
            *("gem.rollout.branches", "gem.envs.desks.desk.retail", "gem.envs.desks.desk.players"),
        ),
        "what gem itself has just written",
    ),
    **dict.fromkeys(
        (
            *("gem.envs.computers.mcpmark.checkout", "gem.envs.computers.mcpmark.mcpmark_env"),
            *(
                "gem.envs.computers.swe.repository",
                "gem.envs.games.baselines",
                "gem.evaluation.exchange.reference",
                "gem.envs.table.players",
            ),
            *("gem.envs.web.webshop.players", "gem.envs.web.webshop.vocabulary"),
        ),
        "files of this package",
    ),
    **dict.fromkeys(
        (
            *("gem.envs.desks.tau.tau2", "gem.envs.desks.tau.taubench", "gem.envs.web.webshop.published"),
            *("gem.envs.web.webshop.store", "gem.tools.search.dense", "gem.tools.search.index"),
            *("gem.tools.search.numpy_engine", "gem.tools.search.tantivy_engine"),
        ),
        "checkouts whose code is run, data and indexes that the user built",
    ),
    **dict.fromkeys(
        (
            *("gem.testing.check_judge", "gem.testing.check_tool", "gem.testing.env.construction"),
            *("gem.testing.env.determinism", "gem.testing.env.harness", "gem.testing.env.side_effects"),
            *("gem.testing.fakes.endpoint", "gem.testing.fakes.search", "gem.testing.sandbox.programs"),
        ),
        "tests of the user's own code",
    ),
}

# Libraries that import by name or run source text, and their parts that only read package data and versions.
DYNAMIC_LIBRARIES = {"importlib", "runpy", "pkgutil", "builtins", "code", "zipimport"}
HARMLESS = {"importlib.resources", "importlib.metadata"}

DYNAMIC_CALLS = {"require", "import_module", "__import__", "resolve"}


def row_of(module: str) -> str:
    return "cli" if module == MAIN else module.removeprefix("gem.").split(".")[0]


def part_of(package: str, module: str) -> str:
    """The module or package directly inside a package that a module belongs to."""
    return module.removeprefix(f"gem.{package}").lstrip(".").split(".")[0] or "__init__"


def is_package(module: str) -> bool:
    return MODULES[module].name == "__init__.py"


def stated(module: str, tree: ast.AST, *, package: bool) -> Iterator[tuple[str, int]]:
    """Modules named by import statements and their lines, in functions and under TYPE_CHECKING too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = (module if package else module.rpartition(".")[0]).split(".")
                base = ".".join([*parents[: len(parents) - node.level + 1], *filter(None, [base])])
            for alias in node.names:
                name = f"{base}.{alias.name}"
                yield (name if name in MODULES else base), node.lineno


def named(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Modules named by strings and their lines: "gem.vector.process:ProcessEngine", require("torch")."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            module, attribute, _ = node.value.partition(":")
            if module in MODULES and (attribute or not is_package(module)):
                yield module, node.lineno
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in DYNAMIC_CALLS and isinstance(node.args[0].value, str):
                yield node.args[0].value.partition(":")[0], node.lineno


def dynamic(tree: ast.AST) -> Iterator[int]:
    """Lines that import by name, run source text or change sys.modules."""
    arguments = {
        id(name) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) for name in arguments_in(node)
    }
    for node in ast.walk(tree):
        found = False
        if isinstance(node, ast.Import):
            names = {alias.name for alias in node.names}
            found = bool({name.split(".")[0] for name in names - HARMLESS} & DYNAMIC_LIBRARIES)
            found |= any(alias.name == "sys" and alias.asname for alias in node.names)  # hides sys.modules
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            found = module not in HARMLESS and module.split(".")[0] in DYNAMIC_LIBRARIES
            found |= module == "sys" and any(alias.name == "modules" for alias in node.names)
        elif isinstance(node, ast.Name):
            found = node.id in ("exec", "eval", "__import__") and id(node) not in arguments
        elif isinstance(node, ast.Subscript):
            found = not isinstance(node.ctx, ast.Load) and is_sys_modules(node.value)
        elif isinstance(node, ast.Attribute):
            found = node.attr not in ("get", "items", "keys") and is_sys_modules(node.value)
        if found:
            yield node.lineno


def arguments_in(function: ast.FunctionDef) -> Iterator[ast.Name]:
    """Names in a function that are its arguments, such as MathEnv's ``eval``."""
    own = {argument.arg for argument in [*function.args.args, *function.args.kwonlyargs]}
    return (node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id in own)


def is_sys_modules(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "modules" and getattr(node.value, "id", "") == "sys"


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other, directly or through others."""

    def reachable(start: str) -> set[str]:
        seen: set[str] = set()
        queue = list(graph[start])
        while queue:
            if (module := queue.pop()) not in seen:
                seen.add(module)
                queue += graph.get(module, ())
        return seen

    reach = {module: reachable(module) for module in graph}
    groups = {tuple(sorted(n for n in reach[m] if m in reach.get(n, ()))) for m in graph if m in reach[m]}
    return [list(group) for group in sorted(groups)]


INSIDE = sorted(set(MODULES) - DOORS)


@cache
def trees() -> dict[str, ast.Module]:
    """Module name to syntax tree."""
    return {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in MODULES.items()}


@cache
def statements() -> dict[str, set[tuple[str, int]]]:
    """Module name to the modules that its import statements name, with their lines."""
    return {module: set(stated(module, tree, package=is_package(module))) for module, tree in trees().items()}


@cache
def imports() -> dict[str, list[tuple[str, int]]]:
    """Module name to all modules that it imports, by statement or by name, with their lines."""
    by_name = {m: set() if m in CATALOGS | DOORS else set(named(tree)) for m, tree in trees().items()}
    return {module: sorted(found | by_name[module]) for module, found in statements().items()}


def wrong_imports(modules: Iterable[str], is_wrong: Callable[[str, str], bool]) -> list[str]:
    """Every import of the given modules for which is_wrong(module, imported) holds, as "file:line imports name"."""
    return [
        f"{MODULES[module].relative_to(SRC)}:{line} imports {name}"
        for module in modules
        for name, line in imports()[module]
        if is_wrong(module, name)
    ]


def is_gem(name: str) -> bool:
    return name.startswith("gem.")


def test_a_module_imports_only_from_rows_above_its_own():
    assert {row_of(module) for module in INSIDE} <= set(ROWS), "every module is in a row"
    assert (
        wrong_imports(INSIDE, lambda m, name: is_gem(name) and ROWS.index(row_of(name)) > ROWS.index(row_of(m))) == []
    )


def test_a_package_imports_only_from_its_own_rows_above():
    for package, rows in SUB_ROWS.items():
        row = {name: number for number, names in enumerate(rows) for name in names}
        inside = {m: part_of(package, m) for m in MODULES if f"{m}.".startswith(f"gem.{package}.")}
        assert set(inside.values()) == set(row), f"every module of {package} is in a row"
        assert (
            wrong_imports(inside, lambda m, n, row=row, inside=inside: row[inside.get(n, inside[m])] > row[inside[m]])
            == []
        )


def test_no_folder_is_a_flat_list():
    sizes = Counter(path.parent.relative_to(SRC).as_posix() for path in MODULES.values())
    assert {folder: size for folder, size in sizes.items() if size > 16} == {}


def test_a_package_says_what_belongs_in_it_and_what_does_not():
    paragraphs = {m: (ast.get_docstring(trees()[m]) or "").split("\n\n") for m in MODULES if is_package(m)}
    assert [module for module, found in paragraphs.items() if len(found) < 2] == []


def test_no_module_imports_itself_through_others():
    graph = {m: {name for name, _ in imports()[m] if name in MODULES and name != m} for m in INSIDE}
    assert cycles(graph) == []


def test_no_other_package_imports_a_leaf():
    assert wrong_imports(INSIDE, lambda m, name: is_gem(name) and row_of(name) in LEAVES - {row_of(m)}) == []


def test_the_compatibility_layer_is_thin_and_imported_by_no_other_module():
    assert set(MODULES) >= set(PUBLISHED.values()), "the homes of published paths exist"
    assert not set(MODULES) & set(PUBLISHED), "a file would hide the table"
    lines = {
        m: len([line for line in MODULES[m].read_text(encoding="utf-8").splitlines() if line.strip()])
        for m in COMPATIBILITY
    }
    assert {module: count for module, count in lines.items() if count >= 60} == {}
    assert wrong_imports(set(MODULES) - COMPATIBILITY - DOORS, lambda m, name: name in COMPATIBILITY) == []


def test_modules_inside_gem_do_not_import_the_package_itself():
    # `import gem` would hide what is used; the command line asks it for the version alone.
    wrong = [
        f"{m}:{line}" for m in INSIDE if row_of(m) not in LEAVES for name, line in statements()[m] if name == "gem"
    ]
    assert wrong == []


def test_third_party_libraries_are_imported_only_in_their_homes():
    def is_wrong(module: str, name: str) -> bool:
        library = name.split(".")[0]
        if library in sys.stdlib_module_names or library in ("gem", "__future__"):
            return False
        return not any(home == "" or f"{module}.".startswith(f"gem.{home}.") for home in HOMES.get(library, []))

    assert wrong_imports(MODULES, is_wrong) == []


def test_only_the_listed_modules_import_by_name_or_run_source_text():
    found = {module: sorted(set(dynamic(tree))) for module, tree in trees().items()}
    assert {module: lines for module, lines in found.items() if lines and module not in DYNAMIC} == {}
    assert {module for module in DYNAMIC if not found.get(module)} == set(), "no longer needed"


def readers(tree: ast.AST) -> Iterator[str]:
    """General readers that a module names, and torch.load where it may run code."""
    safe = {
        id(node.func)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and any(ast.unparse(word) == "weights_only=True" for word in node.keywords)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from {f"{node.module}.{alias.name}" for alias in node.names} & READERS
        elif isinstance(node, ast.Attribute) and (name := ast.unparse(node)) in READERS and id(node) not in safe:
            yield name


def test_what_comes_from_outside_is_read_by_the_guard():
    found = {module: sorted(set(readers(tree))) for module, tree in trees().items()}
    assert {module: names for module, names in found.items() if names and module not in READ_HERE} == {}
    assert {module for module in READ_HERE if not found.get(module)} == set(), "no longer needed"


def test_the_walk_sees_readers():
    code = "from json import loads\ntorch.load(f)\ntorch.load(f, weights_only=True)\nwith zipfile.ZipFile(f) as z: pass"
    assert sorted(readers(ast.parse(code))) == ["json.loads", "torch.load", "zipfile.ZipFile"]


# Modules that go around the streams which gem.cli.main() puts over stdout and stderr, and why.
AROUND_THE_ESCAPES = {
    "gem._internal.text": "defines them",
    "gem.cli.output": "its console writes the styles of rich, and escapes the text itself",
    "gem.cli.sandbox": "a file or a pipe gets the output of a program as it is",
    "gem.datasets.load": "downloads draw progress bars",
    "gem.rl.model.loading": "downloads draw progress bars",
}
WAYS_AROUND = {"unescaped", "__stdout__", "__stderr__", "stdout.buffer", "stderr.buffer"}
# In the command line also what writes as rich does by itself, or reads styles, links or commands in text.
WAYS_OF_RICH = {"Console", "get_console", "live.start", "progress.start", "markup=True", "emoji=True", "rich.print"}
WAYS_OF_RICH |= {"from_markup", "from_ansi", "AnsiDecoder", "Control", "os.write"}
MAY_WRITE = {"sandbox", "envs", "integrations", "utils"}  # run programs or are run by other frameworks


def ways_around(tree: ast.AST, ways: set[str]) -> Iterator[str]:
    """The calls, attributes and keyword arguments in a module that are among these ways."""
    for node in ast.walk(tree):
        found: list[str] = []
        if isinstance(node, ast.Call):
            found = [f"{word.arg}={word.value.value}" for word in node.keywords if isinstance(word.value, ast.Constant)]
            name = node.func
            found += [name.id if isinstance(name, ast.Name) else name.attr if isinstance(name, ast.Attribute) else ""]
        elif isinstance(node, ast.Attribute):
            found = [node.attr] if node.attr.startswith("__") else []
            found += [".".join(ast.unparse(node).split(".")[-2:])]
        yield from (name for name in found if name in ways)


def test_what_a_command_prints_is_escaped():
    """gem.cli.main() escapes what reaches stdout and stderr; nothing that runs in a command goes around it."""
    found = {
        module: sorted(set(ways_around(tree, WAYS_AROUND | (WAYS_OF_RICH if row_of(module) == "cli" else set()))))
        for module, tree in trees().items()
        if row_of(module) not in MAY_WRITE
    }
    assert {module: ways for module, ways in found.items() if ways and module not in AROUND_THE_ESCAPES} == {}
    assert {module for module in AROUND_THE_ESCAPES if not found.get(module)} == {"gem._internal.text"}


SAMPLES_AROUND = [
    *("sys.__stdout__.write(x)", "sys.stdout.buffer.write(x)", "os.write(1, x)", "unescaped(sys.stdout).write(x)"),
    *("Console().print(x)", "rich.console.Console(stderr=True)", "console.print(x, markup=True)", "self.live.start()"),
    *("Text.from_markup(x)", "rich.text.Text.from_ansi(x)", "rich.print(x)", "console.control(Control(x))"),
]


def test_the_walk_sees_ways_around_the_escapes():
    ways = WAYS_AROUND | WAYS_OF_RICH
    assert [code for code in SAMPLES_AROUND if not list(ways_around(ast.parse(code), ways))] == []
    assert not list(ways_around(ast.parse("print(x); sys.stdout.write(x); console.print(x, markup=False)"), ways))


def test_a_public_class_name_is_defined_once():
    modules = defaultdict(set)
    for module, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and module not in PUBLISHED_AGAIN:
                modules[node.name].add(module)
    assert {name: sorted(m) for name, m in modules.items() if len(m) > 1 and name not in SAME_NAME} == {}


SAMPLE = """
import gem.core
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from gem import registry
def f():
    from gem.rl.model.tiny import build_model
    from . import config
    require('torch.nn', extra='train')
    resolve('gem.rl.estimate.losses:policy_loss')
    importlib.import_module('datasets')
BACKENDS = {'process': 'gem.vector.process:ProcessEngine'}
"""


def test_the_walk_sees_imports_in_functions_and_in_strings():
    tree = ast.parse(SAMPLE)
    statements = {name for name, _ in stated("gem.rl.sample", tree, package=False)}
    assert statements == {"gem.core", "typing", "gem.registry", "gem.rl.model.tiny", "gem.rl.config"}
    assert {name for name, _ in named(tree)} == {"torch.nn", "datasets", "gem.rl.estimate.losses", "gem.vector.process"}


DYNAMIC_SAMPLES = [
    "import importlib",
    "from importlib import util",
    "import runpy",
    "import builtins",
    "exec(x)",
    "eval(x)",
    "__import__(x)",
    "sys.modules[x] = y",
    "sys.modules.update(x)",
    "from sys import modules",
    "import sys as s",
]


def test_the_walk_sees_dynamic_code():
    assert [code for code in DYNAMIC_SAMPLES if not list(dynamic(ast.parse(code)))] == []
    assert not list(dynamic(ast.parse("import importlib.metadata; sys.modules.get(x); sandbox.exec(x)")))


def test_a_cycle_through_a_third_module_is_found():
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
