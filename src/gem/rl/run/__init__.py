"""A training run: building it, the loop, its folder with checkpoints and metrics, plots.

What can be told a run is in config above. Here are no formulas of algorithms, which are in estimate, and no networks.
"""
