# CLASS: memory   SEVERITY: must   TIMEOUT: 6
# EXPECT: a shared mapping of which all but one page was removed again counts with all the pages that it still holds.
import ctypes
import mmap
import os
import time

libc = ctypes.CDLL(None, use_errno=True)
SIZE, held, kept = 128 << 20, 0, []
try:
    while held < 2600 << 20:
        view = mmap.mmap(-1, SIZE)
        pid = os.fork()
        if not pid:
            view[0:SIZE:4096] = bytes(SIZE // 4096)
            os._exit(0)
        if os.waitpid(pid, 0)[1]:
            break
        address = ctypes.addressof(ctypes.c_char.from_buffer(view))
        if libc.munmap(ctypes.c_void_p(address + 4096), ctypes.c_size_t(SIZE - 4096)):
            break
        kept.append(view)
        held += SIZE
except (OSError, ValueError) as error:
    print(error)
time.sleep(0.5)
print("PWNED" if held > 1536 << 20 else "held", held >> 20, "MiB", flush=True)
os._exit(0)
