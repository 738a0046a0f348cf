# CLASS: host-confusion   SEVERITY: must   TIMEOUT: 2
# EXPECT: a program that closes all descriptors still runs until it is killed at its limit.
import os
import time

print("start", flush=True)
os.closerange(0, 65536)
zero = os.open("/dev/zero", os.O_RDWR)
for fd in range(1, 16):
    os.dup2(zero, fd)
time.sleep(60)
