"""Items in batches: what is asked of a database together, and what is in memory together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

_SIZE = 2_000
_SMALL_SIZE = 100
"""Of items with contents, such as answers or nodes of a tree: one may have megabytes."""


def in_batches(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield the items in lists of at most 2,000; each list is taken when it is asked for."""
    left = iter(items)
    while batch := list(islice(left, _SIZE)):
        yield batch


def in_small_batches(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield items with large contents in lists of at most 100, as `in_batches` does."""
    left = iter(items)
    while batch := list(islice(left, _SMALL_SIZE)):
        yield batch
