"""History and chat: from what was said to what a model is fed."""

from gem.conversation.chat import ChatFormat
from gem.conversation.drift import Drift, DriftMeter, drift
from gem.conversation.history import History, conversation
from gem.conversation.observations import as_messages, observation_text, role_of

__all__ = [
    "ChatFormat",
    "Drift",
    "DriftMeter",
    "History",
    "as_messages",
    "conversation",
    "drift",
    "observation_text",
    "role_of",
]
