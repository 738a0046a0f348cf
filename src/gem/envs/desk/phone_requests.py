"""How the customer of desk:Support understands what it shall do with its phone, and how an agent asks for it."""

from __future__ import annotations

import re
from typing import Any

from gem.messages import ToolCall

_SWITCH = r"\b(?:(?:turn|switch) (?P<before>on|off) (?:the |your )?{0}|{0} (?:is )?(?:turned )?(?P<after>on|off)\b)"
_SWITCHES = {"airplane_mode": "airplane mode", "mobile_data": "mobile data", "roaming": "(?:data )?roaming"}
_REQUESTS = {
    "check_status": re.compile(r"\bstatus\b|\bwhat does (the|your) phone show"),
    "seat_sim": re.compile(r"\b(seat|re-?insert|take out|put)\b.*\bsim\b"),
    "reset_access_point": re.compile(r"\breset\b.*\b(access point|apn)\b"),
    "restart_phone": re.compile(r"\b(restart|reboot)\b"),
}
_LINE = re.compile(r"\bL-\d{4}\b")
_ASKS = re.compile(r"\bplease\b|\b(can|could|would) you\b")


def phone_requests(message: str) -> list[ToolCall]:
    """Return what a message asks the customer to do with the phone.

    A message asks if it says please or can you. One that names a line is about a change by the agent.

    >>> [call.name for call in phone_requests("Please turn airplane mode off and restart the phone.")]
    ['switch', 'restart_phone']
    >>> phone_requests("I will check the status.")
    []
    """
    text = message.lower()
    if not _ASKS.search(text) or _LINE.search(message):
        return []
    found = []
    for what, words in _SWITCHES.items():
        for match in re.finditer(_SWITCH.format(words), text):
            state = match["before"] or match["after"]
            found.append(ToolCall("switch", {"what": what, "on": state == "on"}))
    return found + [ToolCall(name, {}) for name, pattern in _REQUESTS.items() if pattern.search(text)]


def request_of(call: ToolCall) -> str:
    """Return how an agent asks for a call on the phone."""
    arguments: dict[str, Any] = call.arguments
    if call.name == "switch":
        return f"Please turn {arguments['what'].replace('_', ' ')} {'on' if arguments['on'] else 'off'}."
    return {
        "check_status": "Please check the status of the phone.",
        "seat_sim": "Please seat the SIM again.",
        "reset_access_point": "Please reset the access point.",
        "restart_phone": "Please restart the phone.",
    }[call.name]
