"""Limits of return values: a value of a hostile program costs the host little, whatever the program sends."""

import json
import resource
import sys
import time

import pytest

from gem.graders.code import CodeGrader
from gem.graders.code.tests import read_tests
from gem.sandbox import Case, Limits, Status, make_sandbox

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the levels are those of Linux")
LIMITS = Limits(wall_s=20, memory_bytes=1 << 30)

# Programs that return or send 1 to 15 MB if a test expects the int 1.
HOSTILE = {
    "a list": "def f(x): return [0] * 3_000_000",
    "text": "def f(x): return 'x' * 15_000_000",
    "nested lists": "def f(x): return [[[]]] * 300_000",
    "data sent past the encoder": """
import os
def f(x):
    for fd in range(3, 12):
        try:
            for _ in range(500): os.write(fd, b"[]," * 10_000)
        except OSError:
            pass
    os._exit(0)
""",
    "many answers sent past the encoder": """
import os
def f(x):
    for fd in range(3, 12):
        try:
            for _ in range(500): os.write(fd, b'{"value": "1"}\\n' * 2_000)
        except OSError:
            pass
    os._exit(0)
""",
    "output": "def f(x):\n    print('1\\n' * 1_500_000)\n    return x + 1",
}
ONE = read_tests({"fn_name": "f", "inputs": [[1]], "outputs": [1]})


@pytest.fixture(scope="module", params=["zygote", pytest.param("subprocess", marks=pytest.mark.exhaustive)])
def backend(request):
    with make_sandbox(request.param, limits=LIMITS) as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_large_value_where_an_int_is_expected_costs_the_host_little(backend, name):
    grader = CodeGrader(limits=LIMITS)
    assert grader.grade("def f(x): return x", ONE, backend).correct
    peak_kb, cpu_s = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    grade = grader.grade(HOSTILE[name], ONE, backend)
    cpu_s = time.process_time() - cpu_s
    assert not grade.correct
    assert cpu_s < 0.5  # decoding the longest takes several seconds
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_kb < 20_000


def test_a_value_may_have_as_many_bytes_as_the_case_allows(backend):
    cases = [Case(arguments=json.dumps([size - 2]), value_bytes=100) for size in (99, 100, 101)]
    short, longest, longer = backend.run_tests("def f(n): return 'x' * n", cases, function="f")
    assert short.ok and longest.ok and len(longest.value) == 100
    assert (longer.status, longer.value) == (Status.ERROR, None)
    assert " f has 101 bytes" in longer.stderr and longer.stderr.endswith(" 100\n")


def test_a_value_that_consists_of_quotes_may_have_as_many_bytes(backend):
    case = Case(arguments="[]", value_bytes=200_000)
    [result] = backend.run_tests("def f(): return '\"' * 99_999", [case], function="f")
    assert result.ok and len(result.value) == 200_000


def test_a_case_may_allow_other_sequences_and_integers_have_any_length(backend):
    program = "def f(n): return collections.deque([n - 1])"
    cases = [Case(arguments=f"[1{'0' * 6000}]", any_sequence=allowed) for allowed in (True, False)]
    allowed, refused = backend.run_tests(program, cases, function="f")
    assert allowed.value == f"[{'9' * 6000}]" and (refused.status, refused.value) == (Status.ERROR, None)


def test_a_case_without_a_limit_allows_a_megabyte(backend):
    cases = [Case(arguments=f"[{n}]") for n in (1_000_000, 2_000_000)]
    fine, large = backend.run_tests("def f(n): return 'x' * n", cases, function="f")
    assert fine.ok and len(fine.value) == 1_000_002
    assert large.status is Status.ERROR and "the limit is 1048576" in large.stderr
