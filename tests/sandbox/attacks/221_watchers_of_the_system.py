# CLASS: resources   SEVERITY: must   TIMEOUT: 5   SHARED: calls
# EXPECT: fanotify, keyrings, userfaultfd, performance counters and BPF, which count per user or system, are refused.
text = ctypes.addressof(ctypes.create_string_buffer(b"user\0" + bytes(200)))
called("fanotify_init", 300, 0x200 | 0x0, 0)
called("fanotify_init of names", 300, 0xE00, 0)
called("add_key", 248, text, text, text, 8, -4)
called("request_key", 249, text, text, 0, 0)
called("keyctl", 250, 0, -4, 1)
called("userfaultfd", 323, 1)
called("perf_event_open", 298, text, 0, -1, -1, 0)
called("bpf", 321, 0, text, 72)
called("memfd_secret", 447, 0)
called("quotactl", 179, 0x800002, 0, 0, text)
called("open_by_handle_at", 304, -100, text, 0)
