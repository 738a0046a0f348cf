# CLASS: processes   SEVERITY: must   AFTER: 4
# EXPECT: a daemon, forked twice into its own session, is dead before it can act.
import os
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 64)
        time.sleep(3)
        for path in ("/tmp/daemon_was_here", os.path.expanduser("~/daemon_was_here"), "/tmp/v/home/daemon_was_here"):
            try:
                open(path, "w").close()
            except OSError:
                pass
        time.sleep(600)
    os._exit(0)
os.wait()
print("main done", flush=True)
