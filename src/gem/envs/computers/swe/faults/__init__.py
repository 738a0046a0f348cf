"""Faults written by hand, one module per repository."""
