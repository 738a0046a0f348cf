# KIND: benign SEVERITY: must CLASS: benign STDIN: big EXPECT_OUT: 3000000_18000000_1_2
import io
import os
import sys

first = sys.stdin.buffer.readline()
rest = sys.stdin.buffer.read()
lines = rest.count(b"\n") + 1
fast = io.BytesIO(first)
os.write(1, f"{lines} {len(first) + len(rest)} ".encode())
sys.stdout.buffer.write(fast.readline()[:3])
sys.stdout.buffer.flush()
