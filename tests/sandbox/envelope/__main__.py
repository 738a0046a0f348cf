"""`python -m envelope`, with this folder's parent on the path: see runner.py."""

import sys

from envelope.runner import main

sys.exit(main())
