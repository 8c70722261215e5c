"""Expands replacements to rows, and labels the rows."""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from evalstore.core import hashing
from evalstore.core.errors import FileProblem
from evalstore.core.hashing import DigestSet, count_distinct
from evalstore.files.fields import suggest
from evalstore.files.markdown_lines import SPACE
from evalstore.files.yaml12 import Document, WrittenScalar

Replacements = tuple[dict[str, tuple[WrittenScalar, ...]], ...]
"""The items; the rows of an item are all combinations of its values."""

MOST_ROWS = 100_000
"""The most rows of one file."""
_PICKS: dict[str, tuple[Any, Any]] = {
    "$permute": (itertools.permutations, math.perm),
    "$combine": (itertools.combinations, math.comb),
}
"""Ways to assign different values of a list to several names: permutations or combinations."""
_LABEL_WIDTH = 32
_ID_WIDTH = 200
"""The most characters of a row's id in its name; a longer one ends with a digest."""
_2_64 = 2**64


def read_replacements(document: Document | None) -> Replacements:
    """Read the field `replacements`; every value becomes a list of scalars as written."""
    field = document.at("replacements") if document else None
    written = field.written() if field else None
    if document is None:
        return ({},)
    listed = document.at("lists").written()
    if listed is None or _is_null(listed):
        listed = {}
    if not isinstance(listed, dict):
        raise FileProblem(
            "'lists' must be a mapping from names to lists of values", document.line("lists")
        )
    lists = {name: _values(name, it, document, ("lists", name)) for name, it in listed.items()}
    if written is None or _is_null(written):
        for name in lists:
            raise FileProblem(f"list '{name}' is never used", document.line("lists", name))
        return ({},)
    line = document.line("replacements")
    items = written if isinstance(written, list) else [written]
    if not items:
        raise FileProblem("'replacements' is an empty list: the test would have no cases", line)
    result: list[dict[str, tuple[WrittenScalar, ...]]] = []
    for number, item in enumerate(items):
        place = ("replacements", number) if isinstance(written, list) else ("replacements",)
        if not isinstance(item, dict):
            raise FileProblem(
                "a replacement must be a mapping from names to values", document.line(*place)
            )
        result += _read_item(item, lists, document, place)
    for name in lists:
        if not any(_uses(item, name) for item in items):
            raise FileProblem(f"list '{name}' is never used", document.line("lists", name))
    if sum(math.prod(map(len, item.values())) for item in result) > MOST_ROWS:
        raise FileProblem(f"the replacements make more than {MOST_ROWS:,} cases", line)
    return tuple(result)


def _read_item(
    item: dict[str, Any],
    lists: dict[str, tuple[WrittenScalar, ...]],
    document: Document,
    place: tuple[str | int, ...],
) -> list[dict[str, tuple[WrittenScalar, ...]]]:
    """Expand one item to several, each a mapping from names to their values."""
    combinations: list[dict[str, tuple[WrittenScalar, ...]]] = [{}]
    for name, value in item.items():
        if name in _PICKS:
            parts = _read_pick(name, value, lists, document, (*place, name))
        else:
            parts = [{name: _values(name, value, document, (*place, name))}]
        for part in parts[:1]:
            if twice := part.keys() & combinations[0].keys():
                raise FileProblem(
                    f"'{min(twice)}' has two lists of values", document.line(*place, name)
                )
        if len(combinations) * len(parts) > MOST_ROWS:
            raise FileProblem(
                f"the replacements make more than {MOST_ROWS:,} cases", document.line(*place, name)
            )
        combinations = [{**before, **part} for before in combinations for part in parts]
    return combinations


