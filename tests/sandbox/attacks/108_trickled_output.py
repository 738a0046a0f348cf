# CLASS: freeze   SEVERITY: must   TIMEOUT: 4
# EXPECT: millions of tiny writes cost the host little, as reading them wakes it each time.
import os

os.set_blocking(1, True)
for _ in range(6):
    if os.fork() == 0:
        break
while True:
    try:
        os.write(1, b"\n")
        os.write(2, b"\xff")
    except OSError:
        os._exit(0)
