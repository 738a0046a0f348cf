"""Reading the output of programs: tiny writes do not wake the reader each time, and delay no result."""

import contextlib
import os
import time

from gem.sandbox import output


def test_a_pipe_that_held_little_is_not_read_again_at_once_and_delays_no_result(monkeypatch):
    monkeypatch.setattr(output, "PAUSE_S", 1000.0)
    with contextlib.closing(output.OutputReader()) as reader:
        source, sink = reader.pipe(100)
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
