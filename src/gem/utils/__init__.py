"""Import paths of the published package, kept for compatibility. No other module of gem imports these.

Nothing new belongs here: each module names the one that has taken its place.
"""
