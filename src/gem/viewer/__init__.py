"""The viewer of recorded episodes: one HTML file, or a server for recordings that are too large for one.

What was recorded is in gem.trajectory and gem.evaluation, scores over many episodes in evaluation.
"""
