"""What a forked process may reach: namespaces, Landlock, seccomp. How much it may use is in limits.

Comments say what a program could do without a rule, and name a program of tests/sandbox/attacks that tries it.
"""
