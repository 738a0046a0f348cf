# CLASS: limits   SEVERITY: must   TESTS: 4   TIMEOUT: 15
# EXPECT: one test of a program has the disk limit of a run.
import sys
import time

if sys.stdin.readline().strip() not in ("", "0"):
    sys.exit()  # only the first test takes what it can

written = 0
try:
    while written < 240:
        with open(f"f{written}", "wb") as file:
            for _ in range(8):
                file.write(bytes(1 << 20))
                written += 1
        time.sleep(0.02)
except OSError as error:
    print(error)
time.sleep(0.3)
print("PWNED" if written >= 240 else "wrote", written, "MiB", flush=True)
