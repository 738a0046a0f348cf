# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: TestResults(failed=0,_attempted=3
"""
>>> double(4)
8
"""

import doctest
import inspect
import logging
import pdb
import timeit
import traceback
import warnings


def double(n):
    """
    >>> double(2)
    4
    >>> double("x")
    'xx'
    """
    return 2 * n


assert inspect.getsource(double).startswith("def double") and inspect.signature(double).parameters["n"]
assert timeit.timeit("1 + 1", number=10) >= 0 and pdb.Pdb
logging.basicConfig(level=logging.INFO)
logging.info("logged")
warnings.warn("careful", stacklevel=1)
try:
    double(None)
except TypeError:
    assert "return 2 * n" in traceback.format_exc()
print(doctest.testmod())
