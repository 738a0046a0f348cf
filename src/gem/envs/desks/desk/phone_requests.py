"""Find the steps on the phone that a message asks the customer of desk:Support for, and phrase such requests."""

from __future__ import annotations

import re
from typing import Any

from gem.messages import ToolCall

_SWITCHES = {"airplane_mode": "airplane mode", "mobile_data": "mobile data", "roaming": "(?:data )?roaming"}
_STATES = {"enable": "on", "activate": "on", "disable": "off", "deactivate": "off"}
# How a clause asks for a switch. The last, as in "and mobile data on", only after a clause that asks for another.
_SWITCH = (
    r"(?:turn|switch) (?:back )?(?P<state>on|off) (?:the |your )?{0}\b",
    r"(?P<state>enable|activate|disable|deactivate) (?:the |your )?{0}\b",
    r"(?:turn|switch|set|put) (?:the |your )?{0} (?:to )?(?:back )?(?P<state>on|off)\b",
    r"(?:make sure|ensure) (?:that )?(?:the |your )?{0} is (?:turned |switched )?(?P<state>on|off)\b",
    r"(?:the |your )?{0} (?:back )?(?P<state>on|off)\b",
)
_STEPS = {
    "check_status": r"(?:check|read|look at|show|report|give|send|tell|share|what is)\b"
    r"(?:.*\bstatus\b.*\bphone|.*\bphone\b.*\bstatus)\b"
    r"|(?:tell me )?what (?:does )?(?:the|your) phone show",
    "seat_sim": r"(?:re-?seat|seat|re-?insert|take|remove|put)\b.*\bsim\b",
    "reset_access_point": r"reset\b.*\b(?:access point|apn)\b",
    "restart_phone": r"(?:restart|reboot)\b",
}
LINE = re.compile(r"\bL-\d{4}\b")
_ASKS = re.compile(r"\bplease\b|\b(can|could|would) you\b")
_CONFIRM = re.compile(r"\b(confirm|agree|shall i|yes or no)\b")
_CLAUSE = re.compile(r"[,;:()–—]|\b(?:and|then|but|because|so|to (?:see|check|find out|confirm))\b|(?=\bplease\b)")
# What follows one of these in a sentence is not asked for, or not now.
_NOT = re.compile(r"\b(?:not|never|whether|if|unless|until|later|yet|(?:once|after) (?:i|we|you|the|your))\b|n't\b")
_LEAD = re.compile(
    r"(?:[\s\d-]|(?:please|kindly|now|next|first|finally|also|just|again|hello|hi|thanks|thank you|ok|okay|try to"
    r"|(?:can|could|would|will) you|be able to|i (?:need|want|would like) you to)\b)*"
)


def phone_requests(message: str) -> list[ToolCall]:
    """Return what a message asks the customer to do with the phone.

    A message is a request if it contains please or can you. Only clauses that begin with a step count, and none after a
    not or an if in the same sentence. A message that names a line and asks to confirm is about a change by the agent.

    >>> [call.name for call in phone_requests("Please turn airplane mode off and restart the phone.")]
    ['switch', 'restart_phone']
    >>> phone_requests("I will check the status of the phone."), phone_requests("Please do not restart the phone yet.")
    ([], [])
    """
    text = message.lower().replace("’", "'")
    if not _ASKS.search(text) or (LINE.search(message) and _CONFIRM.search(text)):
        return []
    found: list[ToolCall] = []
    for sentence in re.split(r"[.!?\n]", re.sub(r"[\"“”*]", "", text)):
        asked = False
        for clause in _CLAUSE.split(sentence):
            if _NOT.search(clause):
                break
            calls = _steps(_LEAD.sub("", clause, count=1), asked)
            found += [call for call in calls if call not in found]
            asked = asked or any(call.name == "switch" for call in calls)
    return found


def _steps(clause: str, asked: bool) -> list[ToolCall]:
    """Return the steps that a clause begins with. ``asked``: whether a clause before it asks for a switch."""
    found = []
    for what, words in _SWITCHES.items():
        for pattern in _SWITCH if asked else _SWITCH[:-1]:
            if match := re.match(pattern.format(words), clause):
                state = match["state"]
                found.append(ToolCall("switch", {"what": what, "on": _STATES.get(state, state) == "on"}))
                break
    return found + [ToolCall(name, {}) for name, pattern in _STEPS.items() if re.match(pattern, clause)]


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
