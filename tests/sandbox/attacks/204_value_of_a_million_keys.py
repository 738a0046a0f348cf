# CLASS: freeze   SEVERITY: must   TIMEOUT: 3   GRADE: 42   FUNC: solve
# EXPECT: a large dictionary where a number is expected is refused by its size, before it is decoded.
def solve(*_):
    return {str(n): [n, {}] for n in range(700_000)}
