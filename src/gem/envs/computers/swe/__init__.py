"""Repair of software on a machine with a shell. See docs/swe.md."""
