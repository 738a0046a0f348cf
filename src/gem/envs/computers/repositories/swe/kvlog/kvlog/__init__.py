# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""A key-value store with a log."""

from kvlog.log import DamagedLog, Log
from kvlog.records import decode, encode
from kvlog.store import Conflict, Store

__all__ = ["Conflict", "DamagedLog", "Log", "Store", "decode", "encode"]
