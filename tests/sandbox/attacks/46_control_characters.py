# CLASS: host-confusion   SEVERITY: must   REQUIRE: the-end
# EXPECT: NUL, escapes, lone carriage returns, a line without an end and half a character reach the caller as text.
import sys

out = sys.stdout.buffer
out.write(b"\0\0\x1b]0;title\x07\x1b[2J\r\r\x85\xe2\x80\xa8")
out.write(b"A" * 60_000)
out.write(b"the-end\xe2\x82")
