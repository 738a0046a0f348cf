"""The pool of worker processes that grading runs in.

A computer algebra system may not terminate on some answers. Such a call is stopped at the time limit and raises
GraderError: the answer counts neither as right nor as wrong.
"""

from __future__ import annotations

from gem._internal.worker_pool import WorkerPool
from gem.errors import GraderError


class GraderPool(WorkerPool):
    """A WorkerPool whose time-outs and worker failures raise GraderError."""

    error = GraderError
