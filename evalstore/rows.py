"""Replacements to rows: which combinations of values fill a file, and what each is called."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from evalstore.errors import FileProblem
from evalstore.markdown import SPACE
from evalstore.values import RUNTIME_NAMES
from evalstore.yaml_core import Document, Written

Replacements = tuple[dict[str, tuple[Written, ...]], ...]
"""Items one after the other; within an item, every combination of its values."""

MOST_ROWS = 100_000
"""Rows of one file."""
_RESERVED = ("_file", *RUNTIME_NAMES)
_LATER = ("$permute", "$combine")
_LABEL_WIDTH = 32


def read_replacements(document: Document | None) -> Replacements:
    """The items of the field `replacements`, every value a list of scalars as written."""
    given = document.at("replacements") if document else None
    written = given.written() if given else None
    if document is None or written is None or _is_null(written):
        return ({},)
    line = document.line("replacements")
    items = written if isinstance(written, list) else [written]
    if not items:
        raise FileProblem("'replacements' is an empty list: there would be no case", line)
    result = []
    for number, item in enumerate(items):
        place = ("replacements", number) if isinstance(written, list) else ("replacements",)
        if not isinstance(item, dict):
            raise FileProblem(
                "a replacement must be a mapping from names to values", document.line(*place)
            )
        values = {
            name: _values(name, value, document, (*place, name)) for name, value in item.items()
        }
        result.append(values)
    if sum(math.prod(map(len, item.values())) for item in result) > MOST_ROWS:
        raise FileProblem(f"the replacements make more than {MOST_ROWS:,} cases", line)
    return tuple(result)


def _is_null(value: Any) -> bool:

    return isinstance(value, Written) and value.typed is None


def _values(
    name: str, value: Any, document: Document, place: tuple[str | int, ...]
) -> tuple[Written, ...]:
    if name in _LATER:
        raise FileProblem(f"'{name}' is not supported yet", document.line(*place))
    if name in _RESERVED or name != name.strip() or not name:
        raise FileProblem(f"'{name}' cannot be the name of a replacement", document.line(*place))
    values = value if isinstance(value, list) else [value]
    if not values:
        raise FileProblem(
            f"replacement '{name}' has an empty list: there would be no case",
            document.line(*place),
        )
    result: dict[tuple[str, Any], Written] = {}
    for number, entry in enumerate(values):
        if not isinstance(entry, Written):
            raise FileProblem(
                f"a value of replacement '{name}' must be one text or number",
                document.line(*place, number),
                hint="lists of values have one level",
            )
        if isinstance(entry.typed, float) and math.isnan(entry.typed):
            raise FileProblem(f"replacement '{name}' is not a number", entry.line)
        text = entry.text.strip(SPACE)
        result.setdefault((text, type(entry.typed)), Written(text, entry.typed, entry.line))
    return tuple(result.values())


def expand_rows(replacements: Replacements) -> Iterator[dict[str, Written]]:
    """Every row, first key slowest, item after item; equal rows count once."""
    seen: set[frozenset[tuple[str, str, type]]] = set()
    for item in replacements:
        for values in itertools.product(*item.values()):
            row = dict(zip(item, values, strict=True))
            if len(replacements) > 1:
                key = frozenset((n, value.text, type(value.typed)) for n, value in row.items())
                if key in seen:
                    continue
                seen.add(key)
            yield row


def labels(rows: list[dict[str, str]]) -> list[str]:
    """A short name for each row, unique in the file: as few differing values as tell them apart."""
    if len(rows) < 2:
        return [""] * len(rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    differing = [name for name in names if len({row.get(name) for row in rows}) > 1]
    used: list[str] = []
    for name in differing:
        used.append(name)
        if len({tuple([row.get(part) for part in used]) for row in rows}) == len(rows):
            break
    for name in [*used]:
        rest = [part for part in used if part != name]
        if rest and len({tuple([row.get(part) for part in rest]) for row in rows}) == len(rows):
            used = rest
    taken: dict[str, int] = {}
    result: list[str] = []
    for row in rows:
        label = ", ".join([f"{name}={_shorten(row[name])}" for name in used if name in row])
        unique, count = label, taken.get(label, 0)
        while unique in taken:
            count += 1
            unique = f"{label} #{count + 1}"
        taken[label] = count
        taken.setdefault(unique, 0)
        result.append(unique)
    return result


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LABEL_WIDTH else text[: _LABEL_WIDTH - 1] + "…"
