#!/bin/bash
# canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
cd /tmp && python3 -m pytest -p no:cacheprovider $TEST_DIR/test_outputs.py -rA
