# CLASS: freeze   SEVERITY: must   GRADE: 42   FUNC: solve   TIMEOUT: 20
# EXPECT: text written to every descriptor in place of a value costs the host nothing: deep, huge, or almost JSON.
import os

SHAPES = (b"[" * 3_000_000, b'{"a":' * 1_000_000, b"9" * 3_000_000, b'"\\u1' * 1_000_000, b"[" * 90 + b"1," * 5_000_000)


def solve(number=0, *_):
    for shape in SHAPES:
        for fd in range(3, 24):
            try:
                os.set_blocking(fd, False)
                os.write(fd, shape)
                os.write(fd, b"\n")
            except OSError:
                pass
    os._exit(0)


if __name__ == "__main__":
    solve()
