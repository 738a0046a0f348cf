"""Games and puzzles on a grid of cells."""
