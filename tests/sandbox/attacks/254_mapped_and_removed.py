# CLASS: disk   SEVERITY: must   TIMEOUT: 6
# EXPECT: removed files count that are only mapped: written through sparse mappings, with no descriptor left.
import mmap
import os
import time

held, maps, SIZE = 0, [], 8 << 20
try:
    for n in range(50):
        fd = os.open(f"f{n}", os.O_CREAT | os.O_RDWR)
        os.ftruncate(fd, SIZE)
        view = mmap.mmap(fd, SIZE)
        os.unlink(f"f{n}")
        os.close(fd)
        view[0:SIZE:4096] = bytes(SIZE // 4096)
        view.madvise(mmap.MADV_DONTNEED)
        maps.append(view)
        held += SIZE
        time.sleep(0.02)
except (OSError, ValueError) as error:
    print(error)

time.sleep(1)
print("PWNED" if held > 300 << 20 else "held", held >> 20, "MiB of disk", flush=True)
