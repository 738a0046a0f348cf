"""Games with words, and the word lists that they share."""
