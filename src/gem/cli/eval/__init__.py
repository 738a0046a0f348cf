"""The command `gem eval`."""
