"""Names of images in task folders, mapped to local images, because no registry of images is asked."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from gem.errors import BadValue

IMAGE_MAP = "GEM_IMAGE_MAP"  # "ubuntu:24.04=localhost/debian:bookworm,python:*=…", where image_map is not given
_FROM = re.compile(r"^(\s*FROM\s+(?:--\S+\s+)*)(\S+)((?:\s+AS\s+(\S+))?\s*)$", re.IGNORECASE)
_ARG = re.compile(r"^\s*ARG\s+(\w+)=(\S*)\s*$", re.IGNORECASE)
_OTHER = re.compile(r"((?:--from=|[,=]from=))([^\s,]+)")  # COPY --from=IMAGE, RUN --mount=from=IMAGE
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::-([^}]*))?\}|(\w+))")


class MappedDockerfile(NamedTuple):
    """A Dockerfile with local names. bases: the images that it needs. notes: what was ignored."""

    text: str
    bases: tuple[str, ...]
    notes: tuple[str, ...]


def image_map_of(given: Mapping[str, str] | None) -> dict[str, str]:
    """Return a map of names: the given one, else that in GEM_IMAGE_MAP.

    Raises:
        BadValue: the variable has an entry without "=", or what is given is no map of names.
    """
    if given is not None:
        if not isinstance(given, Mapping) or not all(isinstance(x, str) for pair in given.items() for x in pair):
            raise BadValue(f"image_map must map names to names, got {given!r}")
        return dict(given)
    entries = [entry.strip() for entry in os.environ.get(IMAGE_MAP, "").split(",") if entry.strip()]
    if wrong := [entry for entry in entries if "=" not in entry]:
        raise BadValue(f"{IMAGE_MAP} has entries of the form NAME=LOCAL, got {wrong[0]!r}")
    return dict(entry.split("=", 1) for entry in entries)


def map_image(name: str, image_map: Mapping[str, str]) -> tuple[str, str]:
    """Return the local name of an image, and a note or "".

    Keys of the map are names such as "ubuntu:24.04", or patterns such as "python:*". A name without a tag has the tag
    "latest". A digest is ignored, with a note, if the rest of the name is mapped.

    >>> map_image("python:3.12-slim@sha256:0", {"python:*": "localhost/debian:bookworm"})
    ('localhost/debian:bookworm', 'the digest of python:3.12-slim is ignored')
    """
    plain, _, digest = name.partition("@")
    tagged = plain if ":" in plain.rpartition("/")[2] else f"{plain}:latest"
    short = tagged.removeprefix("docker.io/").removeprefix("library/")
    for known, local in image_map.items():
        if known in (name, plain, tagged, short) or fnmatch.fnmatchcase(short, known):
            return local, f"the digest of {plain} is ignored" if digest else ""
    return name, ""


def map_dockerfile(text: str, image_map: Mapping[str, str]) -> MappedDockerfile:
    """Replace the names of images in a Dockerfile by local ones.

    Raises:
        BadValue: the name of an image depends on a variable without a default.
    """
    arguments: dict[str, str] = {}
    stages: set[str] = set()
    bases, notes, lines = [], [], []

    def local(name: str) -> str:
        if name.lower() in stages or name.isdigit() or name == "scratch":
            return name
        name, note = map_image(name, image_map)
        bases.append(name)
        notes.extend([note] if note else [])
        return name

    for line in text.splitlines():
        if (found := _ARG.match(line)) and not stages:
            arguments[found[1]] = found[2].strip("\"'")
        if found := _FROM.match(line):
            line = f"{found[1]}{local(_expanded(found[2], arguments))}{found[3]}"
            stages.add((found[4] or f" {len(stages)}").lower())
        elif re.match(r"\s*(COPY|ADD|RUN)\s", line, re.IGNORECASE):
            line = _OTHER.sub(lambda m: m[1] + local(_expanded(m[2], arguments)), line)
        lines.append(line)
    return MappedDockerfile("\n".join(lines) + "\n", tuple(dict.fromkeys(bases)), tuple(dict.fromkeys(notes)))


def _expanded(name: str, arguments: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        given = arguments.get(found[1] or found[3], found[2])
        if given is None:
            raise BadValue(f"the Dockerfile takes the image {name!r} from a variable without a default")
        return given

    return _VARIABLE.sub(value, name)
