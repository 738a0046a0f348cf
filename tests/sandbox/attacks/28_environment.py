# CLASS: secrets   SEVERITY: must
# EXPECT: no secret of the host's environment reaches the program: not through os.environ, /proc or the stack.
import ctypes
import os

print(dict(os.environ))
libc = ctypes.CDLL(None)
environ = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
index = 0
while environ and environ[index]:
    print(environ[index])
    index += 1
for who in ("self", "1", str(os.getppid()), "thread-self"):
    for name in ("environ", "cmdline", "auxv"):
        try:
            print(open(f"/proc/{who}/{name}", "rb").read()[:20000])
        except OSError:
            pass
