r"""Parse the tokens of a math answer into a tree.

Read answer first, then expression, names and constructs.
"""

from gem.graders.math.parser.answer import parse, parse_tokens
from gem.graders.math.parser.expression import Parser
from gem.graders.math.parser.vocabulary import NotMath

__all__ = ["NotMath", "Parser", "parse", "parse_tokens"]
