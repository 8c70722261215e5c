"""The cache of the settled parts of very long test files, as the last run has left them.

A part is settled when all its cases have their answers and judgements. It is found by the node of
its cases and by all else that its plan and its verdicts follow from. It is a file beside the index,
for this machine only, and can be deleted.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalstore import __version__
from evalstore.core import hashing
from evalstore.core.errors import FileProblem
from evalstore.core.values import Verdict
from evalstore.files.access import LARGEST_CACHE, Boundary
from evalstore.files.atomic_write import write_whole
from evalstore.store.driver import Extent

CACHE = "settled"
"""The name of its file."""
_DIGITS = 32
"""The file begins with so many digits of the digest of the rest."""
_FORMAT = [4, __version__, sys.byteorder]
"""Raise the number when the fields of a part, or what plans and verdicts follow from, change."""


@dataclass(slots=True)
class SettledPart:
    """A part of a test file whose cases have all answers and judgements, in sums."""

    context: str
    """The digest of all but the cases that its plan and its verdicts follow from."""
    node: str
    """The node of its cases."""
    results: str = ""
    """The node of its results."""
    cells: int = 0
    cases: int = 0
    """How many of its cases have a cell."""
    answers: int = 0
    """How many answers count, each once."""
    undecided: int = 0
    """How many of the judgements `--retry-errors` makes again, each once."""
    saved: float = 0.0
    """The cost of these answers and their judgements, in USD."""
    words: list[tuple[str, Verdict | None, int]] = field(default_factory=list)
    """Candidate, verdict, how many cells; the candidates in the order of their first cells."""
    clusters: list[tuple[int, int, int, int]] = field(default_factory=list)
    """How many verdicts, passes and unresolved ones a case has, and how many cases have these."""
    prompts: list[tuple[str | None, int]] = field(default_factory=list)
    """The system prompts, with their numbers within the cases."""
    attempts: list[tuple[str, int, str, list[Verdict]]] = field(default_factory=list)
    """Row, number of the prompt, candidate, and verdicts of attempts that do not all pass."""
    questions: array[int] = field(default_factory=lambda: array("Q"))
    """The first digits of the ids of the questions, each once."""

    @property
    def key(self) -> tuple[str, str]:
        """Return what identifies the part."""
        return self.context, self.node


_FIELDS = tuple(name for name in SettledPart.__dataclass_fields__ if name != "questions")


@dataclass(slots=True)
class SettledCache:
    """The settled parts, and how far the store reached when they were."""

    identity: Sequence[Any]
    """Names the file of the store, as `Database.file` does; empty for one on a server."""
    extent: Extent
    parts: dict[tuple[str, str], SettledPart]

    def write(self, path: Path) -> None:
        """Write the cache; a read-only workspace is not an error."""
        parts = self.parts.values()
        header = {
            "format": _FORMAT,
            "store": list(self.identity),
            "extent": list(self.extent),
            "parts": [
                [*(getattr(part, name) for name in _FIELDS), len(part.questions)] for part in parts
            ],
        }
        pieces = [f"{json.dumps(header)}\n".encode(), *(part.questions.tobytes() for part in parts)]
        content = b"".join([hashing.hash_stream(pieces).encode(), *pieces])
        with suppress(OSError):
            write_whole(path, content, durable=False)


def read_settled_cache(path: Path, boundary: Boundary) -> SettledCache | None:
    """Return the cache at a path; None when it is missing, damaged or of another version."""
    try:
        view = memoryview(data := boundary.read(path, LARGEST_CACHE))
        if hashing.hash_bytes(view[_DIGITS:]) != data[:_DIGITS].decode("ascii", "replace"):
            return None
        at = data.index(b"\n") + 1
        header = json.loads(data[_DIGITS:at])
        if header["format"] != _FORMAT:
            return None
        parts = []
        for *values, length in header["parts"]:
            questions = array("Q")
            end = at + length * questions.itemsize
            questions.frombytes(view[at:end])
            at = end
            known = dict(zip(_FIELDS, values, strict=True))
            parts.append(SettledPart(**known, questions=questions))
        extent = tuple(header["extent"])
        return SettledCache(header["store"], extent, {part.key: part for part in parts})
    except (FileProblem, ValueError, KeyError, TypeError, RecursionError):
        return None
