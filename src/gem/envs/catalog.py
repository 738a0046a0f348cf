"""Specifications of the built-in environments. Importing this module does not import any environment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gem.envs.games.specs import GAMES, TABLE_GAMES
from gem.envs.questions.reasoning_gym.specs import reasoning_gym_specs
from gem.envs.questions.specs import HUB_DATASETS
from gem.envs.spec_defaults import ANSWERS, BASELINE, FORMAT_ERROR, built_in
from gem.registry import EnvSpec

WEBSHOP_LOWEST = 16 * FORMAT_ERROR  # 15 actions that cannot be read are tolerated

_MCPMARK = built_in(
    "mcpmark:Files",
    "computers.mcpmark.mcpmark_env:make_mcpmark",
    {},
    "Change files with the tools of an MCP server, which npm installs. Needs sandbox level ns.",
    oracle="computers.mcpmark.mcpmark_env:Oracle",
    baseline=0.0,
    lowest=0.0,
    extra="mcp",
    runs="thread",
)


def _code(name: str, rows: str, text: str) -> EnvSpec:
    """Return the spec of programming tasks that the package contains."""
    kwargs = {"dataset_name": f"gem:code/{rows}"}
    return built_in(
        f"code:{name}",
        "questions.code_env:CodeEnv",
        kwargs,
        text,
        oracle="questions.code_solutions:CodeOracle",
        runs="thread",
    )


def _desk(name: str, module: str, text: str) -> EnvSpec:
    oracle = "desks.desk.retail:Oracle"
    return built_in(f"desk:{name}", f"desks.desk.{module}:{module}", {}, text, oracle=oracle, baseline=0.0, lowest=0.0)


def _generated(
    env_id: str, entry: str, kwargs: dict[str, Any], text: str, *, baseline: float = BASELINE, extra: str | None = None
) -> EnvSpec:
    """Return the spec of a family of questions generated from a seed."""
    return built_in(
        env_id, f"questions.generated:{entry}", kwargs, text, oracle=ANSWERS, baseline=baseline, extra=extra
    )


SPECS: list[EnvSpec] = [
    *GAMES,
    built_in(
        "tool:Lookup",
        "games.lookup:LookupEnv",
        {},
        "Say which digit is in a drawer, which only the tool of --wrappers lookup_tool shows.",
        oracle="games.lookup:Oracle",
    ),
    *TABLE_GAMES,
    _code("Warmup-v0", "warmup.jsonl", "Ten small built-in programming tasks, graded by hidden tests."),
    *(
        built_in(
            f"terminal:{family}",
            "computers.terminal.env:TerminalEnv",
            {"family": family},
            f"Tasks in a shell on an isolated machine, generated from a seed: {about}. Needs sandbox level ns.",
            oracle="computers.terminal.env:reference_agent",
            runs="thread",
        )
        for family, about in (
            ("Files", "find, move, rename and remove files"),
            ("Text", "grep, sed, awk, sort and join"),
            ("Data", "CSV, JSON and SQLite"),
            ("Git", "lost commits, bisection, squashing and merging"),
            ("Logs", "counts, slow requests, sessions and windows of time"),
            ("Processes", "parallel jobs, signals, locks and a service"),
            ("Build", "Makefiles and build scripts, checked with other inputs"),
            ("Archive", "archives, backups and checksums"),
            ("Mixed", "several of these in one task"),
        )
    ),
    built_in(
        "swe:Mini",
        "computers.swe.swe_env:MiniEnv",
        {},
        "Repair a fault in a small repository that an issue describes. Needs sandbox level ns and python3.",
        oracle="computers.swe.swe_env:Oracle",
        runs="thread",
    ),
    built_in(
        "web:Forms",
        "web.forms.env:FormsEnv",
        {},
        "Use web pages with forms: reach a goal and change nothing else.",
        oracle="web.forms.env:Oracle",
        lowest=0.0,
    ),
    _desk("Retail", "retail", "Serve a simulated customer of a shop with 15 tools, under a policy."),
    _desk(
        "Support",
        "support",
        "Serve a simulated customer of a phone provider, who has tools as well, under a policy.",
    ),
    *(
        built_in(
            f"{bench}:{domain}",
            f"desks.tau.{bench}:{bench}",
            {"domain": domain},
            f"Serve customers of {source}, from a checkout in $GEM_DATA.",
            oracle=None,
            baseline=None,
            lowest=0.0,
            runs="thread",
            turn_limit="outside",  # the published prompts do not state it
        )
        for bench, source, domains in (
            ("taubench", "TAU-bench", ("retail", "airline")),
            ("tau2", "tau2-bench", ("retail", "airline", "telecom")),
        )
        for domain in domains
    ),
    built_in(
        "webshop:Mini",
        "web.webshop.env:MiniWebshopEnv",
        {},
        "Buy a product that meets an instruction in a generated shop of 20,000 products.",
        oracle="web.webshop.players:Oracle",
        lowest=WEBSHOP_LOWEST,
        stored_scores="web.webshop.players:describe",
    ),
    *(
        built_in(
            f"webshop:{split}-{mode}",
            "web.webshop.env:WebshopEnv",
            {
                **{"observation_mode": mode, "split": split, "max_turns": 15},
                **{"error_tolerance": 15, "format_error_reward": FORMAT_ERROR},
            },
            "Buy a product that meets an instruction in the published shop; needs its data in $GEM_DATA.",
            oracle=None,
            baseline=None,
            lowest=WEBSHOP_LOWEST,
            extra="webshop",
        )
        for split in ("train", "test")
        for mode in ("html", "text", "text_rich")
    ),
    _code("Mini", "mini.jsonl", "62 small built-in programming tasks, graded by hidden tests."),
    built_in(
        "qa:Facts",
        "questions.qa_env:QaEnv",
        {"dataset_name": "gem:facts/questions.jsonl"},
        "450 questions about a fictional world; answering them requires searching its documents.",
        oracle=ANSWERS,
    ),
    built_in(
        "qa:Encyclopedia",
        "questions.encyclopedia_qa:EncyclopediaQaEnv",
        {},
        "Multi-hop questions about invented encyclopedias; answering them requires searching their pages.",
        oracle=ANSWERS,
    ),
    *(
        _generated(f"math:{name}", "MathFamilyEnv", {"family": family}, text, extra="math")
        for name, family, text in (
            ("Arithmetic", "arithmetic", "Exact arithmetic."),
            ("Algebra", "algebra", "Equations and polynomials."),
            ("NumberTheory", "number_theory", "Number theory."),
            ("Geometry", "geometry", "Lengths, areas and angles."),
        )
    ),
    _generated(
        "logic:Rules", "LogicRulesEnv", {}, "Decide whether a statement follows from facts and rules.", baseline=0.65
    ),
    *(
        _generated(f"vision:{name}", "VisionFamilyEnv", {"family": name.lower()}, text, extra="math,vision")
        for name, text in (
            ("Geometry", "Questions about labeled geometric figures."),
            ("Charts", "Questions about charts and tables."),
        )
    ),
    *HUB_DATASETS,
    _MCPMARK,
    replace(
        _MCPMARK,
        id="mcpmark:Postgres",
        entry_point="gem.envs.computers.mcpmark.mcpmark_env:make_shop",
        description="Change a PostgreSQL database with the tools of an MCP server. Needs PostgreSQL.",
    ),
    *reasoning_gym_specs(),
]

# Specs of ids whose second part is a path or another name.
PATH_SPECS: list[EnvSpec] = [
    *(
        built_in(
            f"{family}:PATH",
            f"questions.{entry}",
            {},
            f"{text} from a file, a folder or a dataset of the Hugging Face hub.",
            oracle=oracle,
            baseline=None,
            extra=extra,
            runs="thread",
            path="dataset_name",
        )
        for family, entry, text, oracle, extra in (
            ("math", "math_env:MathEnv", "Math questions", ANSWERS, "math"),
            ("qa", "qa_env:QaEnv", "Short-answer questions", ANSWERS, None),
            ("code", "code_env:CodeEnv", "Programming tasks", None, None),
        )
    ),
    replace(_MCPMARK, id="mcpmark:PATH", path="path", oracle=None, description="Tasks of MCPMark in a checkout."),
    *(
        built_in(
            f"{family}:PATH",
            f"computers.containers.{entry}",
            {},
            f"Tasks in folders of {name}, played in containers. Needs podman or docker.",
            oracle="computers.containers.container_env:Oracle",
            baseline=0.0,
            lowest=0.0,
            runs="thread",
            path="path",
        )
        for family, entry, name in (
            ("harbor", "harbor:HarborEnv", "Harbor"),
            ("terminalbench", "terminal_bench:TerminalBenchEnv", "Terminal-Bench"),
        )
    ),
    *(
        built_in(
            f"{family}:PATH",
            "computers.swe.row_env:SweRowsEnv",
            {},
            f"Issues of repositories, from rows as of {name}. Needs git at level ns, or images.",
            oracle="computers.swe.row_env:Oracle",
            lowest=0.0,
            runs="thread",
            path="dataset_name",
        )
        for family, name in (("swebench", "SWE-bench"), ("swegym", "SWE-Gym"))
    ),
]

# Formats of `gem export`; see gem.registry.Exporter.
EXPORTERS = {"harbor": "gem.envs.computers.containers.harbor_export:export"}
