# CLASS: disk   SEVERITY: must   TIMEOUT: 10
# EXPECT: files below 6,000 folders of one letter count, and the next run finds an empty folder in time.
import os
import time

held, block = 0, bytes(4 << 20)
try:
    for n in range(6000):
        os.mkdir("d")
        os.chdir("d")
        if n >= 5900 and n % 10 == 0 or n in (1900, 2100):
            for part in range(10):
                with open(f"f{part}", "wb") as file:
                    held += file.write(block)
                time.sleep(0.02)
except OSError as error:
    print(error)

time.sleep(1)
print("PWNED" if held > 300 << 20 else "held", held >> 20, "MiB of disk", flush=True)
