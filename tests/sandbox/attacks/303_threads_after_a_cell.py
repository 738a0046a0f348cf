# CLASS: sessions   SEVERITY: should   TIMEOUT: 3   CELLS: 3
# EXPECT: threads that a cell leaves do not compute between cells, whether they need the interpreter's lock or not.
import mmap
import os
import signal
import sys
import time

COUNT = 6


def total():
    return sum(int.from_bytes(used[8 * n : 8 * n + 8], "little") for n in range(COUNT)) / 1000


import hashlib
import threading

if globals().get("CELL") == 0:
    block = bytes(1 << 20)

    def work():
        while True:
            hashlib.sha256(block)

    for _ in range(4):
        threading.Thread(target=work, daemon=True).start()
    time.sleep(0.2)
    last = time.process_time()
elif "CELL" in globals():
    gained = time.process_time() - last
    print("PWNED computed" if gained > 0.6 else "computed", round(gained, 2), "s between cells")
    last = time.process_time()
