# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
from tabular import Column, Table, format_number, pad, read_csv, wrap, write_csv


def stock():
    columns = [Column("item"), Column("shelf"), Column("price", digits=2), Column("count", thousands=True)]
    table = Table(columns)
    table.add("tea", "a", 3.5, 1200)
    table.add("bread", "b", 12)
    table.add("salt", "a", count=35, price=0.996)
    table.add("oil", None, -7.25, 1234567)
    return table


def probe_pad_left():
    return [pad("ab", 4), pad("", 3), pad("abcd", 4)]


def probe_pad_right():
    return [pad("ab", 4, "right"), pad("abcd", 4, "right")]


def probe_pad_center():
    return [pad("ab", 5, "center"), pad("abc", 8, "center"), pad("ab", 4, "center")]


def probe_pad_unknown():
    return pad("a", 3, "middle")


def probe_pad_wide_characters():
    return [pad("日本", 6), pad("日本", 6, "right"), pad("e\u0301a", 4)]


def probe_cut():
    return [pad("abcdef", 3), pad("abcdef", 1), pad("abcdef", 0), pad("日本語", 4), pad("日本語", 5)]


def probe_wrap():
    return wrap("the quick brown fox jumps over it", 9)


def probe_wrap_exact():
    return [wrap("ab cd ef", 5), wrap("ab cd ef", 2), wrap("abcd", 4)]


def probe_wrap_long_words():
    return [wrap("a abcdefgh b", 3), wrap("abcdefghi", 3), wrap("日本語", 3), wrap("日", 1)]


def probe_wrap_lines():
    return [wrap("a\n\nb c", 10), wrap("", 4), wrap("  a  b ", 9), wrap("x\n", 3)]


def probe_wrap_size():
    return wrap("a", 0)


def probe_number_rounding():
    return [format_number(x, 2) for x in (2.5, 0.125, 0.375, -0.125, 1.999, -3, 100)]


def probe_number_no_digits():
    return [format_number(x, 0) for x in (0.5, 1.5, 2.4, -2.5, 10)]


def probe_number_small_negative():
    return [format_number(-0.001, 2), format_number(-0.4, 0), format_number(0, 1), format_number(-0.05, 1)]


def probe_number_leading_zeros():
    return [format_number(1.05, 2), format_number(0.07, 2), format_number(12.003, 3)]


def probe_number_thousands():
    return [format_number(x, thousands=True) for x in (1, 999, 1000, 123456, 1234567, -1234, -123)]


def probe_number_thousands_with_digits():
    return [format_number(1234.5, 2, True), format_number(-999999.999, 2, True), format_number(1000.25, None, True)]


def probe_render():
    return stock().render()


def probe_render_plain():
    return stock().render(border=False)


def probe_render_totals():
    return stock().render(totals=["price", "count"])


def probe_render_totals_first():
    table = Table([Column("n"), Column("m")])
    table.add(3, "x")
    table.add(14, "y")
    return table.render(border=False, totals=["n"])


def probe_render_wrapped():
    table = Table([Column("text", max_width=8), Column("n", min_width=5)])
    table.add("some words that go on", 1)
    table.add("a\nb", 22)
    return table.render()


def probe_render_lines():
    table = Table([Column("two\nlines"), Column("n")])
    table.add("one\nother", 1)
    table.add("x\n\nlonger line", None)
    return [table.render(), Column("ab\nc").size(["d\nefg", ""])]


def probe_render_plain_wrapped():
    table = Table([Column("n", align="center"), Column("text", max_width=6, align="right")])
    table.add(1, "one two three")
    table.add(None, "x")
    return table.render(border=False)


def probe_render_empty():
    return [Table([Column("a"), Column("bc", min_width=4)]).render(), Table([Column("")]).render(border=False)]


def probe_alignment():
    table = Table([Column("a b c"), Column("d e f"), Column("g h i"), Column("j k l")])
    table.add(1, "x", True, None)
    table.add(None, 2, False, None)
    return table.render()


def probe_missing():
    table = Table([Column("value", missing="none"), Column("n")])
    table.add()
    table.add("x", 0)
    return table.render()


