r"""Questions of mathematics about pictures: MathEnv, with images in the observation.

Observation  ``{"text": question and how to answer, "images": [PIL image, …]}``.

Everything else is as in gem.envs.math_env. A row's images are PIL images, bytes of a picture file, ``{"bytes": …}`` as
Parquet files of the hub have it, or paths.
"""

from __future__ import annotations

import io
from typing import Any

from gem.datasets import Row
from gem.envs.answer_format import Kind
from gem.envs.math_env import MathEnv
from gem.errors import BadValue, require


class MathVisualEnv(MathEnv):
    """See the module docstring.

    Args:
        image_key: column of a row's image, or list of images; the default also finds "images".
        Others: see MathEnv.

    Raises BadValue for a value out of its range.
    """

    def __init__(
        self,
        dataset_name: str = "",
        split: str | None = None,
        dataset: Any = None,
        question_key: str = "problem",
        answer_key: str = "answer",
        seed: int | None = None,
        use_mp: bool = True,
        *,
        image_key: str = "image",
        shuffle: bool = True,
        skip_bad_rows: bool | None = None,
        streaming: bool = False,
        answer_format: Kind = "boxed",
        timeout: float | None = None,
    ) -> None:
        self.image_key = image_key
        super().__init__(
            dataset_name,
            split,
            dataset,
            question_key,
            answer_key,
            seed,
            use_mp,
            shuffle=shuffle,
            skip_bad_rows=skip_bad_rows,
            streaming=streaming,
            answer_format=answer_format,
            timeout=timeout,
        )

    def open(self, row: Row) -> dict[str, Any]:
        text = super().open(row)
        column = "images" if self.image_key == "image" and "image" not in row else self.image_key
        value = row.get(column)
        values = value if isinstance(value, (list, tuple)) else [value]
        return {"text": text, "images": [read_image(image, column) for image in values]}


def read_image(value: Any, column: str) -> Any:
    """A PIL image, RGB. Raises BadValue for what is no picture, MissingDependency without the extra [vision]."""
    pil = require("PIL.Image", extra="vision")
    if isinstance(value, dict) and value.get("bytes") is not None:
        value = value["bytes"]
    elif isinstance(value, dict):
        value = value.get("path")
    if isinstance(value, pil.Image):
        return value.convert("RGB")
    if not isinstance(value, (bytes, str)):
        raise BadValue(f"the column {column!r} should hold a picture, got {type(value).__name__}")
    try:
        with pil.open(io.BytesIO(value) if isinstance(value, bytes) else value) as image:
            return image.convert("RGB")
    except (OSError, ValueError, SyntaxError) as e:  # what PIL raises for broken files
        raise BadValue(f"the column {column!r} holds no picture that can be read: {e}") from e
