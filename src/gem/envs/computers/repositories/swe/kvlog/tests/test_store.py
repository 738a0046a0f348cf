# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
import os
import tempfile
import unittest

from kvlog import Conflict, Store, decode, encode


class Stores(unittest.TestCase):
    def test_values_are_kept(self):
        store = Store()
        store.set("a", "1")
        store.set("b", "2")
        store.delete("a")
        self.assertEqual(store.keys(), ["b"])
        self.assertEqual(store.get("a", "none"), "none")

    def test_values_are_there_after_opening_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "log")
            with Store(path) as store:
                store.set("a", "1")
            with Store(path) as store:
                self.assertEqual(store.get("a"), "1")

    def test_a_transaction_is_taken_back(self):
        store = Store()
        store.set("a", "1")
        with self.assertRaises(ZeroDivisionError), store.transaction():
            store.set("a", "2")
            raise ZeroDivisionError
        self.assertEqual(store.get("a"), "1")

    def test_versions(self):
        store = Store()
        self.assertEqual(store.set("a", "1"), 1)
        with self.assertRaises(Conflict):
            store.set("a", "2", expected=5)

    def test_records(self):
        line = encode("delete", "key", 3)
        self.assertEqual(decode(line), ("delete", ["key", "3"]))


if __name__ == "__main__":
    unittest.main()
