"""A training run: building it, the loop, its folder with checkpoints and metrics, plots."""
