# CLASS: signals   SEVERITY: must   TESTS: 3   TIMEOUT: 3
# EXPECT: a test can neither look into the process that runs the tests one by one, nor stop or end it.
import os
import signal
import sys

number = int(sys.stdin.readline() or 0)
deadly = (signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL)[number % 3]
print("start", flush=True)
for runner in {os.getppid(), 1} - {0, os.getpid()}:
    for name, mode in (("mem", os.O_RDWR), ("environ", os.O_RDONLY), ("maps", os.O_RDONLY)):
        try:
            os.close(os.open(f"/proc/{runner}/{name}", mode))
            print("PWNED opened", name, "of the runner")
        except OSError as error:
            print(name, error)
    for victim in (runner, -runner):
        try:
            os.kill(victim, deadly)
            if runner != 1:  # process 1 ignores signals of its namespace
                print("PWNED signaled the runner")
        except OSError as error:
            print(deadly, error)
