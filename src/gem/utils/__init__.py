"""Names that published code imports, kept as they were: each forwards to where the work is done."""
