# CLASS: freeze   SEVERITY: must   TIMEOUT: 3
# EXPECT: invalid UTF-8, half characters and control characters at the output limit cost the host little.
import os

parts = [b"\xff", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\x1b[2J", b"\x00", b"\x08", b"\xe2\x80\xa8", b"\xcc\x81"]
for fd in (1, 2):
    for part in parts:
        os.write(fd, part * (16_000 // len(part)))
    os.write(fd, b"\xff" * 3_000_000)
os._exit(1)
