# CLASS: freeze   SEVERITY: must   TIMEOUT: 3   GRADE: 42
# EXPECT: numbers that are short as text and immense as numbers are compared at no cost.
print("1e999999999")
print("-1E+99999999999999999999", "9" * 4000, "0." + "0" * 40_000 + "1", "1_0" * 3000, "1/" + "3" * 4000)
print("4" * 20_000 + "e-19999")
