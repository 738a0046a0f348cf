# CLASS: memory   SEVERITY: must   TIMEOUT: 8
# EXPECT: page tables count: one byte read in each 2 MiB of terabytes costs a page each that is in no resident size.
import ctypes
import mmap
import time

libc = ctypes.CDLL(None, use_errno=True)
NORESERVE, NOHUGEPAGE, STEP = 0x4000, 15, 2 << 20


def tables():
    with open("/proc/self/status") as file:
        return sum(int(line.split()[1]) << 10 for line in file if line.startswith("VmPTE"))


held, regions = 0, []
try:
    while held < 2600 << 20:
        region = mmap.mmap(-1, 64 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE, mmap.PROT_READ)
        region.madvise(NOHUGEPAGE)
        regions.append(region)
        region[0 : len(region) : STEP]
        held = tables()
except (OSError, ValueError, MemoryError) as error:
    print(error)

time.sleep(0.5)
print("PWNED" if held > 1536 << 20 else "held", held >> 20, "MiB", flush=True)
