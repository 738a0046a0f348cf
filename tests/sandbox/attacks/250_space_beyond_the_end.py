# CLASS: disk   SEVERITY: must   TIMEOUT: 6
# EXPECT: space reserved beyond the end of files, whose size is 0, counts against the limit of 64 MiB.
import ctypes
import os
import time

libc = ctypes.CDLL(None, use_errno=True)
held = 0
for n in range(30):
    try:
        fd = os.open(f"f{n}", os.O_CREAT | os.O_RDWR)
    except OSError as error:
        print(error)
        break
    if libc.fallocate(fd, 1, ctypes.c_long(0), ctypes.c_long(16 << 20)):
        print(os.strerror(ctypes.get_errno()))
        break
    held += os.fstat(fd).st_blocks * 512
    os.close(fd)
    time.sleep(0.05)

time.sleep(1)
print("PWNED" if held > 300 << 20 else "held", held >> 20, "MiB of disk", flush=True)
