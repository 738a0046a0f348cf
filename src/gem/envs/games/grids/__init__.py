"""Games and puzzles on a grid of cells.

Boards for two players are in table.boards. A puzzle of letters belongs in words.
"""
