# CLASS: freeze   SEVERITY: must   GRADE: 42   FUNC: solve   TIMEOUT: 20
# EXPECT: a returned value of 15 MB where a number is expected costs the host no time and no memory.
def solve(*_):
    return list(range(10_000, 2_000_000))
