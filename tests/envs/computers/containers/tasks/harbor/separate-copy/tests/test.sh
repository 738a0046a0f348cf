#!/bin/sh
# canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
if [ "$(cat /app/sum.txt)" = 5050 ]; then r=1; else r=0; fi
echo $r > /logs/verifier/reward.txt
