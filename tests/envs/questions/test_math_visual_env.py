"""Math questions about images."""

import io

import pytest

from gem.envs.questions.math_visual_env import MathVisualEnv, read_image
from gem.errors import BadValue

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def image():
    return Image.new("L", (4, 3), 200)


def encoded(image):
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def test_an_image_is_read_from_every_form_that_datasets_use(image, tmp_path):
    path = tmp_path / "image.png"
    path.write_bytes(encoded(image))
    forms = [image, encoded(image), str(path), {"bytes": encoded(image)}, {"bytes": None, "path": str(path)}]
    read = [read_image(form, "image") for form in forms]
    assert {(each.mode, each.size, each.getpixel((0, 0))) for each in read} == {("RGB", (4, 3), (200, 200, 200))}


@pytest.mark.parametrize("value", [None, 3, {"path": None}])
def test_a_value_that_is_no_image_is_refused(value):
    with pytest.raises(BadValue, match=r"'figure' must hold .*got (None|3)"):
        read_image(value, "figure")


def test_a_broken_image_is_refused():
    with pytest.raises(BadValue, match=r"'figure' is not a readable image"):
        read_image(b"no image", "figure")


@pytest.mark.parametrize(("column", "options"), [("image", {}), ("images", {}), ("figure", {"image_key": "figure"})])
def test_the_observation_holds_the_question_and_its_images(image, column, options):
    row = {"problem": "How wide is it?", "answer": "4", column: [image, image] if column == "images" else image}
    with MathVisualEnv(dataset=[row], **options) as env:
        observation, _ = env.reset(seed=0)
        assert observation["text"].startswith("How wide is it?")
        assert [each.size for each in observation["images"]] == [(4, 3)] * (2 if column == "images" else 1)
        assert env.step(r"\boxed{4}").reward == 1.0
