"""Reading of JSON documents, and of JSON Lines with a document on each line."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.errors import FileProblem
from evalstore.exchange.importers.base import SkippedItem
from evalstore.exchange.importers.coerce import parse_json
from evalstore.exchange.importers.source_files import read_unpacked, reason_of
from evalstore.files.access import LARGEST_DOCUMENT, too_large

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from evalstore.core.values import Json

_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a]")
_BEGINNING = 4096


class SourceDocument(NamedTuple):
    """A document with its line; None if it is the whole file."""

    line: int | None
    value: Json


def find_sources(paths: Iterable[Path], suffixes: tuple[str, ...]) -> Iterator[Path]:
    """Yield the named files, and the files in named folders that have one of these suffixes."""
    for path in paths:
        if path.is_dir():
            yield from (file for file in sorted(path.rglob("*")) if file.name.endswith(suffixes))
        else:
            yield path


def read_documents(
    path: Path, left: list[SkippedItem], *, binary: str = "not JSON, but binary data"
) -> Iterator[SourceDocument]:
    """Yield the documents of a file; what cannot be read is added to `left` with the reason.

    `binary` is the reason for data that no text has.
    """
    try:
        data = read_unpacked(path)
    except FileProblem as problem:
        left.append(SkippedItem(str(path), reason_of(problem)))
        return
    lines = [(number, text) for number, text in enumerate(data.split(b"\n"), 1) if text.strip()]
    if len(lines) < 2 or _parse(lines[0][1]) is None:
        if len(data) > LARGEST_DOCUMENT:
            left.append(SkippedItem(str(path), too_large(len(data), LARGEST_DOCUMENT).message))
            return
        lines = [(0, data)]
    for number, text in lines:
        try:
            yield SourceDocument(
                number or None, parse_json(text, parse_constant=_none, parse_float=_finite)
            )
        except ValueError as error:
            reason = binary if _BINARY.search(text[:_BEGINNING]) else f"not JSON: {error}"
            left.append(SkippedItem(str(path), reason, number or None))


def _parse(text: bytes) -> Json:
    try:
        return parse_json(text)
    except ValueError:
        return None


def _none(_name: str) -> None:
    """Return null for NaN and infinity, which JSON does not have."""


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None
