# CLASS: host-confusion   SEVERITY: must   TRANSFORM: nested
# EXPECT: source that no compiler takes ends its own run and nothing else, the compiler's crash included.
print("x")
