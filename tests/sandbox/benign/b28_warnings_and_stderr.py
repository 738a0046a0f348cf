# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: still_fine
import logging
import sys
import warnings

warnings.warn("take care")
logging.warning("take care")
print("to the side", file=sys.stderr)
print("still fine")
