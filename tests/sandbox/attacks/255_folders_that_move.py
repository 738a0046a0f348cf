# CLASS: disk   SEVERITY: must   TIMEOUT: 7
# EXPECT: files count although their folders change names so quickly that whoever counts them finds them gone.
import contextlib
import os
import threading
import time

held, block = 0, bytes(4 << 20)
os.mkdir("a"), os.mkdir("b")
fds = []
for n in range(8):
    os.mkdir(f"a/x{n}")
    fds.append(os.open(f"a/x{n}", os.O_RDONLY))


def move():
    while True:
        for n in range(8):
            with contextlib.suppress(OSError):
                os.rename(f"a/x{n}", f"b/y{n}")
        for n in range(8):
            with contextlib.suppress(OSError):
                os.rename(f"b/y{n}", f"a/x{n}")


if not os.fork():
    move()
if not os.fork():
    while True:
        with contextlib.suppress(OSError):
            os.rename("a", "c")
        with contextlib.suppress(OSError):
            os.rename("c", "a")
try:
    for n in range(100):
        fd = os.open(f"f{n}", os.O_CREAT | os.O_WRONLY, dir_fd=fds[n % 8])
        held += os.write(fd, block)
        os.close(fd)
        time.sleep(0.02)
except OSError as error:
    print(error)

time.sleep(1)
print("PWNED" if held > 300 << 20 else "held", held >> 20, "MiB of disk", flush=True)
