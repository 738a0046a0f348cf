# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: 3.1415926535_2432902008176640000_[1,_2,_3]_1/3_ok
import bisect
import collections
import decimal
import fractions
import functools
import hashlib
import heapq
import itertools
import json
import math
import random
import re
import sqlite3
import statistics
import string
import time
import zlib

random.seed(1)
heap = [3, 1, 2]
heapq.heapify(heap)
database = sqlite3.connect(":memory:")
assert database.execute("select 6 * 7").fetchone() == (42,)
assert functools.reduce(lambda a, b: a * b, range(1, 5)) == 24 and collections.Counter("aab")["a"] == 2
assert json.loads(json.dumps({"a": [1]})) == {"a": [1]} and zlib.decompress(zlib.compress(b"x")) == b"x"
assert re.findall("[0-9]+", "a12b3") == ["12", "3"] and hashlib.sha256(b"").hexdigest().startswith("e3b0")
assert bisect.bisect([1, 2, 3], 2) == 2 and len(list(itertools.permutations("abc"))) == 6
assert (
    statistics.median([1, 2, 9]) == 2
    and string.digits
    and time.time() > 1e9
    and decimal.Decimal("0.1") * 3 == decimal.Decimal("0.3")
)
print(
    f"{math.pi:.11f}"[:12], math.factorial(20), [heapq.heappop(heap) for _ in range(3)], fractions.Fraction(1, 3), "ok"
)
