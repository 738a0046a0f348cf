"""What the adapters of several frameworks share: rows of datasets, episodes as token sequences, tested versions."""
