#!/bin/sh
# canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
cd /app/pages
nohup python3 -m http.server 8080 >/dev/null 2>&1 &
for i in 1 2 3 4 5 6 7 8 9 10; do
  python3 -c "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/')" 2>/dev/null && break
  sleep 0.5
done
