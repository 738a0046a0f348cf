"""Sandboxes that start one command per run: in bubblewrap, and without isolation. What runs inside is in inside*.py.

Backends that keep a process between runs are in forkserver, those of container engines in containers.
"""
