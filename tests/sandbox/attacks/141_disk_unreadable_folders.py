# CLASS: limits   SEVERITY: must   TIMEOUT: 15
# EXPECT: files count although nobody may list their folder.
import os
import time

for name in ("hidden", "hidden/inner"):
    os.mkdir(name, 0o300)
os.mkdir("closed")
block = bytes(1 << 20)
for number in range(100):
    with open(f"{'closed' if number % 2 else 'hidden/inner'}/f{number}", "wb") as file:
        for _ in range(4):
            file.write(block)
    if number == 8:
        try:
            os.chmod("closed", 0o300)
        except OSError as error:
            print(error)
    time.sleep(0.02)
time.sleep(0.5)
print("PWNED 400 MiB in folders that cannot be listed", flush=True)
