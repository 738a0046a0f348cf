"""Tools that work on a machine: a shell and an editor."""
