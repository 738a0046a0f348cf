"""Run a program again with the usual imports after it used a module without importing it, as published.

The second run counts only if it succeeds, so that an error message is always that of the program as it was written.
"""

from __future__ import annotations

import ast
import re
from functools import cache

from gem.sandbox.results import Result, Status

USUAL_IMPORTS = """\
import bisect
import collections
import copy
import datetime
import fractions
import functools
import heapq
import io
import itertools
import json
import math
import operator
import os
import random
import re
import statistics
import string
import sys
import time
import typing
from bisect import bisect_left, bisect_right, insort
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from copy import deepcopy
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache, cmp_to_key, lru_cache, partial, reduce
from heapq import heapify, heappop, heappush
from itertools import accumulate, combinations, permutations, product
from math import ceil, comb, factorial, floor, gcd, inf, isqrt, lcm, pi, sqrt
from typing import Any, Dict, List, Optional, Set, Tuple, Union
"""
# Imported only where the program names them, because they may be missing and are slow to import.
_LIBRARIES = {
    "np": "import numpy as np",
    "numpy": "import numpy",
    "pd": "import pandas as pd",
    "sp": "import sympy as sp",
    "sympy": "import sympy",
}
_NAME_ERROR = re.compile(r"NameError: name '(\w+)' is not defined")


def misses_usual_import(result: Result) -> bool:
    """Return whether a program ended because it used a name that with_usual_imports() would have bound."""
    last_line = result.stderr.rstrip().rpartition("\n")[2]
    missing = _NAME_ERROR.match(last_line) if result.status is Status.ERROR else None
    return missing is not None and missing[1] in _names()


def with_usual_imports(code: str) -> str:
    """Return a program with the usual imports before its first line."""
    libraries = [line for name, line in _LIBRARIES.items() if re.search(rf"\b{name}\b", code)]
    return "\n".join([USUAL_IMPORTS, *libraries, code])


@cache
def _names() -> frozenset[str]:
    imports = [node for node in ast.parse(USUAL_IMPORTS).body if isinstance(node, ast.Import | ast.ImportFrom)]
    return frozenset(alias.asname or alias.name for node in imports for alias in node.names) | _LIBRARIES.keys()
