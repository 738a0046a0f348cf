"""How much a run may use: cgroups, resource limits, what no kernel limit covers. What it may reach is in isolation.

Limits of time on the wall and of output are the host's, because a program can stop every clock inside.
"""
