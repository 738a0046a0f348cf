# CLASS: leak   SEVERITY: must
# EXPECT: a crash is the program's own, quick, and leaves no core file.
import ctypes
import resource

hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
try:
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
except (OSError, ValueError):
    pass
hoard = bytearray(100 << 20)
ctypes.memset(hoard and 8, 0, 8)
