"""Grade math answers (to be completed)."""

from gem.graders.math2.engine import first_true_within
from gem.graders.math2.equal import Verdict, any_of, normal, rounded_equal, same
from gem.graders.math2.parser import parse
from gem.graders.math2.question.forms import has_asked_form, is_ordered
from gem.graders.math2.question.quantities import in_asked_units, tolerance
from gem.graders.math2.question.read import read_question
from gem.graders.math2.question.readings import readings
from gem.graders.math2.tree import Op, Tree


def compare(answer: str, gold: str, question: str = "") -> Verdict:
    """Return whether an answer equals a reference answer, or the condition under which it does."""
    q = read_question(question)
    ours, theirs = parse(answer), parse(gold)
    if ours == theirs:
        return True
    if question and not has_asked_form(ours, theirs, q):
        return False
    verdicts: list[Verdict] = []
    for a, g in readings(answer, gold, q):
        a, g = normal(a), normal(g)
        pair = in_asked_units(a, g, q) if question else (a, g)
        if pair is None:
            continue
        if question and is_ordered(q):
            pair = _as_tuple(pair[0]), _as_tuple(pair[1])
        verdicts.append(same(pair[0], pair[1], q))
        if question and (half := tolerance(pair[1], q)):
            verdicts.append(rounded_equal(pair[0], pair[1], half))
        if True in verdicts:
            return True
    return any_of(verdicts)


def _as_tuple(tree: Tree) -> Tree:
    return Op("tuple", tree.args) if isinstance(tree, Op) and tree.head in ("list", "and") else tree


class G:
    def __init__(s, c):
        s.correct = c


def grade_math(a, g, question=""):
    v = compare(a, g, question)
    return G(v if isinstance(v, bool) else first_true_within([v]) is not None)
