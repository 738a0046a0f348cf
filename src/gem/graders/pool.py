"""The pool of worker processes for grading.

A computer algebra system may not terminate on some answers. Grading such an answer is stopped at the time limit and
raises GraderError, so the answer is graded neither right nor wrong.
"""

from __future__ import annotations

from gem._internal.worker_pool import WorkerPool
from gem.errors import GraderError


class GraderPool(WorkerPool):
    """A WorkerPool whose timeouts and worker failures raise GraderError."""

    error = GraderError
