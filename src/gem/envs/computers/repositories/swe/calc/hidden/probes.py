# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
from calc import EvaluationError, ParseError, derivative, evaluate, parse, simplify, substitute


def values(*texts, **variables):
    results = []
    for text in texts:
        try:
            results.append(evaluate(text, variables))
        except EvaluationError:
            results.append("no value")
        except ParseError as error:
            results.append(f"not parsed at {error.position}")
    return results


def shown(change, *texts):
    return [str(change(parse(text))) for text in texts]


def probe_sums():
    return values("1 + 2", "7 - 2 - 1", "2 - 3 + 4", "-1 + 3", "1 - -1")


def probe_products():
    return values("2 * 3 + 4", "2 + 3 * 4", "12 / 3 * 2", "12 / (3 * 2)", "7 % 4 * 2")


def probe_division():
    return values("6 / 3", "7 / 2", "-6 / 3", "0 / 5", "6.0 / 3", "1 / 0", "6 / 0.0")


def probe_division_of_integers():
    return values("6 / -3", "-6 / -3", "0 / -5", "10 ^ 30 / -10 ^ 2", "(10 ^ 30 + 1) / 1", "7 / -2")


def probe_remainder():
    return values("7 % 3", "-7 % 3", "7 % -3", "7.5 % 2", "1 % 0")


def probe_powers():
    return values("2 ^ 3 ^ 2", "-2 ^ 2", "(-2) ^ 2", "2 ^ -1", "2 ^ -2 ^ 0", "0 ^ 0", "4 ^ 0.5", "2 * 3 ^ 2")


def probe_powers_without_value():
    return values("0 ^ -1", "(-8) ^ 0.5", "10 ^ 5000", "2 ^ 5000 > 1", "1 ^ 9999", "2.0 ^ 5000")


def probe_power_limit():
    return values("2 ^ 4999 > 1", "2 ^ 5001 > 1", "1 ^ 10000", "1 ^ 10001", "2 ^ -6000 < 1")


def probe_signs():
    return values("--2", "-+2", "+-+2", "2 * -3", "-2 * 3", "-x ^ 2", "-x % 4", x=3)


def probe_comparisons():
    return values("1 < 2", "2 < 1", "2 <= 2", "2 >= 3", "2 > 2", "3 == 3.0", "3 != 3", "1 + 1 == 2", "1 < 2 == 1")


def probe_comparison_order():
    return values("3 > 2 > 1", "1 == 2 < 3", "2 < 3 == 2 < 3", "1 + 2 < 2 + 2")


def probe_choices():
    return values("1 ? 2 : 3", "0 ? 2 : 3", "x > 1 ? x : -x", "0 ? 1 : 0 ? 2 : 3", "1 ? 0 ? 4 : 5 : 6", x=-4)


def probe_choices_need_one_side():
    return values("0 ? 1 / 0 : 5", "1 ? 5 : 1 / 0", "1 / 0 ? 1 : 2", "and(0, 1 / 0)", "or(1, 1 / 0)", "and(1, 1 / 0)")


def probe_logic():
    return values("and(1, 2)", "and(1, 0, 1)", "or(0, 0)", "or(0, 7)", "and()", "or()")


def probe_variables():
    return values("x * y_2 + _z", "pi > 3", "e > pi", "unknown", x=2, y_2=5, _z=1)


def probe_variables_before_constants():
    return values("pi", "e + 1", pi=3, e=0)


def probe_functions():
    return values("abs(-3)", "min(3, 1, 2)", "max(3, 1, 2)", "sqrt(9)", "floor(-1.5)", "ceil(-1.5)", "hypot(3, 4)")


def probe_more_functions():
    return values("mean(1, 2, 6)", "clamp(5, 0, 3)", "clamp(-5, 0, 3)", "clamp(2, 0, 3)", "clamp(1, 3, 0)", "exp(0)")


def probe_rounding():
    return values("round(2.5)", "round(-2.5)", "round(3.49)", "round(1.25, 1)", "round(-0.375, 2)", "round(1234, -2)")


def probe_argument_counts():
    return values("abs()", "abs(1, 2)", "min()", "round(1, 2, 3)", "clamp(1, 2)", "nothing(1)", "max(4)")


def probe_functions_without_value():
    return values("sqrt(-1)", "ln(0)", "exp(10000)", "ln(1)", "hypot()")


def probe_numbers():
    return values("1_000", "0.5", ".5", "5.", "1e3", "1E-2", "2.5e+1", "007")


def probe_numbers_wrong():
    return values("1_", "1..2", "1e", "1_000_ + 1", "1.2.3", ".", "2e+")


def probe_names_next_to_numbers():
    return values("2x", "2e", "x2", x2=5, x=3)


def probe_comments():
    return values("1 + # one\n 2", "3 # three", "# nothing", "\t4\n", "1 # a\n + 2 # b\n + 3", "#\n#\n5")


def probe_not_parsed():
    return values("", "1 +", "(1", "1)", "1 2", "* 3", "f(1,", "f(1,)", "1 $ 2", "a ? b", "a ? b : ", "()")


def probe_messages():
    found = []
    for text in ("1 2", "(1", "1 +", "$", "f(1 2)", "1_"):
        try:
            parse(text)
        except ParseError as error:
            found.append(str(error))
    return found


def probe_depth():
    fine = evaluate("(" * 90 + "7" + ")" * 90)
    return [fine, *values("(" * 150 + "7" + ")" * 150, "-" * 150 + "1")]


def probe_many_operators():
    return [evaluate("+".join(["1"] * 500)), evaluate("*".join(["(1)"] * 300)), evaluate("-".join(["1"] * 200))]


