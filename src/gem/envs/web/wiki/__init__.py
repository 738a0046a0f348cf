"""Encyclopedias: one of our own, generated from a seed, and readers of MediaWiki servers and ZIM files."""
