"""From rewards to gradients: advantages, batches of examples with them, losses.

Functions of numbers only: no model, no environment and no files. Networks are in model, steps of the optimizer in run.
"""
