"""Environments of Reasoning Gym's generators.

Their scores are those of Reasoning Gym; questions that gem generates itself are in families.
"""
