"""Encyclopedias: one of our own, generated from a seed, and readers of MediaWiki servers and ZIM files.

The game that follows their links is in envs.games.words, and questions about them without pages in questions.
"""
