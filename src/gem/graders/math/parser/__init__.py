"""Parse the tokens of a math answer into a tree, by recursive descent.

A formula is read from loose to tight: items, relations, sets, sums, terms, factors, powers, and then what stands
alone. What follows rules of its own, such as an integral, an interval or a time of day, has a function, which takes
the parser. An answer that is no formula is read by its form in words ("all real numbers except 2"), or becomes a
:class:`~gem.graders.math.tree.Phrase`: words with the formulas between them.

Read answer first, then expression, atoms, names and constructs.
"""

from gem.graders.math.parser.answer import Parser, parse, parse_tokens
from gem.graders.math.parser.vocabulary import NotMath

__all__ = ["NotMath", "Parser", "parse", "parse_tokens"]
