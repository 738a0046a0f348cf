# CLASS: limits   SEVERITY: must   CPU: 2   TIMEOUT: 25
# EXPECT: the CPU time of orphans counts although another process reaps them.
import os
import time

read, write = os.pipe()
done = 0
while done < 20:
    for _ in range(2):
        pid = os.fork()
        if pid == 0:
            if os.fork() == 0:
                while time.process_time() < 0.25:
                    pass
                os.write(write, b"x")
            os._exit(0)
        os.waitpid(pid, 0)
    done += len(os.read(read, 2))
print("PWNED", done * 0.25, "s of CPU", flush=True)
