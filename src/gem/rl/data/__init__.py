"""Where episodes come from: mixtures of environments, curricula, self-play, evaluation sets, imitation."""
