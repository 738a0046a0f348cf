"""Tools that work on a machine: a shell and an editor.

Machines themselves are in gem.sandbox, and tasks for them in envs.computers.
"""
