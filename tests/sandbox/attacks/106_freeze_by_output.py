# CLASS: freeze   SEVERITY: must   GRADE: 42   TIMEOUT: 8
# EXPECT: comparing output with the expected one takes the host no time, whatever the output looks like.
print("4" * 100_000)
print("4.2e1 " * 20_000)
print("\n" * 50_000 + " " * 50_000)
print("9" * 4000 + "e" + "9" * 4000)
