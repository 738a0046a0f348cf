# CLASS: freeze   SEVERITY: must   GRADE: 42   FUNC: solve   TIMEOUT: 20
# EXPECT: the same for one long string, which JSON spells six times as long.
def solve(*_):
    return "\u2028" * 2_600_000
