# CLASS: freeze   SEVERITY: must   TIMEOUT: 3   GRADE: 42   FUNC: solve
# EXPECT: text that grows sixfold when it is written down is refused by its size.
def solve(*_):
    return "\0\ud800" * 2_500_000
