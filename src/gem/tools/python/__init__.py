"""Tools that run Python.

The sandbox in which it runs is in gem.sandbox, and grading of programs in gem.graders.code.
"""
