"""Convert episode histories to chat messages and token contexts."""

from gem.conversation.chat import ChatFormat
from gem.conversation.history import History, conversation
from gem.conversation.observations import as_messages, observation_text, role_of
from gem.conversation.retokenization import RetokenizationMeter, RetokenizationMismatch, retokenization_mismatch

__all__ = [
    "ChatFormat",
    "History",
    "RetokenizationMeter",
    "RetokenizationMismatch",
    "as_messages",
    "conversation",
    "observation_text",
    "retokenization_mismatch",
    "role_of",
]
