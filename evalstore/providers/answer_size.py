"""How large an answer of a server may be."""

from __future__ import annotations

from evalstore.providers.base import ProviderError

MAX_ANSWER = 16 * 1024 * 1024
"""Bytes of an answer, after they have been decompressed; the longest answers have some 100 KB."""


class AnswerContent:
    """The bytes of an answer, as they arrive."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._size = 0

    def append(self, chunk: bytes) -> None:
        """Add what has arrived; raises `ProviderError` for what is too large to be an answer."""
        self._size += len(chunk)
        if self._size > MAX_ANSWER:
            raise ProviderError("malformed", f"the answer is larger than {MAX_ANSWER} bytes")
        self._chunks.append(chunk)

    def join(self) -> bytes:
        """All of them."""
        return b"".join(self._chunks)
