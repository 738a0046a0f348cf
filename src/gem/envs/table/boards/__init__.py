"""Games of two players on a board, with a search for best moves."""
