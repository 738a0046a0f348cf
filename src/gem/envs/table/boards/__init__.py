"""Games of two players on a board, with a search for best moves.

Games with hidden cards or bids are above: a search of positions does not solve them.
"""