def probe_trees():
    return [parse(text) for text in ("a - b - c", "a ^ b ^ c", "-a ^ b", "f(a, 1)", "a ? b : c ? d : g")]


def probe_tree_equality():
    return [
        parse("a+b") == parse("a + (b)"),
        parse("a+b") == parse("b+a"),
        len({parse("f(x)"), parse("f( x )"), parse("f(y)")}),
        parse("x") == parse("1"),
    ]


def probe_names():
    return [parse(text).variables() for text in ("b + a * b", "f(z, -y)", "1", "c ? d : a", "x ^ x")]


def probe_text():
    return shown(lambda tree: tree, "a-(b-c)", "(a-b)-c", "a/(b*c)", "a*b/c", "(a+b)*c", "a+(b*c)", "a%(b%c)")


def probe_text_of_powers():
    return shown(lambda tree: tree, "(a^b)^c", "a^(b^c)", "(-a)^b", "-(a^b)", "a^-b", "a^(b*c)", "(a*b)^c")


def probe_text_of_signs():
    return shown(lambda tree: tree, "-(-a)", "-(a+b)", "-(a*b)", "-a*b", "a--b", "a*-b", "-f(a)")


def probe_text_of_choices():
    return shown(lambda tree: tree, "(a?b:c)+1", "a?b:(c?d:e)", "a?(b?c:d):e", "(a?b:c)?d:e", "a<b?1:0", "a==(b<c)")


def probe_text_of_comparisons():
    return shown(lambda tree: tree, "(a==b)==c", "a==(b==c)", "(a<b)<c", "a+1<b", "(a<b)+1", "a<(b==c)")


def probe_text_is_parsed_to_the_same():
    texts = ["a-(b-c)*-d^-(e+1)", "-(a?b:c)^2", "f(a?b:c,-d)%(g%h)", "((a<b)==c)!=(d>=e)", "-(-(a*b))", "(a^-b)^c"]
    return [parse(str(parse(text))) == parse(text) for text in texts]


def probe_substitution():
    changes = {"x": parse("y + 1"), "y": 2}
    return [str(substitute(parse(text), changes)) for text in ("x * y", "f(x, z)", "-x ^ y", "x ? y : x")]


def probe_simple_numbers():
    return shown(simplify, "1 + 2 * 3", "2 - 5", "1 / 0 + 2 * 3", "6 / 4", "2 < 3", "-(3)", "-(2 - 5)", "10 ^ 9999")


def probe_simple_sums():
    return shown(simplify, "x + 0", "0 + x", "x + -y", "x + x", "x - x", "x - 0", "0 - x", "x - -y", "f(0 + x)")


def probe_simple_products():
    return shown(simplify, "x * 0", "0 * x", "x * 1", "1 * x", "x * 3", "-x * y", "x * -y", "-x * -y", "2 * (3 * x)")


def probe_simple_quotients():
    return shown(simplify, "x / 1", "0 / x", "0 / 0", "x / x", "x / 2")


def probe_simple_powers():
    return shown(simplify, "x ^ 0", "x ^ 1", "(x ^ 2) ^ 3", "x ^ 2 ^ 3", "(x ^ 0.5) ^ 2", "(x ^ y) ^ 2", "1 ^ x")


def probe_simple_signs():
    return shown(simplify, "--x", "-(x - y)", "-0", "---x", "-(x + y)", "-(0 - x)", "0 - (x - y)")


def probe_simple_choices():
    return shown(simplify, "1 ? x : y", "0 ? x : y", "1 - 1 ? x : y", "a ? x + 0 : x", "a ? x : y", "2 < 3 ? x : y")


def probe_derivatives():
    return shown(lambda tree: derivative(tree, "x"), "5", "y", "x", "3 * x", "x ^ 3", "-x", "x - y", "x * y", "x * x")


def probe_derivatives_of_quotients():
    return shown(lambda tree: derivative(tree, "x"), "1 / x", "x / 2", "x / y", "x / (x + 1)")


def probe_derivatives_of_powers():
    return shown(lambda tree: derivative(tree, "x"), "(2 * x) ^ 2", "2 ^ x", "x ^ n", "x ^ -1", "y ^ (2 * x)")


def probe_derivatives_of_functions():
    return shown(lambda tree: derivative(tree, "x"), "exp(2 * x)", "ln(x)", "sqrt(x)", "ln(x ^ 2)", "exp(y)")


def probe_derivatives_of_choices():
    return shown(lambda tree: derivative(tree, "x"), "x > 0 ? x : -x", "x > 0 ? 1 : x ^ 2")


def probe_no_derivative():
    return derivative(parse("floor(x)"), "x")


def probe_no_derivative_of_power():
    return derivative(parse("x ^ x"), "x")


def probe_derivative_values():
    slope = derivative(parse("(x ^ 2 + 1) / (2 * x - y)"), "x")
    return [round(evaluate(slope, {"x": x, "y": 1}), 9) for x in (1, 2, -3)]


def probe_taller_towers():
    return [*values("2 ^ 1 ^ 3 ^ 2", "2 ^ 3 ^ 0 ^ 5 ^ 2", "2 ^ 2 ^ 2 ^ 1 ^ 7"), parse("a ^ b ^ c ^ d ^ f")]


def probe_logic_of_other_numbers():
    return values("or(0, -3)", "or(0, 0.5)", "and(-1, 0.25)", "or(-2, 1 / 0)", "and(-2, 0, 1)", "or(0, 0.0)")


def probe_choices_of_a_side_without_value():
    return values("1 ? 1 / 0 : 5", "0 ? 5 : 1 / 0", "1 ? unknown : 2", "0 ? 2 : sqrt(-1)", "1 ? ln(0) : 1")
