"""Run typical code before the first fork, so that forked processes copy fewer pages.

The kernel copies each page that a forked process writes to. The interpreter writes to pages when it fills its caches
for attribute lookups, subclass checks and adaptive instructions. If the caches are filled before the fork, forked
processes do not write to them.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable

from gem.sandbox.forkserver.entry import case_runner, program
from gem.sandbox.forkserver.protocol import in_memory

TIMES = 30  # runs until the adaptive interpreter of Python 3.11 and later has specialized all instructions

PROGRAM = """
import bisect, collections, functools, heapq, itertools, math, re, string, sys
from collections import Counter, defaultdict, deque

class Node:
    def __init__(self, value, links=()):
        self.value, self.links = value, list(links)

@functools.lru_cache(maxsize=None)
def ways(n):
    return 1 if n < 2 else ways(n - 1) + ways(n - 2)

def main(lines):
    numbers = list(map(int, lines.split()))
    rows = [[int(word) for word in line.split()] for line in lines.splitlines()]
    counts, groups, queue = Counter(numbers), defaultdict(list), deque(numbers)
    for i, number in enumerate(numbers):
        groups[number % 2].append((i, number))
    heap = []
    while queue:
        heapq.heappush(heap, -queue.popleft())
    seen = set(numbers) | {heapq.heappop(heap)}
    node = Node(max(numbers), [Node(n) for n in sorted(numbers, key=lambda n: -n)[:2]])
    table = {key: sum(n for _, n in found) for key, found in sorted(groups.items())}
    words = " ".join(str(n) for n in numbers).strip().upper().replace("1", "one")
    print(ways(10), counts.most_common(1)[0][1], node.links[0].value, len(seen), min(rows[0]), sep=" ")
    print(f"{math.gcd(12, 18)} {table.get(0, 0):.2f} {words[::-1]!r} {bisect.bisect(numbers, 2)}")
    print(*itertools.islice(zip(numbers, reversed(numbers)), 2), *re.findall("[0-9]+", words), string.digits)
    try:
        {}[words]
    except KeyError as e:
        print("%s" % e)

main(input() + "\\n" + sys.stdin.readline() + sys.stdin.read())
"""
INPUT = b"3 1 2\n2 4\n5 6\n7\n"


# module → program that uses the module, to fill the caches for its code
LIBRARIES = {
    "numpy": """
import numpy as np
a = np.arange(6.0).reshape(2, 3)
print(a, a.sum(), (a @ a.T).mean(axis=0), np.sort(a[a > 1]), np.zeros(2, dtype=int).tolist())
""",
    "sympy": """
import sympy
x, y = sympy.symbols("x y")
print(sympy.Symbol("x"), sympy.expand((x + y) ** 2), sympy.diff(x**2 / 2 + sympy.sin(x), x), sympy.Rational(1, 3) + 1)
print(sympy.simplify(x * (x + 1) - x**2), sympy.factor(x**2 - 1), sympy.solve(x**2 - 4, x), sympy.sqrt(8))
print(sympy.Eq(x, 1), sympy.pi.evalf(20), sympy.factorint(60), sympy.Matrix([[1, 2], [3, 4]]).det())
""",
}


def warm_up() -> None:
    """Repeatedly run the steps that set up a test, and typical programs including their shutdown."""
    case_runner.warm_up(TIMES)
    programs = [PROGRAM, *(source for name, source in LIBRARIES.items() if name in sys.modules)]
    kept = sys.stdin, sys.stdout
    with open(os.devnull, "w") as null, open(in_memory(INPUT), "rb") as text:
        for code in [compile(source, "", "exec", dont_inherit=True) for source in programs]:
            for _ in range(TIMES):
                text.seek(0)
                sys.stdin, sys.stdout = program.reader(text.fileno()), program.line_writer(null.fileno(), "strict")
                program.execute(_runner(code))
    sys.stdin, sys.stdout = kept


def _runner(code: types.CodeType) -> Callable[[], object]:
    module = types.ModuleType("")
    return lambda: program.run_in(module, code)
