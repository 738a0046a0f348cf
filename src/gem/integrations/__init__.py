"""Adapters to training frameworks, one module per framework. docs/frameworks.md shows how to use them.

Each adapter imports its framework when it is used, and says which version it supports if another one is installed. What
adapters have in common is in shared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem._internal.imports import lazy_names

if TYPE_CHECKING:
    from gem.integrations.shared.sequences import PackedEpisode, TrainingSequence, pack_episode
    from gem.integrations.shared.tasks import EnvTask, EpisodePool, make_tasks, play_tasks

__all__ = [
    "EnvTask",
    "EpisodePool",
    "PackedEpisode",
    "TrainingSequence",
    "make_tasks",
    "pack_episode",
    "play_tasks",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "shared.sequences": "PackedEpisode TrainingSequence pack_episode",
        "shared.tasks": "EnvTask EpisodePool make_tasks play_tasks",
    },
)
