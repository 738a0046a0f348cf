"""History and chat: from what was said to what a model is fed."""

from gem.conversation.chat import ChatFormat, observation_text

__all__ = ["ChatFormat", "observation_text"]
