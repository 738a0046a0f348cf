"""Records of evaluations in the formats of other tools: Inspect's logs, and traces of verifiers.

Only files: nothing here runs another tool. Adapters to frameworks that train are in gem.integrations.
"""
