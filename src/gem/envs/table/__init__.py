"""Games between players, with cards, words and bids. See docs/table_games.md.

Board games are in boards, and games of one player in games. Who plays the other seats in training is in rl.data.
"""
