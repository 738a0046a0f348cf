"""Run the ``gem`` command line with ``python -m gem``."""

import sys

from gem.cli import main

sys.exit(main())
