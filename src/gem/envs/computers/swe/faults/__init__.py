"""Faults written by hand, one module per repository.

Faults that a program makes come from swe.repository, and the repositories themselves are in
envs/computers/repositories.
"""
