# CLASS: limits   SEVERITY: must   TIMEOUT: 15
# EXPECT: files count although their folders are moved while they are counted.
import os
import time

os.makedirs("a/x")
os.makedirs("b")
fd = os.open("a/x", os.O_RDONLY)
if os.fork() == 0:
    while True:
        try:
            os.rename("a/x", "b/x")
            os.rename("b/x", "a/x")
        except OSError:
            pass
block = bytes(1 << 20)
for number in range(100):
    file = os.open(f"f{number}", os.O_CREAT | os.O_WRONLY, dir_fd=fd)
    for _ in range(4):
        os.write(file, block)
    os.close(file)
    time.sleep(0.02)
time.sleep(0.5)
print("PWNED 400 MiB in a moving folder", flush=True)
