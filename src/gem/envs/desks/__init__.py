"""Agents at a desk, who talk to a customer and act in a company's records.

Customers that a model plays are in gem.policies.customer. Work without a customer is in computers and web.
"""
