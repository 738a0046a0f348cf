"""Graders: score an answer against a reference. Import each grader from its own module."""

from gem.graders.base import Grade

__all__ = ["Grade"]
