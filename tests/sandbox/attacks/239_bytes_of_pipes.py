# CLASS: memory   SEVERITY: must   TIMEOUT: 8
# EXPECT: full pipes of forty processes, each of the largest size that it gets, count as memory of the run.
import fcntl
import mmap
import os
import time

counts = mmap.mmap(-1, 4096)
F_SETPIPE_SZ = 1031
for n in range(40):
    try:
        pid = os.fork()
    except OSError as error:
        print(error)
        break
    if not pid:
        sent = 0
        try:
            while sent < 66 << 20:
                read, write = os.pipe()
                os.set_blocking(write, False)
                for size in (1 << 20, 1 << 18, 1 << 16):
                    try:
                        fcntl.fcntl(write, F_SETPIPE_SZ, size)
                        break
                    except OSError:
                        pass
                sent += os.write(write, bytes(1 << 20))
                counts[8 * n : 8 * n + 8] = sent.to_bytes(8, "little")
        except OSError:
            pass
        time.sleep(60)
end, held = time.monotonic() + 4, 0
while held < 2400 << 20 and time.monotonic() < end:
    time.sleep(0.05)
    held = sum(int.from_bytes(counts[8 * n : 8 * n + 8], "little") for n in range(40))

time.sleep(0.5)
print("PWNED" if held > 1536 << 20 else "held", held >> 20, "MiB", flush=True)
