# CLASS: output   SEVERITY: must
# EXPECT: the call returns although children in other groups keep writing to the inherited output.
import os

for _ in range(4):
    if os.fork() == 0:
        os.setpgid(0, 0)
        while True:
            os.write(1, b"B" * 4096)
print("main done", flush=True)
os._exit(0)
