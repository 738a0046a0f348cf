# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
import unittest

from routes import NotFound, Router, build_query, join, normalize, parse_query, split


class Urls(unittest.TestCase):
    def test_a_url_is_split(self):
        url = split("https://me@Example.org:8080/a/b?x=1#top")
        self.assertEqual(url, ("https", "me", "example.org", 8080, "/a/b", "x=1", "top"))
        self.assertEqual(str(url), "https://me@example.org:8080/a/b?x=1#top")

    def test_references_are_joined(self):
        self.assertEqual(join("http://a/b/c", "d"), "http://a/b/d")
        self.assertEqual(join("http://a/b/c", "../d"), "http://a/d")

    def test_urls_are_normalized(self):
        self.assertEqual(normalize("HTTP://A:80"), "http://a/")


class Queries(unittest.TestCase):
    def test_a_query_is_parsed(self):
        self.assertEqual(parse_query("a=1&b=x+y&a=2"), {"a": ["1", "2"], "b": ["x y"]})

    def test_a_query_is_built(self):
        self.assertEqual(build_query({"a": [1, 2], "b": "x y"}), "a=1&a=2&b=x+y")


class Routers(unittest.TestCase):
    def setUp(self):
        self.router = Router()
        self.router.add("GET", "/users/<id:int>", "user")
        self.router.add("GET", "/users/new", "new")

    def test_a_path_is_matched(self):
        self.assertEqual(self.router.match("GET", "/users/7"), ("user", {"id": 7}))
        self.assertEqual(self.router.match("GET", "/users/new"), ("new", {}))

    def test_an_unknown_path(self):
        with self.assertRaises(NotFound):
            self.router.match("GET", "/groups")

    def test_a_path_is_built(self):
        self.assertEqual(self.router.build("user", id=7), "/users/7")


if __name__ == "__main__":
    unittest.main()
