# CLASS: ipc   SEVERITY: must
# EXPECT: no SysV shared memory, semaphore or queue outlives the run.
import ctypes

libc = ctypes.CDLL(None, use_errno=True)
CREATE = 0o1666
print(libc.shmget(0x6E61, 4 << 20, CREATE), libc.semget(0x6E62, 4, CREATE), libc.msgget(0x6E63, CREATE))
