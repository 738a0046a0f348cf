# CLASS: starvation   SEVERITY: must   COPIES: 2
# EXPECT: copying memory in many processes delays other runs no more than spinning does.
import os

for _ in range(12):
    try:
        if os.fork() == 0:
            break
    except OSError:
        break
block = bytearray(16 << 20)
while True:
    block[:] = bytes(len(block))
