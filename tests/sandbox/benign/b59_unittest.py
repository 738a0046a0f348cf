# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: Ran_3_tests
import sys
import unittest
from unittest import mock


def add(a, b):
    return a + b


class AddTest(unittest.TestCase):
    def setUp(self):
        self.one = 1

    def test_add(self):
        self.assertEqual(add(self.one, 2), 3)

    def test_subtests(self):
        for n in range(3):
            with self.subTest(n=n):
                self.assertGreater(add(n, 1), n)

    @mock.patch("sys.platform", "plan9")
    def test_mock(self):
        self.assertEqual(sys.platform, "plan9")


sys.stderr = sys.stdout
unittest.main()
