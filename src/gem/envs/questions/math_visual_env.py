r"""Math questions about images: MathEnv with images in the observation.

Observation  ``{"text": question with the answer format, "images": [PIL image, …]}``.

Everything else is as in math_env.py. Images in a row may be PIL images, bytes of an image file, paths, or
``{"bytes": …}`` as in Parquet files of the Hugging Face hub.
"""

from __future__ import annotations

from typing import Any

from gem._internal.inbound import open_image
from gem._internal.text import short_repr
from gem.datasets import Row
from gem.envs.dataset_env import bad_column
from gem.envs.questions.answer_format import Kind
from gem.envs.questions.math_env import MathEnv
from gem.errors import BadValue, require


class MathVisualEnv(MathEnv):
    """See the module docstring.

    Args:
        image_key: column with an image or a list of images. With the default, the column "image" is used if there is
            no column "images".
        Others: see MathEnv.

    Raises:
        BadValue: a value is out of range.
    """

    ignored_kwargs = MathEnv.ignored_kwargs

    def __init__(
        self,
        dataset_name: str = "",
        split: str | None = None,
        dataset: Any = None,
        image_key: str = "images",
        question_key: str = "problem",
        answer_key: str = "answer",
        seed: int | None = None,
        use_mp: bool = True,
        *,
        use_format_error_reward: bool = True,
        shuffle: bool = True,
        eval: bool = False,
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
            use_format_error_reward,
            seed,
            use_mp,
            shuffle=shuffle,
            eval=eval,
            skip_bad_rows=skip_bad_rows,
            streaming=streaming,
            answer_format=answer_format,
            timeout=timeout,
        )

    def open(self, row: Row) -> dict[str, Any]:
        text = super().open(row)
        column = "image" if self.image_key == "images" and "images" not in row else self.image_key
        if column not in row:
            raise bad_column(row, self.image_key, "image_key", "must hold an image")
        value = row[column]
        values = value if isinstance(value, (list, tuple)) else [value]
        return {"text": text, "images": [read_image(image, column) for image in values]}


def read_image(value: Any, column: str) -> Any:
    """Convert a value of a row to an RGB PIL image.

    Raises:
        BadValue: the value is not an image.
        MissingDependency: the extra [vision] is not installed.
    """
    pil = require("PIL.Image", extra="vision")
    if isinstance(value, dict) and value.get("bytes") is not None:
        value = value["bytes"]
    elif isinstance(value, dict):
        value = value.get("path")
    if isinstance(value, pil.Image):
        return value.convert("RGB")
    if not isinstance(value, (bytes, str)):
        kinds = "a PIL image, bytes, a path or {'bytes': …}"
        raise BadValue(f"the column {column!r} must hold an image or a list ({kinds}), got {short_repr(value, 80)}")
    image = open_image(value, f"the image in the column {column!r}")
    image.info.pop("transparency", None)  # convert() leaves it out in any case, with a warning for some images
    return image.convert("RGB")
