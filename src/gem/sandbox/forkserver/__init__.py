"""The local sandbox: a fork server that isolates each program with namespaces, or with Landlock and seccomp."""

from gem.sandbox.forkserver.host.sandbox import ZygoteSandbox

__all__ = ["ZygoteSandbox"]
