"""Environments of Reasoning Gym's generators."""
