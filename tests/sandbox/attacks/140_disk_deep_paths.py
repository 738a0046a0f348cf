# CLASS: limits   SEVERITY: must   TIMEOUT: 15
# EXPECT: files count although their path is longer than a path may be.
import os
import time

for _ in range(40):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
block = bytes(1 << 20)
for number in range(100):
    with open(f"f{number}", "wb") as file:
        for _ in range(4):
            file.write(block)
    time.sleep(0.02)
time.sleep(0.5)
print("PWNED 400 MiB below a long path", flush=True)
