"""What crosses between a vector and its workers: pickles of single calls and outcomes, in frames of known length."""

from __future__ import annotations

import pickle

from gem._internal.framing import describe_error, dumps, to_picklable
from gem.core import Step
from gem.errors import EnvFailed
from gem.vector.slots import Call, Outcome


def pack_call(call: Call) -> bytes:
    """Raises what dumps() raises, where the argument cannot be sent."""
    return dumps(tuple(call))


def unpack_call(packed: bytes) -> Call:
    return Call(*pickle.loads(packed))


def pack(outcome: Outcome) -> bytes:
    """Raises what dumps() raises, where the value cannot be sent."""
    _, value, error, position = outcome
    is_step = type(value) is Step
    # A plain tuple: pickle takes a named one four times as long.
    plain = tuple(value) if is_step else value
    return dumps((is_step, plain, error if error is None else to_picklable(error), position))


def unpack(slot: int, packed: bytes) -> Outcome:
    """The outcome; EnvFailed in it where its value cannot be loaded here."""
    try:
        is_step, value, error, position = pickle.loads(packed)
        return Outcome(slot, Step(*value) if is_step else value, error, position)
    except Exception as e:  # whatever a class's own way of loading raises
        return Outcome(slot, None, EnvFailed(f"slot {slot}: its answer cannot be unpickled here: {describe_error(e)}"))
