"""Grade math answers (to be completed)."""

from gem.graders.math2.engine import first_true_within
from gem.graders.math2.equal import Verdict, any_of, normal, rounded_equal, same
from gem.graders.math2.parser import parse
from gem.graders.math2.question.forms import has_asked_form, in_asked_notation
from gem.graders.math2.question.order import in_asked_order, said_of_asked
from gem.graders.math2.question.quantities import in_asked_units, tolerance
from gem.graders.math2.question.read import read_question
from gem.graders.math2.question.readings import readings


def compare(answer: str, gold: str, question: str = "") -> Verdict:
    """Return whether an answer equals a reference answer, or the condition under which it does."""
    q = read_question(question)
    ours, theirs = parse(answer), parse(gold)
    if ours == theirs:
        return True
    if question:
        ours, theirs = in_asked_notation(ours, q), in_asked_notation(theirs, q)
        said = said_of_asked(ours, q)
        if said is None or not has_asked_form(ours, theirs, q):
            return False
        ours, theirs = said, said_of_asked(theirs, q) or theirs
    verdicts: list[Verdict] = []
    for a, g in readings(normal(ours), normal(theirs), q):
        pair = in_asked_units(a, g, q) if question else (a, g)
        if pair is None:
            continue
        if question:
            pair = in_asked_order(pair[0], q), in_asked_order(pair[1], q)
        verdicts.append(same(pair[0], pair[1], q))
        if question and (half := tolerance(pair[1], q)):
            verdicts.append(rounded_equal(pair[0], pair[1], half))
    return any_of(verdicts)


class G:
    def __init__(s, c):
        s.correct = c


def grade_math(a, g, question=""):
    v = compare(a, g, question)
    return G(v if isinstance(v, bool) else first_true_within([v]) is not None)
