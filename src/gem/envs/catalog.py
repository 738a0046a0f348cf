"""Specifications of the built-in environments. Importing this module does not import any environment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from gem.envs.dataset_specs import HUB_DATASETS
from gem.envs.game_specs import GAMES, TABLE_GAMES
from gem.envs.reasoning_gym_specs import reasoning_gym_specs
from gem.envs.spec_values import BASELINE, FORMAT_ERROR
from gem.registry import EnvSpec


def _shipped(
    env_id: str,
    entry: str,
    oracle: str,
    text: str,
    *,
    baseline: float = BASELINE,
    lowest: float = FORMAT_ERROR,
    extra: str | None = None,
    runs: Literal["inline", "thread"] = "inline",
    **kwargs: Any,
) -> EnvSpec:
    """Return the spec of an environment with built-in tasks. Its oracle reads the answers from the environment.

    Args:
        baseline: maximum mean reward of policies that ignore the task.
        lowest: minimum reward of an episode.
    """
    return EnvSpec(
        id=env_id,
        entry_point=f"gem.envs.{entry}",
        kwargs=kwargs,
        extra=extra,
        runs=runs,
        reward_range=(lowest, 1.0),
        oracle=f"gem.envs.{oracle}",
        oracle_sees="state",
        baseline_scores=dict.fromkeys(["constant", "echo", "repeat-last"], baseline),
        description=text,
    )


def _generated(
    env_id: str, entry: str, kwargs: dict[str, Any], baseline: float, extra: str | None, text: str
) -> EnvSpec:
    """Return the spec of a family of questions generated from a seed."""
    return _shipped(
        env_id, f"generated:{entry}", "answer_format:AnswerOracle", text, baseline=baseline, extra=extra, **kwargs
    )


WEBSHOP_REWARDS = (16 * FORMAT_ERROR, 1.0)  # 15 actions that cannot be read are tolerated

_MCPMARK = EnvSpec(
    id="mcpmark:Files",
    entry_point="gem.envs.mcpmark.mcpmark_env:make_mcpmark",
    extra="mcp",
    runs="thread",
    reward_range=(0.0, 1.0),
    oracle="gem.envs.mcpmark.mcpmark_env:Oracle",
    oracle_sees="state",
    baseline_scores=dict.fromkeys(["constant", "echo", "repeat-last"], 0.0),
    description="Change files with the tools of an MCP server, which npm installs. Needs sandbox level ns.",
)

SPECS: list[EnvSpec] = [
    *GAMES,
    EnvSpec(
        id="tool:Lookup",
        entry_point="gem.envs.lookup:LookupEnv",
        reward_range=(FORMAT_ERROR, 1.0),
        oracle="gem.envs.lookup:Oracle",
        oracle_sees="state",
        baseline_scores=dict.fromkeys(["constant", "echo", "repeat-last"], BASELINE),
        description="Say which digit is in a drawer, which only the tool of --wrappers lookup_tool shows.",
    ),
    *TABLE_GAMES,
    _shipped(
        "code:Warmup-v0",
        "code_env:CodeEnv",
        "code_solutions:CodeOracle",
        "Ten small built-in programming tasks, graded by hidden tests.",
        runs="thread",
        dataset_name="gem:code/warmup.jsonl",
    ),
    *(
        _shipped(
            f"terminal:{family}",
            "terminal.terminal_env:TerminalEnv",
            "terminal.terminal_env:reference_agent",
            f"Tasks in a shell on an isolated machine, generated from a seed: {about}. Needs sandbox level ns.",
            runs="thread",
            family=family,
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
    _shipped(
        "swe:Mini",
        "swe.swe_env:MiniEnv",
        "swe.swe_env:Oracle",
        "Repair a fault in a small repository that an issue describes. Needs sandbox level ns and python3.",
        runs="thread",
    ),
    _shipped(
        "web:Forms",
        "web.forms:FormsEnv",
        "web.forms:Oracle",
        "Use web pages with forms: reach a goal and change nothing else.",
        lowest=0.0,
    ),
    EnvSpec(
        id="desk:Retail",
        entry_point="gem.envs.desk.retail:retail",
        reward_range=(0.0, 1.0),
        oracle="gem.envs.desk.retail:Oracle",
        oracle_sees="state",
        baseline_scores={"constant": 0.0, "echo": 0.0, "repeat-last": 0.0},
        description="Serve a simulated customer of a shop with 15 tools, under a policy.",
    ),
    EnvSpec(
        id="desk:Support",
        entry_point="gem.envs.desk.support:support",
        reward_range=(0.0, 1.0),
        oracle="gem.envs.desk.retail:Oracle",
        oracle_sees="state",
        baseline_scores={"constant": 0.0, "echo": 0.0, "repeat-last": 0.0},
        description="Serve a simulated customer of a phone provider, who has tools as well, under a policy.",
    ),
    *(
        EnvSpec(
            id=f"{bench}:{domain}",
            entry_point=f"gem.envs.tau.{bench}:{bench}",
            kwargs={"domain": domain},
            runs="thread",
            reward_range=(0.0, 1.0),
            description=f"Serve customers of {source}, from a checkout in $GEM_DATA.",
        )
        for bench, source, domains in (
            ("taubench", "TAU-bench", ("retail", "airline")),
            ("tau2", "tau2-bench", ("retail", "airline", "telecom")),
        )
        for domain in domains
    ),
    EnvSpec(
        id="webshop:Mini",
        entry_point="gem.envs.webshop.webshop:MiniWebshopEnv",
        reward_range=WEBSHOP_REWARDS,
        oracle="gem.envs.webshop.players:Oracle",
        oracle_sees="state",
        baseline_scores=dict.fromkeys(["constant", "echo", "repeat-last"], BASELINE),
        stored_scores="gem.envs.webshop.players:describe",
        description="Buy a product that meets an instruction in a generated shop of 20,000 products.",
    ),
    *(
        EnvSpec(
            id=f"webshop:{split}-{mode}",
            entry_point="gem.envs.webshop.webshop:WebshopEnv",
            kwargs={
                **{"observation_mode": mode, "split": split, "max_turns": 15},
                **{"error_tolerance": 15, "format_error_reward": FORMAT_ERROR},
            },
            extra="webshop",
            reward_range=WEBSHOP_REWARDS,
            description="Buy a product that meets an instruction in the published shop; needs its data in $GEM_DATA.",
        )
        for split in ("train", "test")
        for mode in ("html", "text", "text_rich")
    ),
    _shipped(
        "code:Mini",
        "code_env:CodeEnv",
        "code_solutions:CodeOracle",
        "62 small built-in programming tasks, graded by hidden tests.",
        runs="thread",
        dataset_name="gem:code/mini.jsonl",
    ),
    _shipped(
        "qa:Facts",
        "qa_env:QaEnv",
        "answer_format:AnswerOracle",
        "450 questions about a fictional world; answering them requires searching its documents.",
        dataset_name="gem:facts/questions.jsonl",
    ),
    _shipped(
        "qa:Encyclopedia",
        "encyclopedia_qa:EncyclopediaQaEnv",
        "answer_format:AnswerOracle",
        "Multi-hop questions about invented encyclopedias; answering them requires searching their pages.",
    ),
    _generated("math:Arithmetic", "MathFamilyEnv", {"family": "arithmetic"}, BASELINE, "math", "Exact arithmetic."),
    _generated("math:Algebra", "MathFamilyEnv", {"family": "algebra"}, BASELINE, "math", "Equations and polynomials."),
    _generated("math:NumberTheory", "MathFamilyEnv", {"family": "number_theory"}, BASELINE, "math", "Number theory."),
    _generated(
        "math:Geometry", "MathFamilyEnv", {"family": "geometry"}, BASELINE, "math", "Lengths, areas and angles."
    ),
    _generated(
        "logic:Rules", "LogicRulesEnv", {}, 0.65, None, "Decide whether a statement follows from facts and rules."
    ),
    _generated(
        "vision:Geometry",
        "VisionFamilyEnv",
        {"family": "geometry"},
        BASELINE,
        "math,vision",
        "Questions about labeled geometric figures.",
    ),
    _generated(
        "vision:Charts",
        "VisionFamilyEnv",
        {"family": "charts"},
        BASELINE,
        "math,vision",
        "Questions about charts and tables.",
    ),
    *HUB_DATASETS,
    _MCPMARK,
    replace(
        _MCPMARK,
        id="mcpmark:Postgres",
        entry_point="gem.envs.mcpmark.mcpmark_env:make_shop",
        description="Change a PostgreSQL database with the tools of an MCP server. Needs PostgreSQL.",
    ),
    *reasoning_gym_specs((FORMAT_ERROR, 1.0)),
]

# Family → (parameter, spec) of ids whose second part is a path or another name, which is the value of the parameter.
PATH_SPECS: dict[str, tuple[str, EnvSpec]] = {
    "mcpmark": (
        "path",
        replace(_MCPMARK, id="mcpmark:PATH", oracle=None, description="Tasks of MCPMark in a checkout."),
    ),
    **{
        family: (
            "path",
            EnvSpec(
                id=f"{family}:PATH",
                entry_point=f"gem.envs.containers.{module}",
                runs="thread",
                reward_range=(0.0, 1.0),
                oracle="gem.envs.containers.container_env:Oracle",
                oracle_sees="state",
                baseline_scores=dict.fromkeys(["constant", "echo", "repeat-last"], 0.0),
                description=f"Tasks in folders of {name}, played in containers. Needs podman or docker.",
            ),
        )
        for family, module, name in (
            ("harbor", "harbor:HarborEnv", "Harbor"),
            ("terminalbench", "terminal_bench:TerminalBenchEnv", "Terminal-Bench"),
        )
    },
    **{
        family: (
            "dataset_name",
            EnvSpec(
                id=f"{family}:PATH",
                entry_point="gem.envs.swe.row_env:SweRowsEnv",
                runs="thread",
                reward_range=(0.0, 1.0),
                oracle="gem.envs.swe.row_env:Oracle",
                oracle_sees="state",
                baseline_scores=dict.fromkeys(["constant", "echo", "repeat-last"], BASELINE),
                description=f"Issues of repositories, from rows as of {name}. Needs git at level ns, or images.",
            ),
        )
        for family, name in (("swebench", "SWE-bench"), ("swegym", "SWE-Gym"))
    },
}
