# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
from routes import (
    MethodNotAllowed,
    Router,
    build_query,
    join,
    normalize,
    parse_query,
    quote,
    split,
    unquote,
)

BASE = "http://a/b/c/d;p?q"


def made():
    router = Router()
    router.add("GET", "/", "home")
    router.add("GET", "/files/<rest:path>", "files")
    router.add("GET", "/files/<name>", "file")
    router.add("get", "/files/<number:int>", "number")
    router.add("GET", "/files/<label:word>", "label")
    router.add("GET", "/files/index", "index")
    router.add("POST", "/files/<name>", "upload")
    router.add("DELETE", "/files/<name>", "remove")
    router.add("GET", "/users/<id:int>/posts/<post:int>", "post")
    router.add("GET", "/users/<id:int>/posts/", "posts")
    return router


def matches(router, *requests):
    results = []
    for request in requests:
        try:
            results.append(tuple(router.match(*request.split(" ", 1))))
        except LookupError as error:
            results.append((type(error).__name__, str(error)))
    return results


def results(function, *texts):
    found = []
    for text in texts:
        try:
            found.append(function(text))
        except (ValueError, LookupError) as error:
            found.append(type(error).__name__)
    return found


def probe_split():
    texts = ["http://a.b/c", "HTTP://User@A.B:81/C?D#E", "/a/b?c", "a/b", "", "mailto:x@y.z", "//h/p", "http://h?q#f"]
    return [tuple(split(text)) for text in texts]


def probe_split_schemes():
    return [(split(text).scheme, split(text).path) for text in ("a+b-c.1:x", "1a:x", "a_b:x", ":x", "a/b:c", "X:")]


def probe_split_empty_parts():
    return [tuple(split(text)) for text in ("http://h/?#", "http://h:/", "//", "?", "#", "a#b?c", "a?b?c#d#e")]


def probe_split_users():
    return [split(text)[1:4] for text in ("http://u:p@h", "http://@h", "http://a@b@h:5", "http://h/@x", "x://u@/y")]


def probe_split_addresses():
    return [split(text)[2:5] for text in ("http://[::1]/a", "http://[FE80::1]:80/a", "http://u@[::]:8")]


def probe_split_wrong():
    texts = [
        "http://h:x",
        "http://h:65535",
        "http://h:65536",
        "http://[::1",
        "http://[::1]a",
        "http://h:-1",
        "http://h:8a",
    ]
    return results(lambda text: split(text).port, *texts)


def probe_text():
    texts = ["http://u@h:1/p?q#f", "//h", "a?b", "#", "?", "x:y", "http://[::1]:5/", "HTTP://H/?#", "http://@h"]
    return [str(split(text)) for text in texts]


def probe_quote():
    return [quote("a b/c"), quote("ü~_.-"), quote("a/b", safe=""), quote("50%&+"), quote("a=b", safe="="), quote("日")]


def probe_unquote():
    return [
        unquote(text) for text in ("a%20b", "%C3%BC", "%c3%bc", "50%", "%4", "%zz", "%%41", "a+b", "%E6%97%A5", "%FF")
    ]


def probe_quote_and_unquote():
    text = "".join(map(chr, range(32, 300)))
    return [unquote(quote(text)) == text, unquote(quote(text, safe="")) == text]


def probe_join_usual():
    return [
        join(BASE, text) for text in ("g:h", "g", "./g", "g/", "/g", "//g", "?y", "g?y", "#s", "g#s", "g?y#s", ";x")
    ]


def probe_join_dots():
    return [
        join(BASE, text) for text in (".", "./", "..", "../", "../g", "../..", "../../", "../../g", "g/./h", "g/../h")
    ]


def probe_join_above_the_root():
    return [
        join(BASE, text)
        for text in ("../../../g", "../../../../g", "/./g", "/../g", "/a/b/../../../c", "g/../../../../x")
    ]


def probe_join_dots_in_names():
    return [join(BASE, text) for text in ("g.", ".g", "g..", "..g", "g;x=1/./y", "g?y/../x", "g#s/../x", "...")]


def probe_join_other_bases():
    return [join("http://h", "a"), join("http://h?q", "a"), join("http://h/a", ""), join("http://h/a?b#c", "#d")]


