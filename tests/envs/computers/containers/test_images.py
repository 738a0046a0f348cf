"""Names of images in Dockerfiles, mapped to local ones."""

import pytest

from gem.envs.computers.containers.images import image_map_of, map_dockerfile, map_image
from gem.errors import BadValue

MAP = {"ubuntu:24.04": "localhost/base:1", "python:3.*": "localhost/py:1", "ghcr.io/a/uv:*": "localhost/uv:1"}


@pytest.mark.parametrize(
    ("name", "local"),
    [
        ("ubuntu:24.04", "localhost/base:1"),
        ("docker.io/library/ubuntu:24.04", "localhost/base:1"),
        ("python:3.12-slim", "localhost/py:1"),
        ("ubuntu", "ubuntu"),
        ("other/ubuntu:24.04", "other/ubuntu:24.04"),
        ("host:5000/ubuntu", "host:5000/ubuntu"),
    ],
)
def test_names_are_mapped_exactly_or_by_pattern(name, local):
    assert map_image(name, MAP) == (local, "")


def test_a_name_without_a_tag_is_latest():
    local, note = map_image("debian@sha256:12", {"debian:latest": "x"})
    assert local == "x" and "digest of debian " in note


def test_a_digest_is_kept_if_the_name_is_not_mapped():
    assert map_image("debian@sha256:12", {}) == ("debian@sha256:12", "")


def test_every_image_of_a_dockerfile_is_mapped():
    text = (
        "# FROM nothing\nARG TAG=24.04\nFROM --platform=linux/amd64 ubuntu:${TAG} AS build\nRUN true\n"
        "FROM python:3.12@sha256:00\nCOPY --from=build /a /a\nCOPY --from=0 /b /b\n"
        "COPY --from=ghcr.io/a/uv:0.5 /uv /bin/uv\nRUN --mount=type=bind,from=ghcr.io/a/uv:0.5,target=/x true\n"
    )
    found = map_dockerfile(text, MAP)
    assert found.text.splitlines()[2:] == [
        "FROM --platform=linux/amd64 localhost/base:1 AS build",
        "RUN true",
        "FROM localhost/py:1",
        "COPY --from=build /a /a",
        "COPY --from=0 /b /b",
        "COPY --from=localhost/uv:1 /uv /bin/uv",
        "RUN --mount=type=bind,from=localhost/uv:1,target=/x true",
    ]
    assert found.bases == ("localhost/base:1", "localhost/py:1", "localhost/uv:1")
    [note] = found.notes
    assert "digest of python:3.12 " in note


def test_stages_and_scratch_are_no_images():
    found = map_dockerfile("FROM ubuntu:24.04 as one\nFROM scratch\nFROM one\n", MAP)
    assert found.bases == ("localhost/base:1",)


def test_an_image_from_a_variable_without_a_default_is_refused():
    with pytest.raises(BadValue, match="variable without a default"):
        map_dockerfile("ARG BASE\nFROM $BASE\n", MAP)


def test_the_map_may_be_an_environment_variable(monkeypatch):
    monkeypatch.setenv("GEM_IMAGE_MAP", "ubuntu:24.04=a, python:*=b")
    assert image_map_of(None) == {"ubuntu:24.04": "a", "python:*": "b"}
    assert image_map_of({}) == {}
    monkeypatch.setenv("GEM_IMAGE_MAP", "ubuntu")
    with pytest.raises(BadValue, match="NAME=LOCAL"):
        image_map_of(None)


def test_a_map_that_is_a_text_is_refused():
    with pytest.raises(BadValue, match="image_map"):
        image_map_of("ubuntu=x")
