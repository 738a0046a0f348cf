"""Modules that published code imports; each forwards to its current location."""
