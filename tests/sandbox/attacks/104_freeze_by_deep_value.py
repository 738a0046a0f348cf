# CLASS: freeze   SEVERITY: must   GRADE: 42   FUNC: solve   TIMEOUT: 20
# EXPECT: the same for dicts of dicts with many keys, for huge integers, and for numbers with long fractions.
def solve(*_):
    value = {}
    for level in range(60):
        value = {f"{level}-{key}": value if key == 0 else [int("9" * 4000)] for key in range(50)}
    return [value, [1.0000000000000002] * 300_000]
