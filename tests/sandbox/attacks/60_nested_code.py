# CLASS: host-confusion   SEVERITY: must   TRANSFORM: nested
# EXPECT: source that crashes or overflows the compiler ends only its own run.
print("x")
