# CLASS: signals   SEVERITY: must
# EXPECT: a signal to the own process group, by any call, ends at most the run: not the server that forked it, nor others.
import os
import signal

print("start", flush=True)
for deadly in (signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL):
    for send, group in ((os.kill, 0), (os.killpg, 0), (os.killpg, os.getpgrp())):
        if os.fork() == 0:
            try:
                send(group, deadly)
            except OSError as error:
                print(deadly, error, flush=True)
            os._exit(0)
