"""An event loop in a thread, so that a call that waits for a server can be interrupted.

The blocking functions of obstore look for no signals until they return, which takes a minute where
a server says nothing. A thread that waits for another one is interrupted at once.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from functools import lru_cache
from typing import Any, TypeVar

T = TypeVar("T")


def wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine; when this is interrupted, the coroutine is cancelled."""
    future = asyncio.run_coroutine_threadsafe(coroutine, _running_loop(os.getpid()))
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


@lru_cache(maxsize=1)
def _running_loop(_process: int) -> asyncio.AbstractEventLoop:
    """Return the loop of this process; a forked one has no thread of its parent."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="evalstore-remote", daemon=True).start()
    return loop
