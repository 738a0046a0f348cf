"""The invariants that a program of the corpus may violate. A miss is reported as "name: what happened"."""

from enum import Enum


class Invariant(str, Enum):
    """Name of an invariant; the comment says what has to hold."""

    NO_EXCEPTION = "no exception"  # a call of the sandbox raises nothing
    IN_TIME = "in time"  # a call returns within the limits of its runs and GRACE_S for each
    HOST_ALIVE = "host alive"  # the host neither dies nor hangs
    HOST_RESPONSIVE = "host responsive"  # other threads of the host run while a result is read
    HOST_CPU = "host cpu"  # reading a result costs the host little CPU time
    HOST_MEMORY = "host memory"  # the host's memory grows little
    HOST_UNCHANGED = "host unchanged"  # files, processes, terminal, IPC, limits, priorities, cgroups
    SHARED_FREE = "shared free"  # the host can use what programs of a user share: library files, signals, pipes
    NO_LEAK = "no leak"  # no secret is in the output
    NO_CLAIM = "no claim"  # the program did not achieve what it tries; it would print a line starting with PWNED
    OUTPUT = "output"  # output is bounded, and what must be kept is kept
    NOT_FORGED = "not forged"  # a test that must fail is not graded as passed
    NOTHING_LEFT = "nothing left"  # no process is left
    MEMORY = "memory"  # peak of the envelope
    PROCESSES = "processes"  # peak of the envelope
    CPU_REPORTED = "cpu reported"  # the result reports the CPU time of a program killed for it
    HARMLESS = "harmless works"  # a harmless program works
    NEXT_RUN = "next run works"
    NEIGHBOURS = "neighbours unharmed"  # honest neighbours get right answers in time

    __str__ = str.__str__

    def miss(self, detail: str) -> str:
        return f"{self.value}: {detail}"
