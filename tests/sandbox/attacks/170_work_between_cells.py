# CLASS: sessions   SEVERITY: must   CELLS: 2   TIMEOUT: 4
# EXPECT: what a cell leaves behind does not use the processors between cells.
import mmap
import os
import struct
import time

if globals().get("CELL", 0) == 0:
    spent = mmap.mmap(-1, 4096)
    for slot in range(20):
        if os.fork() == 0:
            while True:
                spent[8 * slot : 8 * slot + 8] = struct.pack("d", time.process_time())


def total():
    return sum(struct.unpack("20d", spent[:160]))


if globals().get("CELL", 0) == 0:
    time.sleep(0.3)
    before = total()
elif total() - before > 0.4:
    print("PWNED", total() - before, "s of CPU between cells")
