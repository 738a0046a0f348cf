#!/bin/sh
# canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
sorted=0; [ "$(cat lines)" = "$(printf 'a\nb')" ] && sorted=1
clean=0; [ "$(ls)" = lines ] && clean=1
printf '{"reward": %s, "sorted": %s, "clean": %s}' $((sorted * clean)) $sorted $clean > /logs/verifier/reward.json
