"""Writes the rows of contents, in the transaction that stores the contents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import accumulate
from typing import Any

from evalstore.core.batches import in_weighed_batches
from evalstore.core.errors import StoreError
from evalstore.core.hashing import canonical_json, digest_bytes, hash_content
from evalstore.core.runs import restore_run
from evalstore.core.values import Json
from evalstore.store.contents import ID_BYTES, decode_row
from evalstore.store.driver import Connection
from evalstore.store.rows.row_tables import (
    ANSWER_ROWS,
    CASE_NAMES,
    CASE_NODES,
    CASE_ROWS,
    ENTRIES,
    JUDGEMENT_ROWS,
    KIND_PROMPTS,
    KIND_TAGS,
    KINDS,
    PARTS,
    RESULT_NODES,
    RESULT_ROWS,
    ROW_TABLES,
    ROWS_OF,
    RUN_ROWS,
    VERDICT_NUMBERS,
)
from evalstore.store.schema.table_definitions import TableColumns

Row = tuple[Any, ...]
"""The values of the columns of a row."""
_OF_CASES = ("row", "key", "tests", "evaluation", "recorded")
"""The fields of a case that differ from case to case."""
_OF_NODES = ("kind", "scheme", "cases", "level", "parts", "counts")
"""The fields of a node of cases that are not settings of the file."""
_TOKENS = ("inputTokens", "outputTokens", "cachedTokens", "reasoningTokens")
_NO_TOKENS = (None,) * len(_TOKENS)
_MOST_CHARACTERS = 4 * 2**20
"""The characters after which a batch of them ends."""


# --- the rows of nodes, each with its table


def _tree(id: bytes, content: Json, _kinds: set[bytes]) -> Iterator[tuple[TableColumns, Row]]:
    for field, is_file in (("entries", 1), ("children", 0)):
        for place, (name, child) in enumerate(content.get(field, {}).items()):
            yield ENTRIES, (id, place, _text(name), _id(child), is_file)


def _cases(id: bytes, content: Json, known: set[bytes]) -> Iterator[tuple[TableColumns, Row]]:
    settings = {name: value for name, value in content.items() if name not in _OF_NODES}
    counts = content.get("counts", ())
    size = len(content["cases"]) if "cases" in content else sum(counts)
    yield CASE_NODES, (id, content.get("level", 0), size, canonical_json(settings))
    firsts = accumulate(counts, initial=0)
    for place, (part, first) in enumerate(zip(content.get("parts", ()), firsts, strict=False)):
        yield PARTS, (id, place, _id(part), first)
    kinds, kind, last = known.copy(), b"", None
    names, numbers = set[str](), set[int]()
    for number, case in enumerate(content.get("cases", ())):
        described = {name: value for name, value in case.items() if name not in _OF_CASES}
        if described != last:  # most cases are like the one before
            last, content_of_kind = described, canonical_json(described)
            kind = bytes.fromhex(hash_content(content_of_kind))
            if kind not in kinds:
                kinds.add(kind)
                yield from build_kind(kind, content_of_kind, described)
        evaluation, tests = case.get("evaluation"), _joined(case["tests"])
        names.update((case["key"], case.get("row", "")))
        numbers.update(
            number_of(tests[at : at + ID_BYTES]) for at in range(0, len(tests), ID_BYTES)
        )
        yield (
            CASE_ROWS,
            (
                *(id, number, _text(case["key"]), _text(case.get("row"))),
                tests,
                *(evaluation and _id(evaluation), kind),
            ),
        )
    for name in sorted(numbers.union(map(hash_name, names))):
        yield CASE_NAMES, (name, id)


def _results(id: bytes, content: Json, _kinds: set[bytes]) -> Iterator[tuple[TableColumns, Row]]:
    yield RESULT_NODES, (id, _id(content["cases"]), content.get("level", 0))
    for place, part in enumerate(content.get("parts", ())):
        yield PARTS, (id, place, part and _id(part), None)
    for number, cell in enumerate(content.get("cells", ())):
        yield (
            RESULT_ROWS,
            (
                *(id, number, cell["case"], cell.get("prompt", 0), _text(cell["model"])),
                *(VERDICT_NUMBERS.get(cell.get("verdict")), _real(cell.get("score"))),
                *(cell.get("wanted", 1), _joined(cell.get("sessions", ()))),
                _joined(cell.get("evaluations", ())),
            ),
        )


# --- the rows of what has happened


def _session(id: bytes, content: Json, _kinds: set[bytes]) -> Iterator[tuple[TableColumns, Row]]:
    turns = content["turns"]
    prompt, finish = content.get("prompt"), turns[-1].get("finishReason")
    usage = [turn["usage"] for turn in turns if "usage" in turn]
    yield (
        ANSWER_ROWS,
        (
            *(id, _id(content["test"]), prompt and _id(prompt), _id(content["model"])),
            *(content["started"], _usd(content), _real(_sum(turns, "latency"))),
            *([_sum(usage, name) for name in _TOKENS] if usage else _NO_TOKENS),
            _text(finish),
        ),
    )


def _judgement(id: bytes, content: Json, _kinds: set[bytes]) -> Iterator[tuple[TableColumns, Row]]:
    usage = content.get("usage", {})
    yield (
        JUDGEMENT_ROWS,
        (
            *(id, _usd(content), _real(content.get("latency"))),
            *(usage.get("inputTokens"), usage.get("outputTokens")),
            int("takenFrom" in content),
        ),
    )


def _run(id: bytes, content: Json, _kinds: set[bytes]) -> Iterator[tuple[TableColumns, Row]]:
    run = restore_run(id.hex(), content)
    selected, total = (run.cases.selected, run.cases.total) if run.cases else (None, None)
    yield (
        RUN_ROWS,
        (
            *(id, run.started, run.ended, _text(run.status), _id(run.snapshot)),
            *(_id(run.results), _text(run.message), _text(run.author)),
            *(_text(run.git.commit) if run.git else None, selected, total, _real(run.cost)),
            *(run.asked, run.judged, run.reused, run.failed),
        ),
    )


def build_kind(id: bytes, text: str, content: Json) -> Iterator[tuple[TableColumns, Row]]:
    """Yield the rows of what cases have in common, each with its table; `text` is its JSON."""
    yield KINDS, (id, text)
    for place, tag in enumerate(content.get("tags", ())):
        yield KIND_TAGS, (id, place, _text(tag))
    for number, prompt in enumerate(content.get("prompts", (None,))):
        yield KIND_PROMPTS, (id, number, prompt and _id(prompt))


_MADE: dict[str, Callable[[bytes, Json, set[bytes]], Iterator[tuple[TableColumns, Row]]]] = {
    "tree": _tree,
    "cases": _cases,
    "results": _results,
    "session": _session,
    "judgement": _judgement,
    "run": _run,
}
"""By kind of content; the last argument are the kinds of cases that have their rows."""


def build_rows(contents: Iterable[tuple[bytes, Json]]) -> dict[str, list[Row]]:
    """Return the rows of contents by table, each given with its id.

    One that is not as its kind is has none.
    """
    rows: dict[str, list[Row]] = {}
    kinds: set[bytes] = set()
    for id, content in contents:
        make = _MADE.get(content["kind"])
        try:
            made = list(make(id, content, kinds)) if make else []
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError):
            continue
        for table, row in made:
            rows.setdefault(table.name, []).append(row)
            if table is KINDS:
                kinds.add(row[0])
    return rows


def write_rows(connection: Connection, contents: Iterable[tuple[bytes, Json]]) -> None:
    """Write those rows of contents that are missing, in the transaction of the connection."""
    built = build_rows(contents)
    for name, table in ROW_TABLES.items():
        if rows := built.get(name):
            connection.insert(table, rows)


def fill(connection: Connection) -> None:
    """Write the rows of all contents of a store, in the transaction of the connection."""
    for table in ROWS_OF:
        for contents in iterate_contents(connection, table):
            write_rows(connection, contents)


def iterate_contents(connection: Connection, table: str) -> Iterator[list[tuple[bytes, Json]]]:
    """Yield the contents of a table that can be read, each with its id, in batches."""
    rows = connection.stream(f"SELECT id, content FROM {table}")
    for batch in in_weighed_batches(
        rows, lambda row: len(row[1] if isinstance(row[1], str) else ()), _MOST_CHARACTERS
    ):
        contents: list[tuple[bytes, Json]] = []
        for id, text in batch:
            with suppress(StoreError):  # it is damaged, which `fsck` says
                digits, content = decode_row(table, id, text)
                contents.append((bytes.fromhex(digits), content))
        yield contents


def _id(digits: str) -> bytes:
    id = bytes.fromhex(digits)
    if len(id) != ID_BYTES:
        raise ValueError("it is not an id")
    return id


def _joined(ids: Iterable[str]) -> bytes:
    return b"".join(map(_id, ids))


def hash_name(name: str) -> int:
    """Return the number by which a case with this key or label is found."""
    number = digest_bytes(name.encode())
    return number - 2**64 if number >> 63 else number


def number_of(id: bytes) -> int:
    """Return the number by which a case with a test of this id is found."""
    return int.from_bytes(id[:8], signed=True)


def _text(text: str | None) -> str | None:
    """Return a text without NUL characters, which PostgreSQL does not store."""
    return text and text.replace("\0", "\ufffd")


def _real(number: float | None) -> float | None:
    return None if number is None else float(number)


def _usd(content: Json) -> float | None:
    cost = content.get("cost")
    return float(cost["usd"]) if cost else None


def _sum(items: Iterable[Json], name: str) -> Any:
    """Return the sum of a field of those items that have it; None when none has."""
    values = [item[name] for item in items if name in item]
    total = sum(values) if values else None
    return None if isinstance(total, int) and abs(total) >= 2**63 else total
