"""The local sandbox: a warm fork server that contains each program by namespaces, or by Landlock and seccomp."""

from gem.sandbox.zygote.sandbox import ZygoteSandbox

__all__ = ["ZygoteSandbox"]
