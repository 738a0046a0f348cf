# CLASS: network   SEVERITY: must
# EXPECT: no socket of a family that reaches the hypervisor, the hardware or rare code of the kernel.
import socket

FAMILIES = {"VSOCK": 40, "ALG": 38, "PACKET": 17, "XDP": 44, "TIPC": 30, "BLUETOOTH": 31, "CAN": 29, "RDS": 21, "SMC": 43}
FAMILIES |= {"KCM": 41, "QIPCRTR": 42, "NFC": 39, "PHONET": 35, "CAIF": 37, "KEY": 15, "PPPOX": 24, "LLC": 26, "AX25": 3}
for name, family in FAMILIES.items():
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        try:
            socket.socket(family, kind, 0)
            print("PWNED a socket of", name, kind)
        except OSError as error:
            print(name, error)
for protocol in (4, 6, 9, 12, 15, 16, 20):  # of netlink: sockets, xfrm, audit, netfilter, events of devices, generic, RDMA
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        print("PWNED netlink", protocol)
    except OSError as error:
        print(protocol, error)
