"""The model: loading, sampling with a cache, scoring, adapters, the critic, memory, and a server that samples.

What it learns from is in estimate and data. Models behind an endpoint, which are not trained, are in gem.policies.
"""
