"""From rewards to gradients: advantages, batches of examples with them, losses."""
