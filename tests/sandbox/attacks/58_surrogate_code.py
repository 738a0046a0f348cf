# CLASS: host-confusion   SEVERITY: must   TRANSFORM: surrogate
# EXPECT: source with half a surrogate pair raises no exception in the host.
print("x")
