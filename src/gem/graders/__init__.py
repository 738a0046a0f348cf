"""Who judges: an answer in, a Grade out. Each grader is a module of its own, imported where it is used."""

from gem.graders.base import Grade

__all__ = ["Grade"]
