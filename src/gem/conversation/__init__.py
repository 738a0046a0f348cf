"""Convert episode histories to chat messages and token contexts."""

from gem.conversation.chat import ChatFormat
from gem.conversation.history import History
from gem.conversation.retokenization import RetokenizationMeter, RetokenizationMismatch, retokenization_mismatch

__all__ = [
    "ChatFormat",
    "History",
    "RetokenizationMeter",
    "RetokenizationMismatch",
    "retokenization_mismatch",
]
