#!/bin/sh
# canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
printf '{"score": %s}' "$(ls /opt | python3 -c "import sys; print(len({'one', 'two'} & set(sys.stdin.read().split())) / 2)")" > /logs/verifier/reward.json
