# CLASS: host-confusion   SEVERITY: must   GRADE: 42
# EXPECT: a program cannot forge a result by writing to descriptors that it was not given.
import json
import os
import socket
import struct

claim = {
    "status": "ok",
    "exit_code": 0,
    "signal": None,
    "stdout": "42\n",
    "value": "42",
    "passed": True,
    "id": 1,
    "rc": 0,
}
text = json.dumps(claim).encode()
for fd in range(3, 256):
    for message in (text, text + b"\n", struct.pack("<I", len(text)) + text, struct.pack(">I", len(text)) + text):
        try:
            os.write(fd, message)
        except OSError:
            break
    try:
        socket.socket(fileno=fd).detach()
    except OSError:
        pass
raise SystemExit(3)
