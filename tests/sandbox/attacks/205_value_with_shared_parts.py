# CLASS: freeze   SEVERITY: must   TIMEOUT: 3   GRADE: 42   FUNC: solve
# EXPECT: a value that is small in memory and immense as text is a wrong answer and costs the host nothing.
def solve(*_):
    value = [42]
    for _ in range(40):
        value = [value, value]
    return value