def probe_join_to_hosts_without_a_path():
    return [join(base, "a/b") for base in ("https://h", "ftp://u@h:5", "//h", "https://h#c")]


def probe_join_hosts():
    return [join("https://u@h:5/a/b", text) for text in ("c", "//i/d/../e", "http://j/./k", "?", "//i")]


def probe_join_empty_query():
    return [
        join("http://h/a?b", "?"),
        join("http://h/a?b", "#"),
        join("http://h/a?b#c", ""),
        join("http://h/a?b", "c?"),
    ]


def probe_normalize():
    return [
        normalize(text)
        for text in ("HTTP://EXAMPLE.org", "http://h:80/", "https://h:443/a", "https://h:80/", "ftp://h:21")
    ]


def probe_normalize_paths():
    return [
        normalize(text) for text in ("http://h/a/../b/./c", "http://h/../a", "a/../b", "http://h/a//b/", "http://h/..")
    ]


def probe_normalize_escapes():
    return [
        normalize(text) for text in ("http://h/%7Ea%2fb", "http://h/%41%zz%", "http://h/?a=%3d%62", "http://h/#%2d%c3")
    ]


def probe_normalize_reserved():
    texts = ("http://h/%3f%23%5b%40", "http://h/?a%26b=%2b", "http://h/%20%25", "http://h/#%21%24", "http://h/%41%7e%2d")
    return [normalize(text) for text in texts]


def probe_normalize_empty():
    return [normalize(text) for text in ("http://h/?", "http://h/#", "http://h/a?#", "//h", "", "x:")]


def probe_parse_query():
    return [parse_query(text) for text in ("a=1&b=2&a=3", "a", "a=", "=1", "a=b=c", "", "&&a=1&", "a=1;b=2")]


def probe_parse_query_escapes():
    return [parse_query(text) for text in ("a+b=c+d", "%26=%3D", "a%2Bb=1%2B1", "%C3%BC=%zz", "a=1%3B2")]


def probe_build_query():
    return [build_query({"a": 1, "b": None, "c": True, "d": False, "e": ""}), build_query([("a", "x"), ("a", "y")])]


def probe_build_query_lists():
    return [
        build_query({"a": [1, None, 2], "b": [], "c": ("x", True)}),
        build_query({}),
        build_query([("z", [3]), ("a", 4)]),
    ]


def probe_build_query_escapes():
    return [build_query({"a b": "c&d=e", "ü": "1+1", "/": "?;#%"}), build_query({"x": " y  z"})]


def probe_query_there_and_back():
    values = {"a b": ["1", "x+y", "&"], "=": ["", "ü;"], "c": ["%41"]}
    return parse_query(build_query(values)) == values


def probe_match():
    return matches(made(), "GET /", "GET /files/a-b", "get /files/index", "POST /files/x", "GET /nothing", "GET ")


def probe_match_order():
    return matches(made(), "GET /files/12", "GET /files/ab", "GET /files/a-b", "GET /files/a/b", "GET /files/index/x")


def probe_match_numbers():
    return matches(
        made(), "GET /users/07/posts/8", "GET /users/a/posts/8", "GET /users/-1/posts/8", "GET /users/²/posts/1"
    )


def probe_match_slashes():
    return matches(made(), "GET /users/1/posts/", "GET /users/1/posts", "GET /files/", "GET //files/x", "GET /files//x")


def probe_match_escapes():
    return matches(
        made(), "GET /files/a%20b", "GET /files/%69ndex", "GET /files/a%2Fb", "GET /files/%31", "GET /files/a%2Fb/c"
    )


def probe_match_ignores_the_query():
    return matches(made(), "GET /files/x?y=1/2", "GET /?a", "GET /users/1/posts/2?/3")


def probe_methods():
    return matches(made(), "PUT /files/x", "PUT /files/a/b", "POST /", "HEAD /files/index", "DELETE /files/7", "head /")


def probe_methods_of_specific_routes():
    return matches(made(), "POST /files/index", "POST /files/12", "PUT /files/12")


def probe_head_of_its_own():
    router = made()
    router.add("HEAD", "/files/<name>", "head")
    return matches(router, "HEAD /files/x", "HEAD /files/a/b", "HEAD /files/7", "OPTIONS /files/7")


