# CLASS: memory   SEVERITY: must   TIMEOUT: 10
# EXPECT: events that nobody reads count as memory of the kernel: inotify queues of long names in several processes.
import ctypes
import os
import time

libc = ctypes.CDLL(None, use_errno=True)
os.mkdir("watched")
queues = []
for _ in range(512):
    fd = libc.inotify_init1(os.O_NONBLOCK)
    if fd < 0 or libc.inotify_add_watch(fd, b"watched", 0x300) < 0:
        break
    queues.append(fd)
start, events = time.monotonic(), 0
names = [f"watched/{n}" + "n" * 240 for n in range(2)]
while events < 16_000 and queues and time.monotonic() - start < 6:
    for name in names:
        os.close(os.open(name, os.O_CREAT))
    for name in names:
        os.unlink(name)
    events += 4
held = 512 * events * len(queues)

time.sleep(0.5)
print("PWNED" if held > 1536 << 20 else "held", held >> 20, "MiB", flush=True)
