"""Records of evaluations in the formats of other tools: Inspect's logs, and traces of verifiers."""
