"""Search engine: indexes of corpora, on disk or in memory, and servers for local corpora and web search APIs."""
