"""Specifications of the environments with datasets from the Hugging Face Hub.

Like gem.envs.catalog, of which this is a part, it imports no environment.
"""

from __future__ import annotations

from typing import Any

from gem.envs.spec_defaults import ANSWERS, built_in
from gem.registry import EnvSpec


def _data(
    family: str, entry: str, names: dict[str, tuple[str, str]], text: str, *, extra: str = "data", **kwargs: Any
) -> list[EnvSpec]:
    """Return the specs of environments with datasets from the Hugging Face Hub, which the extra [data] loads.

    ``names`` maps the second part of each id to (dataset, split). Code environments have no oracle, because their tasks
    have tests instead of a gold answer. Short answers are graded by SQuAD's exact match, as in HotpotQA and Search-R1.
    """
    return [
        built_in(
            f"{family}:{name}",
            entry,
            {"dataset_name": dataset, "split": split, **kwargs},
            f"{text} Dataset {dataset}, split {split}.",
            oracle=None if entry == "questions.code_env:CodeEnv" else ANSWERS,
            baseline=None,
            extra=extra,
            runs="thread",
        )
        for name, (dataset, split) in names.items()
    ]


HUB_DATASETS: list[EnvSpec] = [
    *_data(
        "math",
        "questions.math_env:MathEnv",
        {
            "ASDiv2K": ("axon-rl/ASDIV-2k", "train"),
            "GSM8K": ("axon-rl/GSM-8k", "train"),
            "Math12K": ("axon-rl/MATH-12k", "train"),
            "Math8K-3to5": ("axon-rl/MATH-lvl3to5-8k", "train"),
            "Orz57K": ("axon-rl/ORZ-57k", "train"),
            "DeepScaleR40K": ("axon-rl/DeepScaleR-40K", "train"),
        },
        "Math questions.",
        extra="data,math",
    ),
    *_data(
        "math",
        "questions.math_visual_env:MathVisualEnv",
        {"Geometry3K": ("axon-rl/geometry3k", "train")},
        "Geometry questions with figures.",
        extra="data,math,vision",
    ),
    *_data(
        "code",
        "questions.code_env:CodeEnv",
        {
            "CodeContest": ("axon-rl/CodeContest", "train"),
            "Taco8k": ("axon-rl/TACO-8k", "train"),
            "PrimeIntellect15k": ("axon-rl/PrimeIntellect-15k", "train"),
        },
        "Programming tasks, graded by hidden tests.",
    ),
    *_data(
        "qa",
        "questions.qa_env:QaEnv",
        {
            "NaturalQuestions": ("axon-rl/NaturalQuestions", "train"),
            "HotpotQA": ("axon-rl/HotpotQA", "train"),
        },
        "Short-answer questions.",
        question_key="problem",
        reward="squad_em",
    ),
    *_data(
        "logic",
        "questions.qa_env:QaEnv",
        {f"RuleTaker-d{depth}": (f"axon-rl/RuleTaker-d{depth}-70k", "train") for depth in (0, 1, 2, 3, 5)},
        "Decide whether a statement follows from facts and rules.",
        extract_boxed=True,
    ),
    *_data(
        "eval",
        "questions.math_env:MathEnv",
        {
            "MATH500": ("axon-rl/math-eval", "math"),
            "AMC": ("axon-rl/math-eval", "amc"),
            "OlympiadBench": ("axon-rl/math-eval", "olympiad_bench"),
            "Minerva": ("axon-rl/math-eval", "minerva"),
            "AIME24": ("axon-rl/math-eval", "aime24"),
        },
        "Math questions for evaluation.",
        extra="data,math",
    ),
    *_data(
        "eval",
        "questions.code_env:CodeEnv",
        {"CodeContest": ("axon-rl/CodeContest", "test")},
        "Programming tasks for evaluation.",
    ),
    *_data(
        "eval",
        "questions.qa_env:QaEnv",
        {
            "QaOpen": ("google-research-datasets/nq_open", "validation"),
            "2Wiki": ("axon-rl/search-eval", "2wiki"),
            "PopQA": ("axon-rl/search-eval", "popqa"),
            "TriviaQA": ("axon-rl/search-eval", "tq"),
            "HotpotQA": ("axon-rl/search-eval", "hotpotqa"),
            "Bamboogle": ("axon-rl/search-eval", "bamboogle"),
            "NaturalQuestions": ("axon-rl/search-eval", "nq"),
            "Musique": ("axon-rl/search-eval", "musique"),
        },
        "Short-answer questions for evaluation.",
        reward="squad_em",
    ),
]
