"""Tasks on a machine with a shell. See docs/terminal.md."""
