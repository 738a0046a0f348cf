# CLASS: limits   SEVERITY: must   TIMEOUT: 6   TESTS: 3
# EXPECT: one test of a program has the disk of a run, 64 MiB, in all of its folders together.
import os
import tempfile
import time

held, block = 0, bytes(1 << 20)
places = [".", tempfile.gettempdir(), "/tmp", "/dev/shm", os.path.expanduser("~")]
try:
    for n in range(300):
        for place in places:
            try:
                with open(f"{place}/f{n}", "wb") as file:
                    held += file.write(block)
            except PermissionError:
                pass
        time.sleep(0.01)
        if held > 300 << 20:
            break
except OSError as error:
    print(error)
time.sleep(0.6)
print("PWNED" if held > 200 << 20 else "wrote", held >> 20, "MiB", flush=True)
