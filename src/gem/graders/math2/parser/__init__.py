r"""Parse the tokens of a math answer into a tree.

Read answer first, then expression, names and constructs.
"""

from gem.graders.math2.parser.answer import parse

__all__ = ["parse"]
