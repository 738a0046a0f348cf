# CLASS: freeze   SEVERITY: must   TIMEOUT: 2
# EXPECT: stderr of empty lines, of every kind of line end, and without any is handled within the limit.
import os

ends = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
os.write(2, ("MemoryError:" + ends).encode() * 700 + b"\n" * 60_000 + b"\r" * 60_000 + b"x")
os._exit(1)
