"""Import paths of the published package, kept for compatibility. No other module of gem imports these."""
