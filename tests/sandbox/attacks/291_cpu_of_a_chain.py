# CLASS: cpu   SEVERITY: must   TIMEOUT: 12   CPU: 2
# EXPECT: the time of a chain counts whose links fork the next, in a session of its own, and end after 15 milliseconds.
import mmap
import os
import time

used = mmap.mmap(-1, 8)
if not os.fork():
    while True:
        end = time.process_time() + 0.015
        while time.process_time() < end:
            pass
        total = int.from_bytes(used[:], "little") + 15
        used[:] = total.to_bytes(8, "little")
        if total > 6000:
            os.write(1, b"PWNED 6 s of CPU\n")
            time.sleep(60)
        if os.fork():
            os._exit(0)
        os.setsid()
time.sleep(60)
