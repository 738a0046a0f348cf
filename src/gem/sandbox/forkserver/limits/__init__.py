"""How much a run may use: cgroups, resource limits, what no kernel limit covers. What it may reach is in isolation."""
