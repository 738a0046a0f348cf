"""Formulas are compared exactly, or with a precision that fits the size of their numbers."""

from __future__ import annotations

import pytest

from gem.graders.math import engine as math_engine
from gem.graders.math import grade_math

pytest.importorskip("sympy", reason="needs the extra [math]")

SMALL = [r"\frac{1}{2^{100}}", r"(2/3)^{2005}", r"\frac{1}{50!}", "e^{-100}", r"\frac{\pi}{10^{60}}", r"\sin(10^{-40})"]


@pytest.mark.parametrize("small", SMALL)
def test_a_small_number_is_not_zero(small):
    assert not grade_math("0", small).correct and not grade_math(small, "0").correct
    assert not grade_math("1", "1-" + small).correct
    assert not grade_math(r"\sqrt{2}", r"\sqrt{2}+" + small).correct
    assert not grade_math("x", "x+" + small).correct
    assert not grade_math("y=x", "y=x+" + small).correct
    assert grade_math(small, small + "+0").correct


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        (r"\frac{1}{2^{201}}", r"\frac{1}{2^{200}}"),
        ("e^{-101}", "e^{-100}"),
        (r"\sqrt{1+10^{-200}}", "1"),
        (r"e^{\pi\sqrt{163}}", "262537412640768744"),
        (r"10^{50}+\pi", r"10^{50}+e"),
        (r"\lceil n/2\rceil-1", r"\lfloor n/2\rfloor"),
        (r"\lceil x\rceil", r"\lfloor x\rfloor+1"),
        (r"\lceil x\rceil+n!", r"\lfloor x\rfloor+1+n!"),
        ("1", r"\tanh(200)"),
        ("1", r"\tanh(900)"),
        (r"\cos(10^{-30})", "1"),
        (r"\cos(10^{-90})", "1"),
        (r"|x-10^6|", "10^6-x"),
        (r"\sqrt{(x-50)^2}", "50-x"),
        (r"\max(x,-40)", "x"),
        (r"\min(x,10^9)", "x"),
        (r"\frac{|x-100|}{x-100}", "-1"),
    ],
)
def test_close_formulas_are_unequal(answer, gold):
    assert not grade_math(answer, gold).correct and not grade_math(gold, answer).correct


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        (r"\lfloor \frac{n}{10^6}\rfloor", "0"),
        (r"n+\lfloor\frac{n}{500}\rfloor", "n"),
        (r"\binom{n}{40}", "0"),
        (r"\prod_{k=1}^{30}(n-k)+n", "n"),
        (r"\max(n,1000)", "1000"),
        ("|n-500|", "500-n"),
    ],
)
def test_formulas_in_an_integer_that_differ_beyond_their_numbers_are_unequal(answer, gold):
    assert not grade_math(answer, gold, question="Let n be a positive integer.").correct


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("1+2^{1009}", "2^{1009}+1"),
        ("2^{1000}+1", "4^{500}+1"),
        (r"2016\cdot 2015!", "2016!"),
        (r"\frac{2018!}{1009!\cdot 1009!}", r"\binom{2018}{1009}"),
        (r"\frac{1}{4^{50}}", r"\frac{1}{2^{100}}"),
        (r"\sqrt{2}+\sqrt{3}", r"\sqrt{5+2\sqrt{6}}"),
        (r"\frac{1}{e^{100}}", "e^{-100}"),
        (r"x^{500}\cdot x^{400}+\sqrt{x^2+2x+1}", r"x^{900}+|x+1|"),
        (r"n\cdot(n-1)!", "n!"),
        (r"\frac{n(n-1)}{2}", r"\binom{n}{2}"),
        ("xy=1", r"y=\frac{1}{x}"),
        (r"\ln((5-x)(7-x))", r"\ln(5-x)+\ln(7-x)"),
        (r"\sqrt{(5-x)(7-x)}", r"\sqrt{5-x}\sqrt{7-x}"),
        ("1", r"\cosh^2(200)-\sinh^2(200)"),
        (r"\frac{e^{200}-e^{-200}}{e^{200}+e^{-200}}", r"\tanh(200)"),
    ],
)
def test_large_and_small_formulas_are_equal(answer, gold):
    assert grade_math(answer, gold).correct and grade_math(gold, answer).correct


def test_a_function_is_not_a_factor():
    assert not grade_math("f(x+1)", "fx+f").correct and not grade_math("fx+f", "f(x+1)").correct
    assert not grade_math("g(x+1)", "gx+g").correct and not grade_math("2f(x)", "f(2x)").correct
    assert not grade_math("f'(x+1)", "f(x+1)").correct
    assert grade_math("f(1+x)+1", "1+f(x+1)").correct and grade_math("h(a+b)", "ah+bh").correct
    assert grade_math("f(f(x+1))", "f(f(1+x))").correct


@pytest.mark.parametrize(
    "answer", ["1=2", "3=4=2", "1=x=2", r"\pi=2", r"6\cdot 7=2", r"\sqrt{5}\approx 2.5=2", r"1.4\approx 2"]
)
def test_a_chain_with_a_false_step_is_wrong(answer):
    assert not grade_math(answer, "2").correct


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        (r"\boxed{6\cdot 7=42}", "42"),
        (r"\frac{84}{2}=42", "42"),
        (r"2+40=6\cdot 7=42", "42"),
        (r"x=\frac{84}{2}=42", "42"),
        (r"\sqrt{2}\approx 1.41", r"\sqrt{2}"),
        (r"\sqrt{2}\approx 1.414", "1.414"),
        (r"x=\sqrt{2}\approx 1.41", r"\sqrt{2}"),
        (r"\frac{2}{3}≈0.667", "2/3"),
        (r"A=\pi r^2=25\pi", r"25\pi"),
        ("5 km=5000 m", "5 km"),
    ],
)
def test_a_chain_of_equalities_equals_its_members(answer, gold):
    assert grade_math(answer, gold).correct


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_limit_on_cpu_time_holds_after_a_destructor_has_swallowed_it():
    class Slow:
        def __del__(self):
            while True:  # until the limit raises, which Python reports and ignores
                pass

    with pytest.raises(math_engine._CpuTimeExceeded), math_engine._cpu_limit(0.05):
        Slow()
        while True:
            pass
