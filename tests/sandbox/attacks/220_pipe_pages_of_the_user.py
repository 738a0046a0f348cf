# CLASS: resources   SEVERITY: should   TIMEOUT: 6
# EXPECT: pipes of the largest size take at most half of the pages that the kernel allows the user in total.
import fcntl
import os

F_SETPIPE_SZ = 1031
try:
    with open("/proc/sys/fs/pipe-user-pages-soft") as file:
        allowed = int(file.read()) * os.sysconf("SC_PAGESIZE")
except OSError:
    allowed = 64 << 20
held = 0
pipes = []
try:
    while held < 2 * allowed:
        read, write = os.pipe()
        pipes.append((read, write))
        size = 1 << 16
        for wanted in (1 << 20, 1 << 18):
            try:
                size = fcntl.fcntl(write, F_SETPIPE_SZ, wanted)
                break
            except OSError:
                pass
        os.set_blocking(write, False)
        held += os.write(write, bytes(size))
except OSError as error:
    print(error)
print("PWNED filled" if 2 * held > allowed else "filled", held, "of", allowed, "bytes of pipes")
