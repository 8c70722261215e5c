"""The heap of the process, which threads that read one after the other share."""

from __future__ import annotations

import ctypes
from contextlib import suppress

_ARENA_MAX = -8
"""`M_ARENA_MAX` of glibc's `mallopt`."""


def share_heap() -> None:
    """Let threads use what others have freed; glibc gives each a part of its own and keeps it.

    With 100,000 cases the browser takes a tenth less memory. Elsewhere this does nothing.
    """
    with suppress(AttributeError, OSError, TypeError):  # no glibc
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)
