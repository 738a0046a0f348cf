# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
import unittest

from markup import anchors, contents, plain_text, render


class Html(unittest.TestCase):
    def test_blocks(self):
        self.assertEqual(render("# Title\n\ntext\nmore"), "<h1>Title</h1>\n<p>text\nmore</p>")

    def test_marks(self):
        self.assertEqual(render("*a* **b** `c`"), "<p><em>a</em> <strong>b</strong> <code>c</code></p>")

    def test_links(self):
        self.assertEqual(render("[x](http://y)"), '<p><a href="http://y">x</a></p>')

    def test_lists(self):
        self.assertEqual(render("- a\n- b"), "<ul>\n<li>a</li>\n<li>b</li>\n</ul>")

    def test_tables(self):
        html = "<table>\n<tr><th>a</th><th>b</th></tr>\n<tr><td>1</td><td>2</td></tr>\n</table>"
        self.assertEqual(render("| a | b |\n|---|---|\n| 1 | 2 |"), html)


class Texts(unittest.TestCase):
    def test_plain_text(self):
        self.assertEqual(plain_text("# T\n\n- *a*\n- b"), "T\n=\n\n* a\n* b")

    def test_anchors(self):
        self.assertEqual(anchors("# A b\n# A b"), ["a-b", "a-b-2"])
        self.assertEqual(contents("# A\n## B"), "- [A](#a)\n  - [B](#b)")


if __name__ == "__main__":
    unittest.main()
