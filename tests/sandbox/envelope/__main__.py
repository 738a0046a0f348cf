"""Command `python -m envelope`, to be run in tests/sandbox. See runner.py."""

import sys

from envelope.runner import main

sys.exit(main())
