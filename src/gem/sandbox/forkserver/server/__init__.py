"""The fork server: a process that imports libraries once and forks for each run. It runs no untrusted code itself.

What a child does after the fork is in isolation and entry, and what the host does is in host.
"""