def _read_pick(
    way: str,
    value: Any,
    lists: dict[str, tuple[WrittenScalar, ...]],
    document: Document,
    place: tuple[str | int, ...],
) -> list[dict[str, tuple[WrittenScalar, ...]]]:
    """Return every way to give the names different values of the list."""
    line = document.line(*place)
    names, source = (
        (value.get("names"), value.get("list")) if isinstance(value, dict) else (None, None)
    )
    if not isinstance(names, list) or source is None or value.keys() != {"names", "list"}:
        raise FileProblem(
            f"'{way}' needs 'names' and the name of a 'list'",
            line,
            hint=f"as in '{way}: {{names: [first, second], list: pets}}'",
        )
    known = [scalar.text for scalar in names if isinstance(scalar, WrittenScalar)]
    if len(set(known)) < len(names) or not names:
        raise FileProblem(f"the names of '{way}' must differ", line)
    if isinstance(source, WrittenScalar):
        if source.text not in lists:
            raise FileProblem(
                f"unknown list '{source.text}'",
                document.line(*place, "list"),
                hint=suggest(source.text, lists, "lists"),
            )
        values = lists[source.text]
    else:
        values = _values("list", source, document, (*place, "list"))
    for name in known:
        _refuse_name(name, line)
    if len(values) < len(known):
        raise FileProblem(
            f"'{way}' needs {len(known)} different values, and its list has {len(values)}", line
        )
    pick, count = _PICKS[way]
    if count(len(values), len(known)) > MOST_ROWS:
        raise FileProblem(f"the replacements make more than {MOST_ROWS:,} cases", line)
    return [
        {name: (value,) for name, value in zip(known, picked, strict=True)}
        for picked in pick(values, len(known))
    ]


def _uses(item: Any, name: str) -> bool:
    picks = [item[way] for way in _PICKS if way in item] if isinstance(item, dict) else []
    sources = [pick.get("list") for pick in picks if isinstance(pick, dict)]
    return any(isinstance(source, WrittenScalar) and source.text == name for source in sources)


def _refuse_name(name: str, line: int) -> None:
    if name.startswith("_"):
        raise FileProblem(
            f"'{name}' cannot be the name of a replacement: names that start with '_' are reserved",
            line,
            hint=f"call it '{name.lstrip('_') or 'name'}'",
        )
    if name != name.strip() or not name or name in _PICKS:
        raise FileProblem(f"'{name}' cannot be the name of a replacement", line)


def _is_null(value: Any) -> bool:

    return isinstance(value, WrittenScalar) and value.typed is None


def _values(
    name: str, value: Any, document: Document, place: tuple[str | int, ...]
) -> tuple[WrittenScalar, ...]:
    _refuse_name(name, document.line(*place))
    values = value if isinstance(value, list) else [value]
    if not values:
        raise FileProblem(
            f"replacement '{name}' has an empty list: the test would have no cases",
            document.line(*place),
        )
    result: dict[tuple[str, Any], WrittenScalar] = {}
    for number, entry in enumerate(values):
        if not isinstance(entry, WrittenScalar):
            raise FileProblem(
                f"a value of replacement '{name}' must be one text or number",
                document.line(*place, number),
                hint="lists of values cannot be nested",
            )
        if isinstance(entry.typed, float) and math.isnan(entry.typed):
            raise FileProblem(f"replacement '{name}' is not a number", entry.line)
        text = entry.text.strip(SPACE)
        result.setdefault((text, type(entry.typed)), WrittenScalar(text, entry.typed, entry.line))
    return tuple(result.values())


def expand_rows(replacements: Replacements) -> Iterator[dict[str, WrittenScalar]]:
    """Yield every row, first key slowest, item after item; equal rows count once."""
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


def labels(rows: list[dict[str, str]], row_id: str | None = None) -> list[str]:
    """Label each row uniquely in the file, with its id, else with the fewest distinguishing values.

    `row_id` is the name of the value that is the id.
    """
    seen = RowDifferences(row_id)
    for row in rows:
        seen.add(row)
    labeller = seen.labeller()
    return [labeller.label(row) for row in rows]


