"""Evaluation: score a policy on environments, with intervals."""
