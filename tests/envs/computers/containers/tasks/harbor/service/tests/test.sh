#!/bin/sh
# canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
if python3 -c "import sys, urllib.request as r; sys.exit(r.urlopen('http://127.0.0.1:8080/', timeout=5).read() != b'welcome\n')"; then r=1; else r=0; fi
echo $r > /logs/verifier/reward.txt
