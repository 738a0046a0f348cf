"""Repair of software on a machine with a shell: small repositories, and rows of SWE-bench and SWE-Gym. See docs/swe.md.

The files of the small repositories are in repositories, which nothing imports. Tasks without a repository are in
terminal.
"""
