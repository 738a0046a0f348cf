# CLASS: processes   SEVERITY: must   TIMEOUT: 5   SHARED: calls
# EXPECT: calls that look into, move or advise on the memory and descriptors of others are refused.
parent = os.getppid() or 1
text = ctypes.addressof(ctypes.create_string_buffer(b"\3" + bytes(200)))
called("kcmp", 312, os.getpid(), parent, 0, 0, 0)
called("migrate_pages", 256, parent, 64, text, text)
called("move_pages", 279, parent, 0, 0, 0, 0, 0)
called("process_vm_readv", 310, parent, text, 1, text, 1, 0)
called("process_vm_writev", 311, parent, text, 1, text, 1, 0)
called("ptrace", 101, 0x4206, parent, 0, 0)
called("process_madvise", 440, 0, text, 1, 20, 0)
called("pidfd_getfd", 438, 0, 0, 0)
