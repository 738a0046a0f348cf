# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
from markup import anchors, contents, parse, plain_text, render

DOCUMENT = """# The *first* title

A paragraph with `code <b>`, a [link](/a?b&c "x) and
a second line.\\
A third one.
> A quote
> - with a list
>
> and a paragraph

1. one
2. two

   more of two
   - nested
     - deeper
10. ten

| a \\| b | c |  d |
|:---|---:|:-:|
| 1 | *2*
| x | y | z | too many |

```python
def f():
    return "<>"

```
***
### Last ##
"""


def probe_document():
    return render(DOCUMENT)


def probe_document_as_text():
    return plain_text(DOCUMENT)


def probe_document_blocks():
    return parse(DOCUMENT)


def probe_headings():
    return [render(text) for text in ("# a", "###### f", "####### g", "#a", "#", "## a ##", "# a#", "# # b #", " # c")]


def probe_heading_shift():
    return [render("# a\n###### b", shift=shift) for shift in (0, 1, 5, -3)]


def probe_paragraphs():
    return parse("a\n  b  \n\n\nc\n# d\ne\n> f\ng\n```\nh\n```\ni")


def probe_paragraphs_and_lists():
    return parse("a\n- b\n\nc\n1. d\n\ne\n2. f\ng\n***\nh\n-")


def probe_rules():
    return [parse(text)[0][0] for text in ("---", "- - -", "***", "__", "--", "___ _", "-*-", "----------", "- --")]


def probe_code():
    return [
        parse(text) for text in ("```\na\n\n  b\n```\nc", "```py x\n```", "```\nopen\n# a", "```\n``` \nx", "````\na")
    ]


def probe_code_as_html():
    return [render("```py x\n<&>\n```"), render("```\n```"), render("```\n\n```")]


def probe_quotes():
    return [parse(text) for text in (">a\n> b\n>  c", "> a\n>\n> b", "> > a\n> b", ">", "> # a\nb")]


def probe_lists():
    return [parse(text) for text in ("- a\n* b", "- a\n\n- b\n\n\nc", "- a\n1. b", "-\n- a", "-a")]


def probe_list_numbers():
    return [parse(text) for text in ("1. a\n7. b", "0. a", "12. a\n13. b", "1.a", "1234567890. a", "3.")]


def probe_list_items():
    return [
        parse(text)
        for text in ("- a\n  b", "- a\nb", "- a\n\n  b\n\nc", "- a\n\n\n  b", "- a\n b", "- # a\n  ```\n  x\n  ```")
    ]


def probe_nested_lists():
    return [
        parse(text)
        for text in ("- a\n  - b\n    - c\n- d", "1. a\n   - b\n   - c\n2. d", "- a\n\n  - b\n\n- c", "- - a")
    ]


def probe_lists_and_rules():
    return [parse(text) for text in ("- a\n---\n- b", "- a\n\n* * *\n\n- b", "- a\n- - -\nb")]


def probe_lists_as_html():
    return [
        render(text) for text in ("1. a\n2. b", "5. a", "0. a", "- a\n\n  b", "-\n- a", "- a\n  - b\n- ```\n  x\n  ```")
    ]


def probe_nested_lists_as_html():
    return render("- a\n  1. b\n     more\n  2. c\n- d\n\n  e\n  - f")


def probe_tables():
    return [
        parse(text)
        for text in ("a|b\n-|-\n1|2\n\n3|4", "|a|\n|-|\n|b|\n|c|", "a|b\n-\n", "a\n---", "a|b\n---|--x", "a|b\n:|-")
    ]


def probe_table_aligns():
    return parse("|a|b|c|d|\n|-|:-|-:|:-:|\n||x|\n")


def probe_table_cells():
    return parse("a \\| b | c\n--- | ---\n \\| | d \\|\n| e | f | g |\nh |")


def probe_tables_as_html():
    return render("|a|*b*|\n|:-:|--|\n|`<`| |\nnext")


def probe_table_after_a_paragraph():
    return parse("text\na|b\n-|-\n1|2\nend")


def probe_emphasis():
    return [render(text) for text in ("*a*", "**a**", "*a **b** c*", "**a *b* c**", "*a*b", "a*b*c", "**a**b")]


def probe_emphasis_without_partner():
    return [
        render(text)
        for text in ("*a", "a*", "**a", "a * b * c", "*a *b", "** a**", "**a **", "*a\nb*", "*", "**", "2*3")
    ]


def probe_emphasis_and_code():
    return [
        render(text) for text in ("*a `*` b*", "`*a*`", "**a `**` b**", "*a \\* b*", "*`a*`", "**a * b**", "*a ** b*")
    ]


