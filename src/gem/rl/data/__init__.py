"""Where episodes come from: mixtures of environments, curricula, self-play, evaluation sets, imitation.

How one episode is played is in gem.rollout; what its rewards are worth is in estimate.
"""
