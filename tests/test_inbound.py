"""The readers of what comes from outside: bounds, typed errors, and values that are those of the json module."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import random
import sys
import zipfile
import zlib
from decimal import Decimal
from pathlib import Path

import pytest

from gem._internal import inbound
from gem._internal.inbound import (
    FILE,
    Bounds,
    check_json,
    check_value,
    inflate,
    loads,
    open_image,
    read_bytes,
    read_lines,
    read_member,
    read_toml,
    read_yaml,
)
from gem.errors import BadInput, MissingDependency

SMALL = Bounds(1000, 4, 20)


def refused(data, bounds=SMALL, **options) -> BadInput:
    with pytest.raises(BadInput) as found:
        loads(data, "the reply", bounds, **options)
    assert str(found.value).startswith("the reply ")
    return found.value


@pytest.mark.parametrize(
    ("text", "limit", "value"),
    [
        ("[" * 5 + "]" * 5, 4, 5),
        ("[" * 100, 4, 100),
        ('{"a": ' * 5 + "1" + "}" * 5, 4, 5),
        ("[" + "[]," * 12 + "1]", 20, 25),
        ("[" + "1," * 30 + "1]", 20, 31),
        ('"' + "x" * 1000 + '"', 1000, 1002),
        ("1" * 4301, 4300, None),
    ],
)
def test_a_document_above_a_bound_is_an_error_with_the_limit_and_the_value(text, limit, value):
    error = refused(text, SMALL if len(text) < 1100 else inbound.FILE)
    assert (error.source, error.limit, error.value) == ("the reply", limit, value)
    assert f"{limit}" in str(error).replace(",", "")


@pytest.mark.parametrize(
    "value",
    [
        "[[[[[[[[",
        'a "quoted [[[[[[ text',
        "ends with a backslash \\",
        '\\"[[[[[[',
        ["]]]]]", '[[[[[["', "{{{{{{\\"],
        {'key [[[[[["': "[,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,"},
    ],
)
def test_brackets_and_commas_in_strings_are_not_counted(value):
    assert loads(json.dumps(value), "a file", SMALL) == value


def test_a_document_at_the_bounds_is_read():
    assert loads("[[[[1]]]]", "a file", SMALL) == [[[[1]]]]
    assert len(loads("[" + "1," * 19 + "1]", "a file", SMALL)) == 20


def test_depth_is_found_as_an_ordinary_parser_finds_it_in_random_documents():
    rng = random.Random(5)

    def document(depth):
        kind = rng.randrange(4) if depth else 3
        if kind == 0:
            return [document(depth - 1) for _ in range(rng.randrange(4))]
        if kind == 1:
            return {rng.choice(['"', "[", "\\", "}", "k"]) * n: document(depth - 1) for n in range(rng.randrange(4))}
        return "".join(rng.choices('[]{},"\\ab\n', k=rng.randrange(9)))

    def depth_of(value):
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
        return 0 if parts is None else 1 + max(map(depth_of, parts), default=0)

    for _ in range(2000):
        text, value = "", document(6)
        text = json.dumps(value)
        deep = depth_of(value)
        check_json(text.encode(), "a file", Bounds(10_000, deep, 10_000))
        if deep > 1:
            with pytest.raises(BadInput):
                check_json(text.encode(), "a file", Bounds(10_000, deep - 1, 10_000))


@pytest.mark.parametrize(
    "text", ["NaN", "-Infinity", "1e400", "-0", "1" * 4300, '"\\u0000"', "[1, 2.50]", " {} ", '"√"']
)
def test_a_value_is_that_of_the_json_module(text):
    assert repr(loads(text, "a file")) == repr(json.loads(text)) == repr(loads(text.encode(), "a file"))


@pytest.mark.parametrize("text", ["", "[1,]", "01", "nul", '{"a" 1}', '"\t"', "1 2", "{'a': 1}"])
def test_what_is_not_json_is_an_error_without_a_limit(text):
    error = refused(text)
    assert error.limit is None
    assert "is not JSON" in str(error)


def test_bytes_that_are_not_utf8_are_an_error():
    assert "is not UTF-8" in str(refused(b'"\xff"'))


def test_lone_surrogates_are_replaced_and_counted(caplog):
    text = r'{"\ud800": ["a\udfff\ud800", "\ud83d\ude00"]}'
    assert loads(text, "a reply") == {"\ufffd": ["a\ufffd\ufffd", "\U0001f600"]}
    assert "a reply: 3 lone surrogates replaced" in caplog.text
    assert loads(text, "a record", keep_surrogates=True) == json.loads(text)


def test_an_integer_of_any_length_is_exact_where_it_is_wanted():
    assert loads("[" + "9" * 5000 + "]", "a row", long_integers=True) == [Decimal("9" * 5000)]


def test_an_error_survives_pickling():
    error = pickle.loads(pickle.dumps(refused("[" * 9)))
    assert (error.source, error.limit, error.value, "deep" in str(error)) == ("the reply", 4, 9, True)


def test_a_file_above_the_bound_is_not_read_whole(tmp_path):
    (tmp_path / "large").write_bytes(b"x" * 1001)
    with pytest.raises(BadInput, match="1,001 bytes; at most 1,000"):
        read_bytes(tmp_path / "large", SMALL)
    with Path("/dev/zero").open("rb") as endless, pytest.raises(BadInput, match="line 1 has 1,001 bytes"):
        list(read_lines(endless, "a file", SMALL))


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 5000 + "]" * 5000,
        "a = " + "{b = " * 5000 + "1" + "}" * 5000,
        ".".join("a" * 400) + " = 1",
        "[" + ".".join("a" * 400) + "]",
        "a = [" + "1," * 20_000 + "]",
        "a = " + "1" * 5000,
        "a = '" + "x" * (1 << 20) + "'",
        "a = \udcff",
    ],
)
def test_toml_above_the_bounds_is_an_error(text, tmp_path):
    pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
    file = tmp_path / "suite.toml"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(BadInput, match=r"suite\.toml"):
        read_toml(file, extra="eval")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 3000 + "]" * 3000,
        "a: &a [1,1,1,1,1,1,1,1,1,1]\n"
        + "".join(f"{b}: &{b} [{','.join(['*' + a] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
        "a: &a [*a]",
        "!!python/object/apply:os.system ['true']",
        "a: '\x01'",
    ],
    ids=["deep", "aliases of aliases", "a list in itself", "an object", "a control character"],
)
def test_yaml_above_the_bounds_is_an_error(text, tmp_path):
    pytest.importorskip("yaml")
    (tmp_path / "task.yaml").write_text(text)
    with pytest.raises(BadInput, match=r"task\.yaml"):
        read_yaml(tmp_path / "task.yaml", extra="containers")


def test_the_parts_of_a_value_are_counted_as_often_as_they_occur():
    shared = [1] * 10
    check_value([shared, shared], "data", Bounds(0, 2, 22))
    with pytest.raises(BadInput, match="more than 21 items"):
        check_value([shared, shared], "data", Bounds(0, 2, 21))


def saved(kind, size=(8, 8), mode="RGB", **options):
    Image = pytest.importorskip("PIL.Image")
    buffer = io.BytesIO()
    Image.new(mode, size).save(buffer, kind, **options)
    return buffer.getvalue()


def test_an_image_of_a_known_format_is_read_whole():
    assert open_image(saved("PNG"), "an image").size == (8, 8)
    assert open_image(saved("JPEG"), "an image").getpixel((0, 0)) == (0, 0, 0)


@pytest.mark.parametrize(
    "written",
    [
        lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(/tmp/out) (w) file\n",
        lambda: saved("ICO"),
        lambda: saved("PDF"),
        lambda: b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        lambda: saved("PNG")[:40],
        lambda: saved("JPEG")[:300],
        bytes,
    ],
    ids=["EPS", "ICO", "PDF", "SVG", "cut PNG", "cut JPEG", "nothing"],
)
def test_another_or_damaged_image_is_an_error(written):
    pytest.importorskip("PIL")
    with pytest.raises(BadInput, match="an image is not a readable image"):
        open_image(written(), "an image")


def test_pixels_are_counted_before_they_are_decoded():
    with pytest.raises(BadInput, match="72,000,000 pixels; at most"):
        open_image(saved("PNG", (9_000, 8_000), "1"), "an image")


def test_the_frames_of_an_image_count_together():
    Image = pytest.importorskip("PIL.Image")
    buffer = io.BytesIO()
    frames = [Image.new("L", (8, 8), 50 * shade) for shade in range(5)]
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:])
    with pytest.raises(BadInput, match="320 pixels"):
        open_image(buffer.getvalue(), "an image", most=4 * 64)


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_compressed_data_is_read_up_to_the_limit(pack):
    assert inflate(pack(b"x" * 1000), "a body", 1000) == b"x" * 1000
    with pytest.raises(BadInput, match="at most 1,000"):
        inflate(pack(b"x" * 1001), "a body", 1000)
    with pytest.raises(BadInput, match="cut off"):
        inflate(pack(b"x" * 1000)[:-1], "a body", 1000)
    with pytest.raises(BadInput, match="invalid"):
        inflate(b"no such data", "a body", 1000)


def test_the_members_of_a_gzip_file_count_together():
    packed = gzip.compress(b"x" * 400)
    assert inflate(packed * 2, "a body", 1000) == b"x" * 800
    with pytest.raises(BadInput, match="at most 1,000"):
        inflate(packed * 3, "a body", 1000)


def member_of(path, name, bounds=SMALL):
    with zipfile.ZipFile(path) as archive:
        return read_member(archive, name, bounds, extra="eval")


def test_a_member_of_an_archive_is_read_up_to_the_limit(tmp_path):
    with zipfile.ZipFile(tmp_path / "log.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("large", b"x" * 1001)
        archive.writestr("small", b"x")
        archive.writestr("other", b"x", compress_type=zipfile.ZIP_LZMA)  # which zipfile decompresses whole
    assert member_of(tmp_path / "log.zip", "small") == b"x"
    for name, why in [("large", "at most 1,000"), ("missing", "cannot be read"), ("other", "compression 14")]:
        with pytest.raises(BadInput, match=why):
            member_of(tmp_path / "log.zip", name)


def with_zstandard(path, members, cut=0):
    """Write a zip archive whose members are compressed with zstandard, and lack their last bytes; each lists frames."""
    zstd = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    packed = {name: b"".join(map(zstd.compress, frames)) for name, frames in members.items()}
    packed = {name: data[: len(data) - cut] for name, data in packed.items()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in packed.items():
            archive.writestr(name, data)
        for name, frames in members.items():  # what the directory at the end of the archive says
            info = archive.getinfo(name)
            info.compress_type, info.CRC, info.file_size = 93, zlib.crc32(b"".join(frames)), len(b"".join(frames))
    return path


def test_a_member_compressed_with_zstandard_is_read_up_to_the_limit(tmp_path):
    path = with_zstandard(
        tmp_path / "log.zip",
        {"small": [b"x" * 999], "frames": [b"ab", b"cd"], "large": [b"x" * 1001], "bomb": [b"x" * (32 << 20)] * 3},
    )
    assert member_of(path, "small") == b"x" * 999 and member_of(path, "frames") == b"abcd"
    for name in ("large", "bomb"):
        with pytest.raises(BadInput, match="at most 1,000"):
            member_of(path, name)
    with pytest.raises(BadInput, match="at most 4,194,304"):  # as far as so few bytes may grow
        member_of(path, "bomb", FILE)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda data: data.replace(b"abcabc", b"abcabd"), "damaged|invalid"),
        (lambda data: data.replace(b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfe"), "invalid compressed data"),
    ],
)
def test_a_damaged_member_compressed_with_zstandard_is_an_error(damage, why, tmp_path):
    path = with_zstandard(tmp_path / "log.zip", {"a": [b"abcabc"]})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(BadInput, match=why):
        member_of(path, "a")


def test_a_member_compressed_with_zstandard_that_is_cut_off_is_an_error(tmp_path):
    path = with_zstandard(tmp_path / "log.zip", {"a": [b"abcabc"]}, cut=3)
    with pytest.raises(BadInput, match="cut off"):
        member_of(path, "a")


def test_zstandard_without_its_library_names_what_to_install(tmp_path, monkeypatch):
    path = with_zstandard(tmp_path / "log.zip", {"a": [b"abc"]})
    for name in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependency, match=r"zstd is required"):
        member_of(path, "a")
