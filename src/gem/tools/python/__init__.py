"""Tools that run Python."""
