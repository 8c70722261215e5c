"""Limits the size of a server's answer."""

from __future__ import annotations

from evalstore.providers.base import ProviderError

MAX_ANSWER = 16 * 1024 * 1024
"""The most bytes of an answer after decompression; the longest real answers have some 100 KB."""


class AnswerContent:
    """Collects the bytes of an answer as they arrive."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._size = 0

    def append(self, chunk: bytes) -> None:
        """Add bytes that have arrived; raises `ProviderError` when the answer is too large."""
        self._size += len(chunk)
        if self._size > MAX_ANSWER:
            raise ProviderError("malformed", f"the answer is larger than {MAX_ANSWER} bytes")
        self._chunks.append(chunk)

    def join(self) -> bytes:
        """Return all bytes."""
        return b"".join(self._chunks)
