"""Games of one player. Those on grids and with words are in wings, the others here.

Games between players are in table; what all games share is in gem.envs.game. One question with one answer is no game.
"""
