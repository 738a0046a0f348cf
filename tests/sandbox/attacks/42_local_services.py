# CLASS: network   SEVERITY: must
# EXPECT: services of the host are out of reach: loopback, abstract and file Unix sockets, IPv6, by any descriptor.
import os
import socket

HOME = "/tmp/v/home"
for family, address in (
    (socket.AF_INET, ("127.0.0.1", 8765)),
    (socket.AF_INET6, ("::ffff:127.0.0.1", 8765)),
    (socket.AF_UNIX, "\0gem_abstract"),
    (socket.AF_UNIX, os.path.expanduser("~/docker.sock")),
    (socket.AF_UNIX, HOME + "/docker.sock"),
    (socket.AF_UNIX, f"/proc/1/root{HOME}/docker.sock"),
):
    try:
        with socket.socket(family, socket.SOCK_STREAM) as client:
            client.settimeout(1)
            client.connect(address)
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            print(client.recv(1000))
    except OSError as error:
        print(error)
for address in ("\0gem_abstract", HOME + "/log.sock"):
    try:  # a socket that was never asked of socket(): a pair, disconnected and led elsewhere
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        one.sendto(b"x", address)
        one.connect(address)
        one.sendto(b"x", address)
    except OSError as error:
        print(error)
