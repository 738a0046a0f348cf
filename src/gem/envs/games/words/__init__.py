"""Games with words, and the word lists that they share.

Conversations between players are in table, and questions that are answered once in questions.
"""
