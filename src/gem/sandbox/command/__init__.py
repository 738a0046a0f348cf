"""Sandboxes that start one command per run: in bubblewrap, and without isolation. What runs inside is in inside*.py."""
