# CLASS: sessions   SEVERITY: must   CELLS: 2   TIMEOUT: 4
# EXPECT: processes that continue each other, or move to other groups, rest between cells as well.
import mmap
import os
import signal
import struct
import time

if globals().get("CELL", 0) == 0:
    spent = mmap.mmap(-1, 4096)
    pids = []
    for slot in range(8):
        pid = os.fork()
        if pid == 0:
            os.setsid()
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            while True:
                spent[8 * slot : 8 * slot + 8] = struct.pack("d", time.process_time())
                for other in pids:
                    os.kill(other, signal.SIGCONT)
        pids.append(pid)


def total():
    return sum(struct.unpack("8d", spent[:64]))


if globals().get("CELL", 0) == 0:
    time.sleep(0.3)
    before = total()
elif total() - before > 0.4:
    print("PWNED", total() - before, "s of CPU between cells")