def probe_titles_are_unique():
    return Table([Column("a"), Column("b"), Column("a")])


def probe_add_by_name():
    table = Table([Column("a"), Column("b"), Column("c")])
    table.add(1, c=3)
    table.add(b=2)
    return table.rows


def probe_add_too_many():
    return Table([Column("a")]).add(1, 2)


def probe_add_twice():
    return Table([Column("a"), Column("b")]).add(1, a=2)


def probe_add_unknown():
    return Table([Column("a"), Column("b")]).add(1, z=2)


def probe_sorted():
    return [stock().sorted("price").column("item"), stock().sorted("-price").column("item")]


def probe_sorted_none():
    return [stock().sorted("count").column("count"), stock().sorted("-count").column("count")]


def probe_sorted_two():
    return [stock().sorted("shelf", "item").column("item"), stock().sorted("-shelf", "-price").column("item")]


def probe_sorted_is_a_copy():
    table = stock()
    other = table.sorted("item")
    other.rows[0][0] = "changed"
    other.add("more")
    return [table.column("item"), other.column("item")]


def probe_where():
    return stock().where(lambda row: row["shelf"] == "a" and row["price"] > 1).rows


def probe_where_is_a_copy():
    table = stock()
    table.where(lambda row: True).rows[0][0] = "changed"
    return table.column("item")


def probe_sums():
    table = Table([Column("v")])
    for value in (1, None, "7", True, 2.5):
        table.add(value)
    return [table.total("v"), table.mean("v"), Table([Column("v")]).mean("v"), Table([Column("v")]).total("v")]


def probe_grouped():
    table = stock().grouped("shelf", "price", "count")
    return [[column.title for column in table.columns], table.rows, table.render()]


def probe_column_width():
    return Column("a", min_width=5, max_width=3)


def probe_column_width_equal():
    return [Column("a", min_width=3, max_width=3).size(["abcd"]), Column("a", max_width=1).size(["abc"])]


def probe_csv_values():
    return read_csv("a,b,c\n1, 2.5 ,x y\n,-3,\n").rows


def probe_csv_quotes():
    return read_csv('a,b\n"1","x, y"\n"say ""hi""","two\nlines"\n').rows


def probe_csv_empty_quotes():
    return read_csv('a,b\n"",\n "q" ,2').rows


def probe_csv_short_rows():
    return read_csv("a;b;c\n1\n\n2;3\n", ";").rows


def probe_csv_blank_lines():
    return read_csv('\na\n\n""\n\n5').rows


def probe_csv_long_row():
    return read_csv("a,b\n1,2,3\n")


def probe_csv_open_quote():
    return read_csv('a\n"b\n')


def probe_csv_no_titles():
    return read_csv("\n\n")


def probe_csv_written():
    return write_csv(stock())


def probe_csv_written_again():
    table = Table([Column("a"), Column("b,c")])
    for value in ("x,y", '"', "12", " z", "", None, 4, 0.5, "two\nlines", "1e5", "a;b"):
        table.add(value, "end")
    text = write_csv(table)
    return [text, read_csv(text).rows == table.rows]


def probe_csv_other_separator():
    table = read_csv("a;b\n1,5;x\n", ";")
    return [table.rows, write_csv(table), write_csv(table, ";")]


def probe_wrap_empty_lines():
    return [wrap(text, 4) for text in ("\na", "\n\na\n\nb", "\n", "a b c\n\n", " \na")]


def probe_sorted_three():
    table = Table([Column("a"), Column("b"), Column("c"), Column("d")])
    for number in (0, 7, 2, 5, 1, 6, 3, 4):
        table.add(number % 2, number // 2 % 2, number // 4, number)
    orders = (("a", "b", "c"), ("c", "-b", "a"), ("-a", "-b", "-c"), ("b", "c", "d"))
    return [table.sorted(*titles).column("d") for titles in orders]


def probe_number_thousands_below_zero():
    numbers = (-1, -12, -999, -1000, -12345, -123456, -654321.5, -1234567, -123456789)
    return [[format_number(x, thousands=True) for x in numbers], [format_number(x, 1, True) for x in numbers]]
