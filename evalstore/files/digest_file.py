"""A cache file of a JSON text and lists of digests, which must be as it was written.

Digests are whole numbers of 64 bits; a million of them take 8 MB.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core import hashing
from evalstore.core.errors import FileProblem
from evalstore.files.access import LARGEST_CACHE
from evalstore.files.atomic_write import write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.files.access import Boundary

_DIGITS = 32


class DigestFile(NamedTuple):
    """The content of such a file."""

    header: str
    """JSON in one line."""
    digests: Sequence[array[int]]

    def write(self, path: Path) -> None:
        """Write the file in one step; raises `OSError`."""
        lengths = json.dumps([sys.byteorder, *map(len, self.digests)])
        pieces = [
            f"{lengths}\n{self.header}\n".encode(),
            *(each.tobytes() for each in self.digests),
        ]
        write_whole(path, b"".join([hashing.hash_stream(pieces).encode(), *pieces]), durable=False)


def read_digest_file(path: Path, boundary: Boundary) -> DigestFile:
    """Read the file at a path; raises `ValueError` when it is missing or damaged."""
    try:
        data = boundary.read(path, LARGEST_CACHE)
    except FileProblem as error:
        raise ValueError(str(error)) from error
    view = memoryview(data)
    if hashing.hash_bytes(view[_DIGITS:]) != data[:_DIGITS].decode("ascii", "replace"):
        raise ValueError("it is damaged")
    first = data.index(b"\n")
    second = data.index(b"\n", first + 1)
    order, *lengths = json.loads(data[_DIGITS:first])
    if order != sys.byteorder:
        raise ValueError("it is of another machine")
    digests, at = [], second + 1
    for length in lengths:
        numbers = array("Q")
        numbers.frombytes(view[at : at + length * numbers.itemsize])
        at += length * numbers.itemsize
        digests.append(numbers)
    return DigestFile(data[first + 1 : second].decode(), digests)
