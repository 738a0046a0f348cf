# KIND: benign SEVERITY: should CLASS: benign EXPECT_OUT: MemoryError_File_too_large_limits_lowered
import errno
import os
import resource
import signal

usage = resource.getrusage(resource.RUSAGE_SELF)
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
resource.setrlimit(resource.RLIMIT_AS, (700 << 20, hard))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_CPU, (5, resource.getrlimit(resource.RLIMIT_CPU)[1]))
resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))
try:
    bytearray(900 << 20)
except MemoryError:
    print("MemoryError", end=" ")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
try:
    with open("big", "wb", buffering=0) as file:
        file.write(b"x" * 1000)
        file.write(b"x")
except OSError as e:
    print("File too large" if e.errno == errno.EFBIG else e, end=" ")
assert usage.ru_maxrss > 0 and os.sysconf("SC_PAGE_SIZE") >= 4096
print("limits lowered")
