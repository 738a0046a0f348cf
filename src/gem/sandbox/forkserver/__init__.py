"""The local sandbox: a fork server that isolates each program with namespaces, or with Landlock and seccomp.

At its top are system calls and the protocol. server, entry, isolation and limits run in the server and its children,
host runs in the caller. A new level belongs in isolation, and is chosen by host.probe.
"""

from gem.sandbox.forkserver.host.sandbox import ZygoteSandbox

__all__ = ["ZygoteSandbox"]
