# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: 100000_70000
import functools
import sys
import threading

sys.setrecursionlimit(10**6)
threading.stack_size(512 << 20)


def depth(n):
    return 0 if n == 0 else 1 + depth(n - 1)


@functools.cache
def cached(n):
    return 0 if n == 0 else 1 + cached(n - 1)


thread = threading.Thread(target=lambda: print(depth(100_000), cached(70_000)))
thread.start()
thread.join()
