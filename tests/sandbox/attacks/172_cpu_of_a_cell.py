# CLASS: sessions   SEVERITY: must   CELLS: 2   CPU: 1   TIMEOUT: 10
# EXPECT: each cell has a limit of CPU time, which its processes share.
import os
import time

read, write = os.pipe()
for _ in range(4):
    if os.fork() == 0:
        while time.process_time() < 1:
            pass
        os.write(write, b"x")
        os._exit(0)
done = 0
while done < 4:
    done += len(os.read(read, 4))
print("PWNED", done, "s of CPU", flush=True)