def probe_inline_code():
    return [
        render(text)
        for text in ("`a`", "``a`b``", "`` ` ``", "`a", "``a`", "` a `", "`  `", "` a`", "`a\nb`", "`a``b`")
    ]


def probe_escapes():
    return [
        render(text)
        for text in ("\\*a*", "\\a", "\\\\", "\\`a`", "\\[a](b)", "a\\", "\\<", "\\&", "`\\*`", "\\!\\[a](b)")
    ]


def probe_breaks():
    return [render("a\\\nb"), plain_text("a\\\nb"), render("a  \nb"), render("a\\\\\nb")]


def probe_html_is_escaped():
    return [render("<b> & \"c\" 'd' &amp;"), render('`<&">`'), render('# <a "b">')]


def probe_links():
    return [
        render(text)
        for text in ("[a](b)", "[a]( b )", "[a](b c)", "[a] (b)", "[a](b", "[a", "[](b)", "[a]()", "[a](/b?c=1&d=2)")
    ]


def probe_links_with_brackets():
    return [
        render(text) for text in ("[a [b] c](d)", "[a](b(c)d)", "[a\\]b](c)", "[a](b\\)c)", "[a](b)c)", "[[a](b)](c)")
    ]


def probe_links_with_marks():
    return [render(text) for text in ("[*a* `b`](c)", "*[a](b)*", "**a [b](c*)**", "[a*](b) c*")]


def probe_addresses():
    addresses = [
        "javascript:x",
        "JavaScript:x",
        "HTTP://a",
        "mailto:a@b",
        "data:x",
        "a:b",
        "/a:b",
        "?a:b",
        "#a:b",
        "./a:b",
        "ftp://a",
        "a/b:c",
    ]
    return [render(f"[x]({address})") for address in addresses]


def probe_images():
    return [
        render(text)
        for text in ("![a](b)", "![*a* b](c)", "!a", "![a]", '![a"](javascript:x)', "[![a](b)](c)", "a![b](c)")
    ]


def probe_addresses_in_brackets():
    return [
        render(text)
        for text in (
            "<http://a?b&c>",
            "<mailto:a@b>",
            "<a>",
            "<https://a b>",
            "<https://a",
            "a<http://b>c>",
            "a < b > c",
        )
    ]


def probe_plain_blocks():
    return [
        plain_text(text)
        for text in ("# a *b*\n## c", "---", "> a\n> b\n>\n> c", "```\na\n\n  b\n```", "a|b\n-|-\n*1*|`2`")
    ]


def probe_plain_lists():
    return [
        plain_text("- a\n- b\n  - c\n    d", "+"),
        plain_text("9. a\n10. b\n\n    c"),
        plain_text("0. a\n1. b"),
        plain_text("- a\n\n  b"),
    ]


def probe_plain_marks():
    return plain_text("*a **b*** `c` [d *e*](f) ![g](h) <mailto:i@j> \\* <k>")


def probe_plain_empty():
    return [plain_text(""), plain_text("\n\n"), plain_text("#\n\na"), plain_text(">\n\na"), render(""), parse(" \n\t")]


def probe_anchors():
    return anchors("# A b\n## A, b!\n# *C* `d`\n# --\n# ??\n> # E\n\n- # F\n\n# a b 2\n# A b\n# Über 2")


def probe_anchors_as_html():
    return render('# A\n> ## B "c"\n\n- ## A\n\n# D', anchored=True)


def probe_contents():
    return contents("# A\n### B\n## C\n#### D\n# E\n## *F*\n> ## F")


def probe_contents_levels():
    text = "## A\n# B\n### C\n## D\n###### E"
    return [contents(text), contents(text, 1), contents(text, 6), contents("a")]


def probe_tabs_and_line_ends():
    return [parse("a\r\nb\r\n\r\n- c\r\n"), parse("-\ta"), parse("```\n\ta\n```")]


def probe_many_marks():
    text = "*a " * 30 + "b" + "*" * 30
    return [render("[" * 30 + "a" + "](b)" * 30).count("<a"), render(text).count("<em>"), len(render("`" * 50))]


def probe_lists_with_several_empty_lines():
    texts = ("- a\n\n\n- b", "1. a\n\n\n\n2. b\n\n3. c", "- a\n\n\n\nend", "- a\n\n\n1. b")
    return [parse(text) for text in texts]


def probe_indentation_below_wide_markers():
    fences = ["    ```\n      x\n    y\n    ```", "     ```\n      x\n     y\n     ```", "   ```\n     x\n   y\n   ```"]
    texts = [f"{marker} a\n\n{fence}" for marker, fence in zip(("10.", "100.", "1."), fences)]
    return [render(text) for text in texts]
