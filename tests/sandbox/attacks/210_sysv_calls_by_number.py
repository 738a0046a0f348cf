# CLASS: ipc   SEVERITY: must   TIMEOUT: 5   SHARED: calls
# EXPECT: each call of System V IPC is refused (EPERM or ENOSYS), also by the numbers of the x32 interface.
IPC_PRIVATE, IPC_CREAT, IPC_INFO, SHM_STAT_ANY = 0, 0o1000, 3, 15
buffer = ctypes.addressof(ctypes.create_string_buffer(4096))
called("shmget", 29, IPC_PRIVATE, 4096, IPC_CREAT | 0o600)
called("shmat", 30, 0, 0, 0o10000)
called("shmctl", 31, 0, IPC_INFO, buffer)
called("shmctl of any", 31, 0, SHM_STAT_ANY, buffer)
called("shmdt", 67, 0x10000000)
called("semget", 64, IPC_PRIVATE, 1, IPC_CREAT | 0o600)
called("semop", 65, 0, buffer, 1)
called("semctl", 66, 0, 0, IPC_INFO, buffer)
called("semtimedop", 220, 0, buffer, 1, 0)
called("msgget", 68, IPC_PRIVATE, IPC_CREAT | 0o600)
called("msgsnd", 69, 0, buffer, 8, 0o4000)
called("msgrcv", 70, 0, buffer, 8, 0, 0o4000)
called("msgctl", 71, 0, IPC_INFO, buffer)
