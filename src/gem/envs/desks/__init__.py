"""Agents at a desk, who talk to a customer and act in a company's records."""
