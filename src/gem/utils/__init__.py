"""Import paths of the published package, kept for compatibility."""
