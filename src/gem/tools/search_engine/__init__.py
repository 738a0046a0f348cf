"""Search engine: indexes of a corpus, on disk or in memory, and servers of local corpora and web search APIs."""
