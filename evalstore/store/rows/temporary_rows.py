"""Rows of results that no store has, such as those of the workspace, in a temporary database."""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Iterable, Sequence

from evalstore.core.canonical_json import canonical_json
from evalstore.core.results import Result
from evalstore.core.values import Case
from evalstore.store.ids import as_bytes
from evalstore.store.rows.columns import (
    ANSWER_ROWS,
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
    VERDICT_NUMBERS,
)
from evalstore.store.rows.row_queries import RowQueries
from evalstore.store.schema.table_definitions import TableColumns
from evalstore.store.sqlite.connection import SQLiteConnection

_EVALUATIONS = TableColumns(
    "evaluations",
    {
        **dict.fromkeys(("id", "evaluator", "subject", "evaluation"), "BLOB"),
        "started": "BIGINT",
        "verdict": "TEXT",
    },
    frozenset(),
    is_clustered=True,
)
"""What sums need of the table of judgements."""
_TABLES = (
    *(KINDS, KIND_TAGS, KIND_PROMPTS, ENTRIES, PARTS, CASE_NODES, CASE_ROWS),
    *(RESULT_NODES, RESULT_ROWS, ANSWER_ROWS, JUDGEMENT_ROWS, _EVALUATIONS),
)
ROOT = bytes(16)
"""The tree of the results."""
_Kind = tuple[tuple[str, ...], tuple[str | None, ...], tuple[str, ...]]


class TemporaryRows:
    """A database with the rows that sums need; it is gone when it is not referred to any more.

    Numbers stand for the ids of nodes. A file is one leaf of the tree.
    """

    def __init__(self) -> None:
        self.connection = sqlite3.connect(
            "", isolation_level=None, check_same_thread=False, factory=SQLiteConnection
        )
        weakref.finalize(self, self.connection.close)
        self.connection.execute("PRAGMA journal_mode = OFF")
        for table in _TABLES:
            for statement in table.statements():
                self.connection.execute(statement)
        self._files: dict[str, bytes] = {}
        self._kinds: dict[_Kind, bytes] = {}
        self._last = "", ""
        """The file and the row of the last result."""
        self._case = self._number = -1

    def add(self, store: RowQueries, cells: Sequence[tuple[Result, Case]]) -> None:
        """Add results, in their order, with the rows of those answers and judgements that exist."""
        rows: dict[TableColumns, list[Sequence[object]]] = {table: [] for table in _TABLES}
        for result, case in cells:
            leaf = self._leaf(result.file, rows)
            if (result.file, result.row) != self._last:
                self._last = result.file, result.row
                self._case += 1
                kind = self._kind((case.tags, case.prompts, case.judged_by), rows)
                tests = _joined(case.tests)
                told = as_bytes(case.evaluation)
                rows[CASE_ROWS].append((leaf, self._case, "", "", tests, told, kind))
            self._number += 1
            rows[RESULT_ROWS].append(
                (
                    *(leaf, self._number, self._case, result.prompt_number, result.model),
                    *(VERDICT_NUMBERS.get(result.verdict or ""), result.score),
                    *(result.required_answers, _joined(result.sessions)),
                    _joined(result.evaluations),
                )
            )
        made = [id for result, _ in cells for id in result.evaluations]
        asked = [id for result, _ in cells for id in result.sessions]
        for table, ids in ((ANSWER_ROWS, asked), (JUDGEMENT_ROWS, made), (_EVALUATIONS, made)):
            rows[table] = store.find_rows(table, ids)
        self.connection.execute("BEGIN")
        for table, listed in rows.items():
            self.connection.insert(table, listed)
        self.connection.execute("COMMIT")

    def _leaf(self, file: str, rows: dict[TableColumns, list[Sequence[object]]]) -> bytes:
        leaf = self._files.get(file)
        if leaf is None:
            number = len(self._files)
            leaf = self._files[file] = (number + 1).to_bytes(16)
            rows[ENTRIES].append((ROOT, number, file, leaf, 1))
            rows[RESULT_NODES].append((leaf, leaf, 0))
            rows[CASE_NODES].append((leaf, 0, 0, ""))
        return leaf

    def _kind(self, kind: _Kind, rows: dict[TableColumns, list[Sequence[object]]]) -> bytes:
        id = self._kinds.get(kind)
        if id is None:
            id = self._kinds[kind] = len(self._kinds).to_bytes(16)
            tags, prompts, judged_by = kind
            content = {"tags": [*tags], "judgedBy": [*judged_by]}
            rows[KINDS].append((id, canonical_json(content)))
            rows[KIND_TAGS] += [(id, place, tag) for place, tag in enumerate(tags)]
            rows[KIND_PROMPTS] += [
                (id, number, as_bytes(prompt) if prompt else None)
                for number, prompt in enumerate(prompts)
            ]
        return id


def _joined(ids: Iterable[str]) -> bytes:
    return b"".join(as_bytes(id) or b"" for id in ids)
