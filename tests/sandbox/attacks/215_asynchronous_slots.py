# CLASS: aio   SEVERITY: must   TIMEOUT: 5   SHARED: calls
# EXPECT: no asynchronous input and output by the kernel: its slots and its locked memory belong to the whole system.
place = ctypes.create_string_buffer(512)
for count in (1, 128, 65_000):
    called(f"io_setup({count})", 206, count, ctypes.addressof(place))
called("io_destroy", 207, 0)
called("io_submit", 209, 0, 0, 0)
called("io_getevents", 208, 0, 0, 0, 0, 0)
called("io_pgetevents", 333, 0, 0, 0, 0, 0, 0)
called("io_uring_setup", 425, 1, ctypes.addressof(place))
called("io_uring_enter", 426, 0, 0, 0, 0, 0, 0)
called("io_uring_register", 427, 0, 0, 0, 0)
called("io_setup of x32", 543 | 0x40000000, 1, ctypes.addressof(place), x32=False)
