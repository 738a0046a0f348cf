"""Graders: score an answer against a reference. Import each grader from its own module.

What an environment does with a score is in envs, and running programs safely in gem.sandbox.
"""

from gem.graders.base import Grade

__all__ = ["Grade"]
