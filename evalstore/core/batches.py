"""Items in batches: what is asked of a database together, and what is in memory together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

SIZE = 2_000
SMALL_SIZE = 100
"""Of items with contents, such as answers or nodes of a tree: one may have megabytes."""


def in_batches(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield the items in lists of at most `SIZE`; each list is taken when it is asked for."""
    return _divide(items, SIZE)


def in_small_batches(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield items with large contents in lists of at most `SMALL_SIZE`, as `in_batches` does."""
    return _divide(items, SMALL_SIZE)


def _divide(items: Iterable[T], size: int) -> Iterator[list[T]]:
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch


def in_weighed_batches(
    items: Iterable[T], weigh: Callable[[T], int], most: int, count: int | None = None
) -> Iterator[list[T]]:
    """Yield the items in lists of at most `count`, or `SIZE`, that weigh at most `most`.

    A list of one item may weigh more.
    """
    batch: list[T] = []
    total = 0
    for item in items:
        weight = weigh(item)
        if batch and (total + weight > most or len(batch) >= (count or SIZE)):
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += weight
    if batch:
        yield batch
