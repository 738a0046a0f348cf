"""``python -m gem`` is the ``gem`` command."""

import sys

from gem.cli import main

sys.exit(main())
