# CLASS: limits   SEVERITY: must   TIMEOUT: 15
# EXPECT: removed files count although only a mapping of memory keeps them.
import mmap
import os
import time

held = []
for number in range(100):
    with open("f", "w+b") as file:
        file.truncate(4 << 20)
        part = mmap.mmap(file.fileno(), 4 << 20)
    os.unlink("f")
    part[::4096] = b"x" * 1024
    held.append(part)
    time.sleep(0.02)
time.sleep(0.5)
print("PWNED 400 MiB in mapped files", flush=True)
