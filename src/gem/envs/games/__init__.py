"""Games of one player. Games between players are in table; what all games share is in gem.envs.game."""
