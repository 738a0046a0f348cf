"""Small copies of the datasets of the Hub that built-in ids use, in their columns and with computable answers."""

from __future__ import annotations

import io
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gem

COUNT = 40  # rows per dataset
PROGRAM = "```python\nn = int(input())\nprint(n * n + 7)\n```"  # the right answer to every task of the code datasets


def is_of_the_hub(spec: Any) -> bool:
    name = str(spec.kwargs.get("dataset_name", ""))
    return "/" in name and not name.startswith("gem:")


SPECS = [spec for spec in gem.list_envs() if is_of_the_hub(spec)]


def write_stub_datasets(folder: Path) -> None:
    """Write all datasets to the layout that the environment variable GEM_DATA expects."""
    for spec in SPECS:
        rows, data = rows_for(spec), folder / spec.kwargs["dataset_name"] / "data"
        data.mkdir(parents=True, exist_ok=True)
        name = f"{spec.kwargs['split']}-00000-of-00001"
        if spec.id == "math:Geometry3K":
            _write_pictures(data / f"{name}.parquet", rows)
        else:
            (data / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


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


def _write_pictures(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write images as the Parquet files of the Hub do: a struct of bytes and path."""
    if not (find_spec("pyarrow") and find_spec("PIL")):
        return  # the environment says which extra is missing
    import pyarrow as pa
    import pyarrow.parquet as pq
    from PIL import Image

    for n, row in enumerate(rows):
        picture = io.BytesIO()
        Image.new("RGB", (8 + n, 8), (n, 0, 0)).save(picture, "png")
        row["images"] = [{"bytes": picture.getvalue(), "path": None}]
    pq.write_table(pa.Table.from_pylist(rows), path)
