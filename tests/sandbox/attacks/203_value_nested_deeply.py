# CLASS: freeze   SEVERITY: must   TIMEOUT: 3   GRADE: 42   FUNC: solve
# EXPECT: a value nested 200,000 deep is a wrong answer; it neither raises in the host nor takes its time.
import sys


def solve(*_):
    sys.setrecursionlimit(1_000_000)
    value = 42
    for _ in range(200_000):
        value = [value]
    return value
