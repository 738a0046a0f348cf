"""What a forked process may reach: namespaces, Landlock, seccomp. How much it may use is in limits."""
