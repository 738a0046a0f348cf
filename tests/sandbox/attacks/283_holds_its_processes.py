# CLASS: starvation   SEVERITY: must   TIMEOUT: 4   COPIES: 4
# EXPECT: as many processes, threads and zombies as the limit allows leave others able to start theirs.
import os
import threading
import time

for n in range(64):
    try:
        if n % 2:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        elif not os.fork():
            if n % 4:
                os._exit(0)  # stays as a zombie
            time.sleep(60)
    except (OSError, RuntimeError) as error:
        print(n, error)
        break
time.sleep(60)
