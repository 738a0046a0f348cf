# CLASS: kernel   SEVERITY: must   TIMEOUT: 6   SHARED: calls
# EXPECT: no new namespace by clone(), by clone3(), whose flags no filter can see, or by the x32 numbers.
FLAGS = {"user": 0x10000000, "mount": 0x20000, "pid": 0x20000000, "network": 0x40000000, "ipc": 0x8000000}
FLAGS |= {"uts": 0x4000000, "cgroup": 0x2000000}
before = {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in ("user", "mnt", "pid", "net", "ipc", "uts")}
for name, flag in FLAGS.items():
    for number in (56, 56 | 0x40000000):
        for flags in (flag, flag | 0x10000000):
            pid = call(number, flags | 17, 0, 0, 0, 0)
            if pid == 0:
                os.write(1, f"PWNED {name} namespace by clone\n".encode())
                os._exit(0)
            if pid > 0:
                os.waitpid(pid, 0)
    arguments = (ctypes.c_uint64 * 11)(flag, 0, 0, 0, 17)
    for number in (435, 435 | 0x40000000):
        pid = call(number, ctypes.addressof(arguments), 88)
        if pid == 0:
            os.write(1, f"PWNED {name} namespace by clone3\n".encode())
            os._exit(0)
        if pid > 0:
            os.waitpid(pid, 0)
