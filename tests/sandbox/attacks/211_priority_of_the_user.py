# CLASS: priority   SEVERITY: must   TIMEOUT: 5   SHARED: calls
# EXPECT: the priorities, policies and affinity of other processes of the user stay as they are.
uid, group = os.getuid(), os.getpgid(0)
for who, name in ((2, "every process of the user"), (1, "the group of the parent")):
    for target in (0, uid) if who == 2 else (os.getpgid(os.getppid()) if os.getppid() else 1,):
        called(f"setpriority of {name}", 141, who, target, 19)
IDLE = 3 << 13
called("ioprio_set of the user", 251, 3, uid, IDLE)
mine = set()
parameter = ctypes.addressof(ctypes.create_string_buffer(64))
mask = ctypes.create_string_buffer(b"\1" + bytes(127))
attributes = ctypes.create_string_buffer(48)
ctypes.memmove(attributes, (48).to_bytes(4, "little") + (5).to_bytes(4, "little"), 8)
me = os.getpid()
for pid in [os.getppid(), *range(1, 60), *range(max(60, me - 300), me)]:
    if pid in (0, me):
        continue
    attempts = {
        "setpriority": (141, 0, pid, 19),
        "sched_setscheduler": (144, pid, 5, parameter),
        "sched_setaffinity": (203, pid, 128, ctypes.addressof(mask)),
        "sched_setattr": (314, pid, ctypes.addressof(attributes), 0),
        "ioprio_set": (251, 1, pid, IDLE),
    }
    for name, attempt in attempts.items():
        if call(*attempt) >= 0:
            print("PWNED", name, "of process", pid)
