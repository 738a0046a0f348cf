"""Finding passages: indexes of a corpus, in a folder or in memory, and servers that answer for them or for the web."""
