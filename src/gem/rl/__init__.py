"""Reference reinforcement learning algorithms, written close to their papers. Needs the extra [train]."""
