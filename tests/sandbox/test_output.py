"""Reading what runs send: tiny writes do not wake the reader each time, and hostile messages are errors."""

import base64
import contextlib
import os
import time

import pytest

from gem.errors import SandboxError
from gem.sandbox import output
from gem.sandbox.command.sandbox import RelayOutput
from gem.sandbox.containers.machine import _parsed
from gem.sandbox.containers.shell import ShellOutput
from gem.sandbox.forkserver.host.session import _decoded
from gem.sandbox.machine import FileEntry, unpacked
from gem.sandbox.machine_protocol import pack

HOSTILE = {
    "deep": b"[" * 200_000,
    "deep and closed": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "a long number": b"9" * 100_000,
    "items": b"[" + b"1," * 2_000_000 + b"1]",
    "no json": b"{",
    "no utf-8": b'"\xff"',
    "nothing": b"",
}


def test_a_pipe_that_held_little_is_not_read_again_at_once_and_delays_no_result(monkeypatch):
    monkeypatch.setattr(output, "PAUSE_S", 1000.0)
    with contextlib.closing(output.OutputReader()) as reader:
        sinks = []
        source = reader.pipe(100, sinks)
        (sink,) = sinks
        result, sender = os.pipe()
        reader.watch(result)
        os.write(sink, b"a")
        assert reader.wait(time.monotonic() + 500) == []
        os.write(sink, b"b")
        os.write(sender, b"done")
        assert reader.wait(time.monotonic() + 500) == [result]
        assert reader.captures[source].text() == "a"
        reader.drain(source)
        assert reader.captures[source].text() == "ab"
    for fd in (sink, result, sender):
        os.close(fd)


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_message_is_an_error_of_the_sandbox_that_names_its_source(data):
    with pytest.raises(SandboxError, match=r"^an answer of a machine "):
        output.decoded_message(data, "an answer of a machine")


def test_names_of_files_in_messages_need_not_be_utf_8():
    assert output.decoded_message(b'{"folder": "/\\udcff"}', "an answer") == {"folder": "/\udcff"}
    entry = FileEntry("/\udcff", b"x")
    assert unpacked(pack([entry])) == [entry]


@pytest.mark.parametrize(
    "archive",
    [
        *(data + b"\n" for data in HOSTILE.values()),
        b"",
        b"1\n",
        b"[1]\n",
        b'[["/a", "file", 420, 0]]\n',
        b'[["/a", "file", 420, 0, "1"]]\nx',
        b'[[{"x": 1}, "file", 420, 0, 1]]\nx',
        b'[["/a", "file", 420, 0, 5]]\nx',
        b'[["/a", "file", 420, 1e400, 1]]\nx',
    ],
)
def test_an_archive_that_is_not_one_is_an_error_of_the_sandbox(archive):
    with pytest.raises(SandboxError, match="a machine sent an invalid archive"):
        unpacked(archive)


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_hostile_lines_of_a_relay_are_no_messages_and_its_next_ones_are_read(data):
    relay = RelayOutput(1000, 1000)
    relay.add(data + b'\n{"answer": "' + base64.b64encode(data[:5000] + b"\n") + b'"}\n')
    relay.add(b'{"stdout": "' + base64.b64encode(b"text") + b'"}\n')
    assert (relay.out.text(), relay.exit_code) == ("text", None)


@pytest.mark.parametrize("data", [HOSTILE["deep"][:4000], b"[" * 2000 + b"]" * 2000, b"1", b"{}"])
def test_a_forged_answer_of_an_interpreter_is_no_answer(data):
    fields = b'"exit_code": 0, "cpu_s": 1, "out_of_memory": false'
    assert _decoded(b"{" + fields + b"}").exit_code == 0
    assert _decoded(data) is _decoded(b"{" + fields + b', "x": ' + data[:3900] + b"\n") is None


@pytest.mark.parametrize(
    ("code", "reported"), [("7", 7), ("\u00b2", 1), ("9" * 5000, 1), ("-1", 1), ("", 1), ("0x1", 1)]
)
def test_numbers_that_a_shell_in_a_container_reports_may_be_forged(code, reported):
    shell = ShellOutput(100, "mark")
    shell.add(f"\nmark\n{code}\n/proc/1 /proc/12 {code}\n/folder\nexports\nmark end\n".encode())
    assert shell.report[0] == reported and shell.report[1] == "/folder" and shell.report[2] >= {1, 12}
    assert _parsed("\u00b2 (x) S 1 1") is None and _parsed("7 (x) S 3 1") == (7, 3)
