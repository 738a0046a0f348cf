"""What the adapters of several frameworks share: rows of datasets, episodes as token sequences, tested versions.

No framework is imported here. What one adapter alone needs stays in its module.
"""
