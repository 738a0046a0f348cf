"""Every id over a hub dataset, built from a small local copy in the layout of the hub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gem
from gem.errors import BadValue
from gem.testing import check_env


def is_of_the_hub(spec: Any) -> bool:
    name = str(spec.kwargs.get("dataset_name", ""))
    return "/" in name and not name.startswith("gem:")


SPECS = [spec for spec in gem.list_envs() if is_of_the_hub(spec)]
PUBLISHED = """math:ASDiv2K math:GSM8K math:Math12K math:Math8K-3to5 math:Orz57K math:DeepScaleR40K math:Geometry3K
    code:CodeContest code:Taco8k code:PrimeIntellect15k qa:NaturalQuestions qa:HotpotQA
    logic:RuleTaker-d0 logic:RuleTaker-d1 logic:RuleTaker-d2 logic:RuleTaker-d3 logic:RuleTaker-d5
    eval:MATH500 eval:AMC eval:OlympiadBench eval:Minerva eval:AIME24 eval:CodeContest eval:QaOpen eval:2Wiki
    eval:PopQA eval:TriviaQA eval:HotpotQA eval:Bamboogle eval:NaturalQuestions eval:Musique""".split()  # noqa: SIM905
COUNT = 40  # rows


def rows_for(spec: Any) -> list[dict[str, Any]]:
    """Return rows with the columns of the dataset and answers that can be computed from the question."""
    entry = spec.entry_point.partition(":")[2]
    if entry == "CodeEnv":
        tests = [{"inputs": [f"{n}\n"], "outputs": [f"{n * n + 7}\n"]} for n in range(COUNT)]
        return [{"problem": f"Read n and print n*n+7. Task {n}.", "tests": json.dumps(t)} for n, t in enumerate(tests)]
    if entry == "QaEnv":
        listed = spec.id != "qa:HotpotQA" and "RuleTaker" not in spec.id
        golds = [f"Answerville {n}" for n in range(COUNT)]
        question = "problem" if spec.id.startswith("qa:") else "question"  # the columns of the datasets
        return [{question: f"Which town has number {n}?", "answer": [g] if listed else g} for n, g in enumerate(golds)]
    return [{"problem": f"What is ${n} \\cdot 1009$?", "answer": str(n * 1009)} for n in range(COUNT)]


def answer_of(env: Any) -> str:
    if hasattr(env, "format"):
        written: str = env.format.write(env.answer if isinstance(env.answer, str) else env.answer[0])
        return written
    return "```python\nn = int(input())\nprint(n * n + 7)\n```"


@pytest.fixture
def local_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for spec in SPECS:
        rows, folder = rows_for(spec), tmp_path / spec.kwargs["dataset_name"] / "data"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{spec.kwargs['split']}-00000-of-00001"
        if spec.id == "math:Geometry3K":
            write_pictures(folder / f"{name}.parquet", rows)
        else:
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    monkeypatch.setenv("GEM_DATA", str(tmp_path))
    return tmp_path


def write_pictures(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write images as the Parquet files of the hub do: a struct of bytes and path."""
    import io

    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pil = pytest.importorskip("PIL.Image")
    for n, row in enumerate(rows):
        picture = io.BytesIO()
        pil.new("RGB", (8 + n, 8), (n, 0, 0)).save(picture, "png")
        row["images"] = [{"bytes": picture.getvalue(), "path": None}]
    pq.write_table(pa.Table.from_pylist(rows), path)


def make(env_id: str) -> Any:
    pytest.importorskip("latex2sympy2_extended", reason="needs the extra [math]")
    pytest.importorskip("PIL", reason="needs the extra [vision]")
    pytest.importorskip("pyarrow", reason="needs the extra [data]")
    return gem.make(env_id)


def test_all_published_ids_over_data_sets_are_registered():
    assert {spec.id for spec in SPECS} >= set(PUBLISHED)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_the_gold_answer_of_every_row_scores_one_and_another_answer_zero(spec, local_copies):
    with make(spec.id) as env:
        for idx in range(0, COUNT, 1 if hasattr(env, "format") else 20):
            observation, info = env.reset(idx=idx)
            assert info["idx"] == idx
            if spec.id == "math:Geometry3K":
                assert observation["images"][0].size == (8 + idx, 8)
            step = env.step(answer_of(env))
            assert (step.reward, step.terminated, step.truncated, step.info["correct"]) == (1.0, True, False, True)
            env.reset(idx=(idx + 1) % COUNT)
            other = answer_of(env)
            env.reset(idx=idx)
            assert "```" in other or env.step(other).reward == 0.0


@pytest.mark.parametrize("env_id", ["math:GSM8K", "qa:HotpotQA", "logic:RuleTaker-d3", "math:Geometry3K"])
def test_environments_over_data_sets_pass_check_env(env_id, local_copies):
    make(env_id).close()
    report = check_env(env_id)
    assert report.ok, report.to_text(only_failed=True)


def test_an_evaluation_visits_every_task_once_on_any_number_of_slots(local_copies):
    from gem.policies import ScriptedPolicy
    from gem.rollout import play_seeds

    make("eval:MATH500").close()
    for slots in (1, 3, 7):
        with gem.make_vec("eval:MATH500", num_envs=slots, shuffle=False, autoreset="disabled") as vec_env:
            played = play_seeds(vec_env, ScriptedPolicy([r"\boxed{0}"]), range(COUNT))
        seen = [trajectory.turns[0].observation for trajectory in played]
        assert len(set(seen)) == COUNT


def test_an_id_without_its_data_set_explains_in_one_line_how_to_provide_it(monkeypatch):
    monkeypatch.delenv("GEM_DATA", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    pytest.importorskip("latex2sympy2_extended", reason="needs the extra [math]")
    with pytest.raises(BadValue, match=r"axon-rl/GSM-8k.*hub.*GEM_DATA/axon-rl/GSM-8k.*dataset=") as caught:
        gem.make("math:GSM8K")
    assert "\n" not in str(caught.value)
