"""Search engine: indexes of corpora, on disk or in memory, and servers for local corpora and web search APIs.

Encyclopedias to walk through are in envs.web.wiki; rows to train on are in gem.datasets.
"""
