"""The names that a program need not import if tests call one of its functions, and those that it defines itself."""

import json
import sys

import pytest

from gem.sandbox import Case, Limits, Status, make_sandbox

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the levels are those of Linux")
LIMITS = Limits(wall_s=20, memory_bytes=512 << 20)

CACHED_DEPTH = 400 if sys.version_info[:2] == (3, 12) else 3000  # 3.12 limits recursion through C to about 500
# function, arguments, expected value, program: the starter code of the task with a correct body
SOLUTIONS = {
    "two numbers, typing": (
        "twoSum",
        [[2, 7, 11, 15], 9],
        [0, 1],
        """
class Solution:
    def twoSum(self, nums: List[int], target: int) -> Optional[List[int]]:
        seen: Dict[int, int] = {}
        for i, n in enumerate(nums):
            if target - n in seen: return [seen[target - n], i]
            seen[n] = i
""",
    ),
    "binary search, a method that has a name of the prelude": (
        "search",
        [[1, 3, 5], 3],
        1,
        """
class Solution:
    def search(self, nums: List[int], target: int) -> int:
        i = bisect_left(nums, target)
        return i if i < len(nums) and nums[i] == target else -1
""",
    ),
    "shortest path, collections and heapq": (
        "cost",
        [3, [[0, 1, 2], [1, 2, 3], [0, 2, 9]]],
        5,
        """
class Solution:
    def cost(self, n: int, roads: List[List[int]]) -> int:
        graph: DefaultDict[int, List[Tuple[int, int]]] = defaultdict(list)
        for a, b, c in roads: graph[a].append((b, c))
        queue, best = [(0, 0)], collections.Counter()
        while queue:
            d, at = heappop(queue)
            if at == n - 1: return d
            for to, c in graph[at]: heapq.heappush(queue, (d + c, to))
        return -1
""",
    ),
    "recursion, functools.cache": (
        "climb",
        [CACHED_DEPTH],
        [CACHED_DEPTH + 1],
        """
class Solution:
    def climb(self, n: int) -> List[int]:
        @cache
        def ways(k: int) -> int: return 1 if k == 0 else 1 + ways(k - 1)
        return [ways(n)]
""",
    ),
    "recursion without a cache": (
        "depth",
        [10_000],  # Python 3.10 uses the C stack for each call
        10_000,
        "def depth(n: int) -> int: return 0 if n == 0 else 1 + depth(n - 1)",
    ),
    "lru_cache, inf and math": (
        "coins",
        [[1, 5, 7], 18],
        4,
        """
class Solution:
    def coins(self, kinds: List[int], total: int) -> int:
        @functools.lru_cache(None)
        def few(rest: int) -> float:
            if rest == 0: return 0
            return min((few(rest - kind) + 1 for kind in kinds if kind <= rest), default=inf)
        return -1 if few(total) == math.inf else int(floor(few(total)))
""",
    ),
    "Counter, string and re": (
        "letters",
        ["Ab1, ab"],
        [["a", 2], ["b", 2], ["A", 0]],
        """
class Solution:
    def letters(self, text: str) -> List[Tuple[str, int]]:
        counts = Counter(re.findall("[a-z]", text.lower()))
        assert isinstance(counts, Counter) and ascii_lowercase == string.ascii_lowercase
        return [*sorted(counts.items()), ("A", counts["A"])]
""",
    ),
    "itertools and operator": (
        "sums",
        [[1, 2, 3]],
        [[1, 3, 6], [1, 2, 6], 6],
        """
class Solution:
    def sums(self, a: Sequence[int]) -> Any:
        pairs = [*accumulate(a)], list(itertools.accumulate(a, mul)), reduce(operator.add, a)
        return [*pairs]
""",
    ),
    "random and statistics": (
        "middle",
        [[5, 1, 3]],
        3,
        """
class Solution:
    def middle(self, a: List[int]) -> int:
        random.shuffle(a)
        assert randint(1, 1) == random.choice([1]) == 1
        return median(a)
""",
    ),
    "deque, deepcopy and copy": (
        "rounds",
        [[[1], [2]]],
        [[[2], [1]], [[1], [2]]],
        """
class Solution:
    def rounds(self, a: List[List[int]]) -> List[Deque[int]]:
        queue = deque(copy.deepcopy(a))
        queue.rotate(1)
        return [list(queue), a]
""",
    ),
    "datetime, json, io, sys": (
        "day",
        ["2024-03-01"],
        ["2024-02-29", True, 1],
        """
class Solution:
    def day(self, text: str) -> Union[str, Any]:
        before = datetime.date.fromisoformat(text) - timedelta(days=1)
        assert json.loads(StringIO("1").read()) == 1
        return [str(before), maxsize == sys.maxsize, gcd(4, 3)]
""",
    ),
    "bisect module and builtins": (
        "place",
        [[1, 2, 2, 5], 2],
        [1, 3, 4, 8],
        """
class Solution:
    def place(self, a: List[int], x: int) -> List[int]:
        return [bisect.bisect_left(a, x), bisect_right(a, x), pow(2, 2, 5), abs(-8)]
""",
    ),
    "a class of its own in front of the solution": (
        "Solution.longest",
        ["aabb"],
        2,
        """
class Node:
    def __init__(self, value: int, next: Optional["Node"] = None): self.value, self.next = value, next
class Solution:
    def longest(self, s: str) -> int:
        return max(len(list(group)) for _, group in groupby(s))
""",
    ),
    "names of the prelude that the program replaces": (
        "count",
        [[3, 4]],
        [7, "own", "own"],
        """
from math import *
import operator as reduce
gcd = inf = "own"
def count(a):
    return [reduce.add(*a), gcd, inf]
""",
    ),
}


@pytest.mark.parametrize("backend", ["zygote", "subprocess"])
def test_starter_code_with_a_correct_body_returns_the_expected_value(backend):
    with make_sandbox(backend, limits=LIMITS) as sandbox:
        for name, (function, arguments, expected, program) in SOLUTIONS.items():
            [result] = sandbox.run_tests(program, [Case(arguments=json.dumps(arguments))], function=function)
            assert result.ok, (name, result.stderr)
            assert json.loads(result.value) == expected, name


def test_a_function_of_the_prelude_is_not_a_function_of_the_program(sandbox):
    [result] = sandbox.run_tests("x = gcd(4, 6)", [Case(arguments="[4, 6]")], function="gcd")
    assert result.status is Status.ERROR and result.stderr.endswith("no function gcd\n")


def test_scripts_have_no_prelude(sandbox):
    [result] = sandbox.run_tests("print(inf)", [Case()])
    assert "NameError" in sandbox.run("print(inf)").stderr
    assert "NameError" in result.stderr


def test_the_prelude_does_not_change_line_numbers(sandbox):
    program = "def f(x: List[int]):\n    y = 1\n    return x[5]"
    [result] = sandbox.run_tests(program, [Case(arguments="[[1]]")], function="f")
    assert 'File "main.py", line 3, in f\n    return x[5]\n' in result.stderr


def test_endless_recursion_prints_a_traceback_of_limited_length(sandbox):
    program = "def f(n):\n    return g(n)\ndef g(n):\n    return f(n)"
    [result] = sandbox.run_tests(program, [Case(arguments="[1]")], function="f")
    assert result.status is Status.ERROR and "RecursionError" in result.stderr.splitlines()[-1]
    assert not result.truncated and result.cpu_s < 5
