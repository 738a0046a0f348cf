# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
import unittest

from spans import Calendar, Rule, Spans, add_months, date_of, day_number, free, meeting, weekday


class Sets(unittest.TestCase):
    def test_intervals_are_joined(self):
        self.assertEqual(Spans([(5, 7), (1, 3), (2, 4)]).pairs, [(1, 4), (5, 7)])

    def test_operations(self):
        left, right = Spans([(0, 10)]), Spans([(3, 5)])
        self.assertEqual((left - right).pairs, [(0, 3), (5, 10)])
        self.assertEqual((left & right).pairs, [(3, 5)])
        self.assertIn(3, right)
        self.assertNotIn(5, right)


class Dates(unittest.TestCase):
    def test_numbers_of_days(self):
        self.assertEqual(day_number((2000, 1, 1)), 730120)
        self.assertEqual(date_of(730120), (2000, 1, 1))
        self.assertEqual(weekday((2000, 1, 1)), 5)

    def test_months(self):
        self.assertEqual(add_months((2023, 1, 31), 1), (2023, 2, 28))

    def test_rules(self):
        rule = Rule("weekly", days=["mon", "thu"])
        self.assertEqual(rule.dates((2024, 1, 1), (2024, 1, 9)), [(2024, 1, 1), (2024, 1, 4), (2024, 1, 8)])


class Plans(unittest.TestCase):
    def test_free_times(self):
        busy = Spans([(540, 600), (615, 660)])
        self.assertEqual(free(busy, (480, 720), 30).pairs, [(480, 540), (660, 720)])
        self.assertEqual(meeting([busy], (540, 720), 15), (600, 615))

    def test_working_days(self):
        self.assertEqual(Calendar().add((2024, 1, 5), 1), (2024, 1, 8))


if __name__ == "__main__":
    unittest.main()
