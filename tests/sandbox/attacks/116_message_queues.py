# CLASS: ipc   SEVERITY: must
# EXPECT: no message queue, by either interface, outlives the run or takes the user's quota.
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
made = 0
for number in range(300):
    made += libc.msgget(0, 0o1600) >= 0
    made += libc.mq_open(f"/gem{number}".encode(), os.O_CREAT | os.O_RDWR, 0o600, None) >= 0
    made += libc.semget(0, 200, 0o1600) >= 0
    made += libc.shmget(0, 1 << 20, 0o1600) >= 0
print("made", made, os.strerror(ctypes.get_errno()))
