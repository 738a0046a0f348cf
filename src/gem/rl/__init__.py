"""Reasons to roll out: reference algorithms that read as their papers do."""
