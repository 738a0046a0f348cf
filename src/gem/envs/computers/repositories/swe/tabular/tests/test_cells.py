# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
import unittest

from tabular import format_number, pad, wrap


class Cells(unittest.TestCase):
    def test_padding(self):
        self.assertEqual(pad("ab", 5), "ab   ")
        self.assertEqual(pad("ab", 5, "right"), "   ab")

    def test_a_long_text_is_cut(self):
        self.assertEqual(pad("abcdef", 4), "abc.")

    def test_wrapping(self):
        self.assertEqual(wrap("one two three", 7), ["one two", "three"])

    def test_numbers(self):
        self.assertEqual(format_number(3), "3")
        self.assertEqual(format_number(3.14159, digits=2), "3.14")
        self.assertEqual(format_number(12345, thousands=True), "12,345")


if __name__ == "__main__":
    unittest.main()
