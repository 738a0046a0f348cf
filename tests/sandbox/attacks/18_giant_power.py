# CLASS: time   SEVERITY: must
# EXPECT: ended by the limits, although one operation in C holds the interpreter and no signal handler can run.
print("start", flush=True)
print(9**9**9 % 10)
