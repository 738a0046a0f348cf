# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
import unittest

from tabular import Column, Table, read_csv, write_csv


def prices():
    table = Table([Column("name"), Column("price", digits=2)])
    table.add("tea", 3.5)
    table.add("bread", 12)
    return table


class Tables(unittest.TestCase):
    def test_a_table_is_rendered(self):
        lines = ["+-------+-------+", "| name  | price |", "+-------+-------+"]
        lines += ["| tea   |  3.50 |", "| bread | 12.00 |", "+-------+-------+"]
        self.assertEqual(prices().render(), "\n".join(lines))

    def test_rows_are_sorted(self):
        self.assertEqual(prices().sorted("name").column("name"), ["bread", "tea"])

    def test_sums(self):
        self.assertEqual(prices().total("price"), 15.5)

    def test_csv(self):
        table = read_csv("name,price\ntea,3.5\nbread,12\n")
        self.assertEqual(table.rows, [["tea", 3.5], ["bread", 12]])
        self.assertEqual(write_csv(table), "name,price\ntea,3.5\nbread,12\n")


if __name__ == "__main__":
    unittest.main()
