"""The model: loading, sampling with a cache, scoring, adapters, the critic, memory, and a server that samples."""
