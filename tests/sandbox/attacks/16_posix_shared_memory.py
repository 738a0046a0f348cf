# CLASS: shm   SEVERITY: must
# EXPECT: no POSIX shared memory, semaphore or message queue is left, and those of other processes are not visible.
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
try:
    print(os.listdir("/dev/shm"))
except OSError as error:
    print(error)
fd = libc.shm_open(b"/gem_left", os.O_CREAT | os.O_RDWR, 0o666)
print("shm_open", fd, fd >= 0 and libc.ftruncate(fd, 8 << 20))
print("mq_open", libc.mq_open(b"/gem_left", os.O_CREAT | os.O_RDWR, 0o666, None))
libc.sem_open.restype = ctypes.c_void_p
print("sem_open", libc.sem_open(b"/gem_left", os.O_CREAT, 0o666, 1))