def probe_allowed():
    try:
        made().match("PATCH", "/files/x")
    except MethodNotAllowed as error:
        return error.allowed


def probe_order_does_not_matter():
    patterns = ["/<a>/<b>", "/<a:int>/<b>", "/<a>/x", "/x/<b>", "/<a:int>/x", "/x/x", "/<p:path>"]
    found = []
    for order in (patterns, patterns[::-1]):
        router = Router()
        for pattern in order:
            router.add("GET", pattern, pattern)
        found.append(
            [router.match("GET", path).handler for path in ("/1/2", "/1/x", "/x/1", "/x/x", "/y/x", "/y/y", "/y")]
        )
    return found


def probe_patterns_wrong():
    patterns = [
        "a",
        "/<a:path>/b",
        "/<a>/<a>",
        "/<1>",
        "/<a:number>",
        "/<>",
        "/<a:>",
        "/<a",
        "/a>",
        "/<a:int>/<b:path>",
    ]
    return results(lambda pattern: Router().add("GET", pattern, 1), *patterns)


def probe_patterns_twice():
    router = made()
    patterns = [
        "/files/<other>",
        "/files/<other:int>",
        "/files/index",
        "/files/<other:path>",
        "/files/<x>/",
        "/Files/index",
    ]
    return results(lambda pattern: router.add("GET", pattern, 1), *patterns)


def probe_patterns_of_other_methods():
    router = made()
    router.add("PATCH", "/files/<other>", "patch")
    return matches(router, "PATCH /files/x", "GET /files/x-y")


def probe_build():
    router = made()
    return [
        router.build("home"),
        router.build("post", id=1, post=2),
        router.build("file", name="a b/c"),
        router.build("posts", id=3),
    ]


def probe_build_paths():
    return [made().build("files", rest="a/b c"), made().build("files", rest="x", page=2)]


def probe_build_with_query():
    return [made().build("home", a=1, b=[2, 3]), made().build("file", name="x", q="a&b", none=None)]


def probe_build_wrong():
    router = made()
    wrong = [("number", {"number": "x"}), ("file", {"name": ""}), ("post", {"id": 1}), ("other", {})]
    wrong += [
        ("files", {"rest": "/a"}),
        ("label", {"label": "a-b"}),
        ("number", {"number": -1}),
        ("files", {"rest": ""}),
    ]
    return results(lambda pair: router.build(pair[0], **pair[1]), *wrong)


def probe_build_takes_the_best():
    router = Router()
    router.add("GET", "/list", "list")
    router.add("GET", "/list/<page:int>", "list")
    router.add("GET", "/list/<page:int>/<size:int>", "list")
    return [
        router.build("list"),
        router.build("list", page=2),
        router.build("list", size=5),
        router.build("list", page=1, size=2),
    ]


def probe_build_is_matched():
    router = made()
    found = []
    for handler, values in (
        ("file", {"name": "ü/%-x"}),
        ("files", {"rest": "a b/c?d"}),
        ("post", {"id": 5, "post": 6}),
    ):
        found.append(tuple(router.match("GET", router.build(handler, **values))) == (handler, values))
    return found


def probe_mount():
    inner = Router()
    inner.add("GET", "/", "start")
    inner.add("GET", "/<name>", "name")
    inner.add("POST", "/new", "new")
    router = Router()
    router.add("GET", "/app/<name:path>", "any")
    router.mount("/app/", inner)
    router.mount("", inner)
    requests = ["GET /app", "GET /app/x", "POST /app/new", "GET /app/x/y", "GET /", "GET /z", "POST /new", "GET /app/"]
    return matches(router, *requests)


def probe_mount_with_parameter():
    inner = Router()
    inner.add("GET", "/show/<id:int>", "show")
    router = Router()
    router.mount("/<lang>/x", inner)
    return [*matches(router, "GET /en/x/show/4", "GET /x/show/4"), router.build("show", lang="de", id=2)]


def probe_unquoted_beside_letters():
    return [unquote(text) for text in ("%C3%BC€", "ü%20日本", "日%E6%9C%AC", "%F0%9F%98%80é", "é%zzé", "%C3é")]
