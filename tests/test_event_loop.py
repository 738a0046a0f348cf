"""BackgroundLoop: what becomes of coroutines that outlive it."""

from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import asynccontextmanager

import pytest

from gem._internal import event_loop
from gem._internal.event_loop import BackgroundLoop


@asynccontextmanager
async def nothing():
    yield


async def deaf(started):
    """Wait, and ignore being cancelled."""
    while True:
        try:
            started.set()
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


@pytest.mark.slow
def test_coroutines_that_ignore_cancellation_end_their_futures_with_an_error(monkeypatch, caplog):
    monkeypatch.setattr(event_loop, "CANCEL_TIMEOUT", 0.05)
    started = asyncio.Event()
    loop = BackgroundLoop(nothing)
    plain = loop.submit(deaf(started))
    named = loop.submit(deaf(started), closed_error=lambda: OSError("gone"))
    loop.submit(started.wait()).result(30)
    with caplog.at_level(logging.ERROR):
        loop.close()
        with pytest.raises(RuntimeError, match="the event loop was closed"):
            plain.result(30)
        with pytest.raises(OSError, match="gone"):
            named.result(30)
        gc.collect()
    assert caplog.records == []


def test_no_future_of_an_ended_coroutine_is_kept():
    loop = BackgroundLoop(nothing)
    loop.submit(asyncio.sleep(0)).result(30)
    loop.submit(asyncio.sleep(0)).result(30)
    assert len(loop._open) <= 1  # the callbacks of the last one may be under way
    loop.close()
