# CLASS: freeze   SEVERITY: must   TIMEOUT: 4   GRADE: 42   FUNC: solve
# EXPECT: megabytes written to every inherited descriptor, among them that of the report, cost the host nothing.
import os


def flood():
    value = b'{"value": "' + b"[" * 15_000_000 + b'"}\n'
    for fd in range(3, 256):
        try:
            os.set_blocking(fd, False)
            os.write(fd, value)
        except OSError:
            pass


def solve(*_):
    flood()
    os._exit(0)


flood()
