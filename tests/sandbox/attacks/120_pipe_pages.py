# CLASS: limits   SEVERITY: should
# EXPECT: the pages that a user's pipes may have remain for other processes of the user.
import fcntl
import os
import time

F_SETPIPE_SZ = 1031
for _ in range(8):
    if os.fork() == 0:
        pipes = []
        try:
            while len(pipes) < 110:
                pipes.append(os.pipe())
                fcntl.fcntl(pipes[-1][1], F_SETPIPE_SZ, 1 << 20)
        except OSError as error:
            print(len(pipes), error, flush=True)
        time.sleep(1.2)
        os._exit(0)
for _ in range(8):
    os.wait()