class RowDifferences:
    """Finds the columns that distinguish rows; keeps only digests of the values."""

    def __init__(self, row_id: str | None = None) -> None:
        """`row_id` is the name of the value that alone names a row, if no other row has it."""
        self._row_id = row_id
        self._count = 0
        self.digests: dict[str, array[int]] = {}

    def add(self, row: Mapping[str, str]) -> None:
        """Add the next row."""
        for name in row:
            if name not in self.digests:
                self.digests[name] = array("Q", bytes(8 * self._count))
        for name, column in self.digests.items():
            column.append(digest_text(row[name]) if name in row else 0)
        self._count += 1

    def labeller(self) -> Labeller:
        """Return a labeller that uses the fewest columns that distinguish the rows."""
        if max(map(len, self.digests.values()), default=self._count) < 2:
            return Labeller([])
        ids = sorted(self.digests.get(self._row_id, ())) if self._row_id else []
        repeated = {id for id, following in itertools.pairwise(ids) if id == following}
        return Labeller(self._find_used(), self._row_id, repeated)

    def _count_distinct(self, by: list[str]) -> int:
        columns = [self.digests[name] for name in by]
        if len(columns) == 1:
            return count_distinct(columns[0])
        return count_distinct(hash(values) % _2_64 for values in zip(*columns, strict=True))

    def _find_used(self) -> list[str]:
        names = list(self.digests)
        distinct = self._count_distinct(names) if names else 1  # equal rows get numbers
        used: list[str] = []
        for name in names:
            column = self.digests[name]
            if any(number != column[0] for number in column):
                used.append(name)
                if self._count_distinct(used) == distinct:
                    break
        for name in used[::-1]:
            rest = [part for part in used if part != name]
            if rest and self._count_distinct(rest) == distinct:
                used = rest
        return used


class Labeller:
    """Gives each row a unique name."""

    def __init__(
        self, used: Sequence[str], row_id: str | None = None, repeated: Collection[int] = ()
    ) -> None:
        """`repeated` has the digests of ids that do not distinguish a row from all others."""
        self._used = used
        self._row_id = row_id
        self.repeated = repeated
        self.names = [row_id] if row_id and used and not repeated else used
        """The names of the values by which the rows are named."""
        self.given = array("Q")
        """The digests of the labels so far, without numbers."""
        self.has_signs = False
        """Whether one of them looks as if it had a number."""
        self._taken = DigestSet()
        self._counts: dict[int, int] = {}
        """The number of repetitions of each label, by its digest."""

    def label(self, row: Mapping[str, str]) -> str:
        """Return a short name for the next row."""
        label = self.name(row)
        first = digest_text(label)
        self.given.append(first)
        self.has_signs = self.has_signs or "#" in label
        if self._taken.add(first):
            return label
        count = self._counts.get(first, 0)
        is_new = False
        while not is_new:
            count += 1
            unique = number_label(label, count)
            is_new = self._taken.add(digest_text(unique))
        self._counts[first] = count
        return unique

    def name(self, row: Mapping[str, str]) -> str:
        """Return the id of a row if no other row has it, else the distinguishing values."""
        id = self._row_id
        if id is None or not self._used:
            return ", ".join(
                [f"{name}={shorten_value(row[name])}" for name in self._used if name in row]
            )
        own = f"{id}={name_id(row[id])}"
        if not self.repeated or digest_text(row[id]) not in self.repeated:
            return own
        others = [name for name in self._used if name in row and name != id]
        return ", ".join([own, *[f"{name}={shorten_value(row[name])}" for name in others]])


def number_label(label: str, before: int) -> str:
    """Return the label of a row after so many rows with the same one."""
    return f"{label} #{before + 1}".lstrip() if before else label


def digest_text(text: str) -> int:
    """Hash a text to 64 bits, the same on every machine; never 0."""
    return hashing.digest_bytes(text.encode("utf-8", "surrogatepass")) | 1


def name_id(text: str) -> str:
    """Put an id on one line; different ids stay different, however long they are."""
    name = " ".join(text.split())
    return name if len(name) <= _ID_WIDTH else f"{name[: _ID_WIDTH - 17]}…{digest_text(text):016x}"


def shorten_value(text: str) -> str:
    """Put a value on one line; a long one on one line; a long one is shortened in the middle."""
    text = " ".join(text.split())
    if len(text) <= _LABEL_WIDTH:
        return text
    half = _LABEL_WIDTH // 2
    return f"{text[:half].rstrip()}…{text[1 - half :].lstrip()}"
