# CLASS: freeze   SEVERITY: must   TIMEOUT: 3   GRADE: 42   FUNC: solve
# EXPECT: an integer of more digits than the host's limit for text is a wrong answer, not an exception in the host.
import sys

getattr(sys, "set_int_max_str_digits", print)(0)


def solve(*_):
    return [10**5000 + 42, 10**60_000]
