"""Run untrusted code in a sandbox: one interface, several backends."""

from gem.sandbox.base import Case, Files, Limits, Report, Result, Sandbox, Session, Status
from gem.sandbox.factory import get_sandbox, make_sandbox

__all__ = [
    "Case",
    "Files",
    "Limits",
    "Report",
    "Result",
    "Sandbox",
    "Session",
    "Status",
    "get_sandbox",
    "make_sandbox",
]
