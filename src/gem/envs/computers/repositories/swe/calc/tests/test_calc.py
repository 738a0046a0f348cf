# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
import unittest

from calc import EvaluationError, ParseError, derivative, evaluate, parse, simplify


class Values(unittest.TestCase):
    def test_precedence(self):
        self.assertEqual(evaluate("1 + 2 * 3"), 7)
        self.assertEqual(evaluate("(1 + 2) * 3"), 9)

    def test_variables(self):
        self.assertEqual(evaluate("2 * x ^ 2", {"x": 3}), 18)

    def test_functions(self):
        self.assertEqual(evaluate("max(1, 2) + sqrt(16)"), 6)

    def test_errors(self):
        with self.assertRaises(EvaluationError):
            evaluate("1 / 0")
        with self.assertRaises(ParseError):
            parse("1 +")


class Trees(unittest.TestCase):
    def test_text_of_a_tree(self):
        self.assertEqual(str(parse("2*(x+1)")), "2 * (x + 1)")

    def test_simplification(self):
        self.assertEqual(str(simplify(parse("x * 1 + 0"))), "x")

    def test_derivative(self):
        self.assertEqual(str(derivative(parse("x ^ 2"), "x")), "2 * x")


if __name__ == "__main__":
    unittest.main()
