"""Run untrusted code in a sandbox: one interface, several backends.

At the top is what backends share. Code that must be trusted does not belong here: its workers are in _internal.
"""

from gem.sandbox.base import Sandbox, Session
from gem.sandbox.factory import get_sandbox, make_sandbox
from gem.sandbox.machine import HasMachine, Machine
from gem.sandbox.machine_protocol import FileEntry
from gem.sandbox.results import Case, Files, Limits, Report, Result, Status

__all__ = [
    "Case",
    "FileEntry",
    "Files",
    "HasMachine",
    "Limits",
    "Machine",
    "Report",
    "Result",
    "Sandbox",
    "Session",
    "Status",
    "get_sandbox",
    "make_sandbox",
]
