"""Convert episode histories to chat messages and token contexts.

What a policy does with them is in policies, when it is asked in rollout. Reading what a model wrote is in gem.parsing.
"""

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
