# CLASS: host-confusion   SEVERITY: must   STDIN: big
# EXPECT: a program that never reads the 18 MB it is given neither blocks the host nor raises in it.
print("not interested")
