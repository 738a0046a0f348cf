# CLASS: ipc   SEVERITY: must
# EXPECT: shared memory, semaphores and messages of other programs can be neither read nor changed nor removed.
import ctypes

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
IPC_RMID, IPC_STAT, SETVAL, SHM_LOCK, RDONLY = 0, 2, 16, 11, 0o10000
buffer = ctypes.create_string_buffer(4096)
for number in range(64):
    for ident in (number, number | 0x8000, number * 32768):
        address = libc.shmat(ident, None, RDONLY)
        if address not in (None, ctypes.c_void_p(-1).value):
            print("PWNED shared memory:", ctypes.string_at(address, 40))
        if libc.msgrcv(ident, buffer, 4000, 0, 0o4000) > 0:
            print("PWNED a message:", buffer.raw[8:60])
        for name, arguments in {
            "semctl": (ident, 0, SETVAL, 7),
            "semop": (ident, b"\0\0\1\0\0\x08", 1),
            "shmctl": (ident, IPC_RMID, None),
            "msgctl": (ident, IPC_RMID, None),
        }.items():
            if getattr(libc, name)(*arguments) == 0:
                print("PWNED", name, ident)
        libc.shmctl(ident, SHM_LOCK, None)
        libc.semctl(ident, 0, IPC_RMID)
