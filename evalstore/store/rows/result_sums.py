"""Sums the results of a tree by group, in SQL: how many, with which verdicts, at which cost.

A group is of candidates, system prompts, tags and files; a case counts for each of its tags.
Results that no store has, such as those of the workspace, are rows of a temporary database.
"""

from __future__ import annotations

import json
import sqlite3
import weakref
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from evalstore.core.hashing import canonical_json
from evalstore.core.values import RECORDED, VERDICTS, Case, Json, Result, Verdict
from evalstore.store import Store
from evalstore.store.contents import as_bytes, as_digits, damaged, split_ids
from evalstore.store.driver import Connection
from evalstore.store.results import require_results
from evalstore.store.rows.row_queries import CELLS, OF_RUNS, RowQueries
from evalstore.store.rows.row_tables import (
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
    build_kind,
    numbers_of,
)
from evalstore.store.schema.table_definitions import TableColumns
from evalstore.store.sqlite.connection import SQLiteConnection

By = tuple[str, ...]
Key = tuple[str | None, ...]
_COLUMNS = {"model": "r.model", "prompt": "p.prompt", "tag": "g.tag", "file": "l.file"}
_JOINS = {
    "prompt": "LEFT JOIN kind_prompts p ON p.kind = c.kind AND p.number = r.prompt",
    "tag": "LEFT JOIN kind_tags g ON g.kind = c.kind",
}
_DAY = 86_400_000_000
_WHOLE = (("usd", 12), ("seconds", 6))
"""What is summed in whole numbers, and the decimals of each that count."""
_JUDGED = numbers_of(VERDICTS)
_PASS, _UNDECIDED, _ERROR = map(numbers_of, (["pass"], ["undecided"], ["error"]))
# Numbers up to that of the ids of a result, which are one after the other.
_ORDINALS = """,
    ordinals (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM ordinals WHERE n + 1 < (
        SELECT max(length(r.{ids})) / 16 FROM leaf l JOIN result_rows r ON r.leaf = l.results))
"""
_CALLS = """{leaves} {ordinals},
    place (id, model, prompt, kind, file) AS (
        SELECT substr(r.{ids}, 16 * o.n + 1, 16), r.model, p.prompt, c.kind, l.file
        {cells} CROSS JOIN ordinals o WHERE r.leaf = l.results AND o.n < length(r.{ids}) / 16),
    shared (id) AS MATERIALIZED (SELECT id FROM place GROUP BY id HAVING count(*) > 1),
    call (id, model, prompt, kind, file, shared) AS (
        SELECT p.*, NULL FROM place p WHERE id NOT IN (SELECT id FROM shared)
        UNION ALL SELECT DISTINCT p.*, id FROM place p WHERE id IN (SELECT id FROM shared)),
    made (shared, model, prompt, file, kind, id, maker, started, usd, seconds) AS (
        SELECT d.shared, d.model, d.prompt, d.file, d.kind,
            d.id, {maker}, {started}, x.usd, x.seconds FROM call d {facts}),
    found AS (SELECT shared, model, prompt, file, kind, {columns} FROM made {rest})
    SELECT g.place, g.tag, f.* FROM found f LEFT JOIN kind_tags g ON g.kind = f.kind
    ORDER BY f.shared
"""
_ANSWERS = {
    "ids": "sessions",
    "maker": f"CASE WHEN d.model <> '{RECORDED}' THEN x.model END",
    "started": "x.started",
    "facts": "CROSS JOIN answer_rows x WHERE x.id = d.id",
}
_JUDGEMENTS = {
    "ids": "judgements",
    "maker": "j.evaluator",
    "started": "j.started",
    "facts": "CROSS JOIN evaluations j LEFT JOIN judgement_rows x ON x.id = d.id WHERE j.id = d.id",
}


class EqualCases(NamedTuple):
    """Cases of a file, each with the same counts in a group."""

    key: Key
    file: str
    judged: int
    passed: int
    unresolved: int
    undecided: int
    """Of all these cases; the counts before are of one."""
    results: int
    cases: int


class CallSum(NamedTuple):
    """The answers, or judgements, of a group that began on a day, each once."""

    key: Key
    maker: str
    """The model version of answers, empty if files have them, or the evaluator of judgements."""
    started: int
    """When the day began, in microseconds since 1970, UTC."""
    calls: int
    priced: int
    """How many of them have a cost."""
    usd: float
    earlier: float
    """The cost of those of them that began before a time, in USD."""
    timed: int
    """How many have a duration."""
    microseconds: float


class Call(NamedTuple):
    """An answer or a judgement, and groups that it counts for."""

    groups: Sequence[tuple[By, Key]]
    id: str
    maker: str
    started: int


class AttemptedCell(NamedTuple):
    """A result of which several answers are required."""

    file: str
    model: str
    prompt: str | None
    kind: Json
    """What its case has in common with others."""
    attempts: int
    """The number of attempts, each at all conversations of the case."""
    judgements: Sequence[str]


class ResultSums:
    """The sums of the results below a node, in a connection that reads."""

    def __init__(self, connection: Connection, root: bytes) -> None:
        self._connection, self._root = connection, root

    def _rows(self, query: str, *parameters: Any) -> Iterator[Any]:
        return self._connection.stream(query, (self._root, *parameters))

    def clusters(self, by: By) -> Iterator[EqualCases]:
        """Yield how many cases of each file have which verdicts in a group.

        Raises `StoreError` for a result without a case.
        """
        values = "".join(f"{_COLUMNS[name]} AS by_{name}, " for name in by)
        names = "".join(f"by_{name}, " for name in by)
        counts = "judged, passed, unresolved"
        query = f"""{OF_RUNS}
            SELECT {names} file, {counts}, sum(undecided), sum(results), count(*), sum(cases)
            FROM (SELECT {values} l.file AS file,
                sum(CASE WHEN r.verdict IN ({_JUDGED}) THEN 1 ELSE 0 END) AS judged,
                sum(CASE WHEN r.verdict = {_PASS} THEN 1 ELSE 0 END) AS passed,
                sum(CASE WHEN r.verdict IN ({_UNDECIDED}, {_ERROR}) THEN 1 ELSE 0 END)
                    AS unresolved,
                sum(CASE WHEN r.verdict = {_UNDECIDED} THEN 1 ELSE 0 END) AS undecided,
                count(*) AS results, min(CASE WHEN c.leaf IS NULL THEN 0 ELSE 1 END) AS cases
                {_cells_of(by)} WHERE r.leaf = l.results
                GROUP BY {names} l.file, l.first, r.case_n) AS of_cases
            GROUP BY {names} file, {counts}"""
        for row in self._rows(query):
            *key, file, judged, passed, unresolved, undecided, results, cases, found = row
            if found != cases:
                raise damaged("nodes", "", "a result in it belongs to no case")
            counted = int(judged), int(passed), int(unresolved), int(undecided)
            yield EqualCases(_key(by, key), file, *counted, int(results), int(cases))

    def paired(self, first: str, second: str) -> Iterator[tuple[str, int, int, int]]:
        """Yield how many rows of a file have so many results that are judged for two candidates.

        Each with how many more of these the first one passes: file, results, passes, rows.
        """
        query = f"""{OF_RUNS}
            SELECT file, pairs, gain, count(*) FROM (
                SELECT file, part, place, count(*) AS pairs, sum(gain) AS gain FROM (
                    SELECT l.file AS file, l.first AS part, r.case_n AS place,
                        sum(CASE WHEN r.verdict <> {_PASS} THEN 0
                            WHEN r.model = ? THEN 1 ELSE -1 END) AS gain
                    {CELLS} WHERE r.leaf = l.results AND r.model IN (?, ?)
                        AND r.verdict IN ({_JUDGED})
                    GROUP BY l.file, l.first, r.case_n, r.prompt HAVING count(*) = 2) AS of_cells
                GROUP BY file, part, place) AS of_rows
            GROUP BY file, pairs, gain"""
        for file, *numbers in self._rows(query, first, first, second):
            pairs, gain, rows = map(int, numbers)
            yield file, pairs, gain, rows

    def sum_calls(
        self, groupings: Collection[By], before: int = 0, *, judgements: bool
    ) -> dict[By, list[CallSum]]:
        """Return the sums of the answers, or of the judgements, by each grouping.

        `before` is the time of `CallSum.earlier`.
        """
        # Sums of whole numbers are the same in any order.
        cost, duration = (f"round({name} * 1e{zeros})" for name, zeros in _WHOLE)
        columns = (
            f"maker, started / {_DAY}, count(*), count(usd), sum({cost}), "
            f"sum(CASE WHEN started < ? THEN {cost} END), count(seconds), sum({duration})"
        )
        rest = "GROUP BY 1, 2, 3, 4, 5, 6, 7"
        rows = self._calls(groupings, columns, rest, before, judgements=judgements)
        sums: dict[tuple[bytes, int, By, Key], list[float]] = {}
        for groups, (who, days, *numbers) in rows:
            for group in groups:
                known = sums.setdefault((who or b"", days, *group), [0] * len(numbers))
                known[:] = (old + (new or 0) for old, new in zip(known, numbers, strict=True))
        found: dict[By, list[CallSum]] = {by: [] for by in groupings}
        for who, days, by, key in sorted(sums, key=itemgetter(0, 1)):
            count, priced, usd, earlier, timed, time = sums[who, days, by, key]
            found[by].append(
                CallSum(
                    *(key, as_digits(who) if who else "", days * _DAY, int(count), int(priced)),
                    *(usd / 1e12, earlier / 1e12, int(timed), time),
                )
            )
        return found

    def unpriced(self, groupings: Collection[By], *, judgements: bool) -> Iterator[Call]:
        """Yield the answers, or the judgements, without a cost, at each of their places."""
        columns, rest = "id, maker, started", "WHERE usd IS NULL"
        for groups, each in self._calls(groupings, columns, rest, judgements=judgements):
            id, maker, started = each
            yield Call(groups, as_digits(id), as_digits(maker) if maker else "", started)

    def _calls(
        self, groupings: Collection[By], columns: str, rest: str, *values: Any, judgements: bool
    ) -> Iterator[tuple[Sequence[tuple[By, Key]], Sequence[Any]]]:
        """Yield the columns of calls, and the groups for which these were not yielded before."""
        calls = _JUDGEMENTS if judgements else _ANSWERS
        query = _CALLS.format(
            **calls,
            leaves=OF_RUNS,
            ordinals=_ORDINALS.format(ids=calls["ids"]),
            cells=_cells_of(("prompt",)),
            columns=columns,
            rest=rest,
        )
        for shared, rows in groupby(self._rows(query, *values), key=itemgetter(2)):
            known = set[tuple[By, Key]]()
            for number, tag, _, model, prompt, file, _, *found in rows:
                place = {"model": model, "prompt": prompt, "tag": tag, "file": file}
                places = (
                    (by, _key(by, [place[name] for name in by]))
                    for by in groupings
                    if not number or "tag" in by
                )
                groups = [group for group in places if group not in known]
                known.update(groups if shared else ())
                yield groups, found

    def judged_answers(self) -> Counter[tuple[tuple[str, Verdict], ...]]:
        """Return how many answers have which evaluators, by id, with which verdicts."""
        judged = f"""{OF_RUNS} {_ORDINALS.format(ids="judgements")},
            call AS (SELECT DISTINCT substr(r.judgements, 16 * o.n + 1, 16) AS id
                FROM leaf l CROSS JOIN result_rows r CROSS JOIN ordinals o
                WHERE r.leaf = l.results AND o.n < length(r.judgements) / 16)
            SELECT j.subject, j.evaluation, j.evaluator, j.verdict
            FROM call d CROSS JOIN evaluations j WHERE j.id = d.id ORDER BY 1, 2, 3, 4"""
        answers = groupby(self._rows(judged), key=lambda row: row[:2])
        return Counter(
            tuple((as_digits(id), verdict) for *_, id, verdict in rows) for _, rows in answers
        )

    def instructions(self) -> set[str]:
        """Return the evaluation versions of the cases."""
        query = f"{OF_RUNS} SELECT DISTINCT c.evaluation {_cells_of(())} WHERE r.leaf = l.results"
        return {as_digits(id) for (id,) in self._rows(query) if id}

    def asked_since(self, time: int) -> set[str]:
        """Return the nodes of results with answers that began after a time."""
        query = f"""{OF_RUNS} {_ORDINALS.format(ids="sessions")}
            SELECT DISTINCT l.results FROM leaf l CROSS JOIN result_rows r
            CROSS JOIN ordinals o CROSS JOIN answer_rows x
            WHERE r.leaf = l.results AND o.n < length(r.sessions) / 16
            AND x.id = substr(r.sessions, 16 * o.n + 1, 16) AND x.started > ?"""
        return {as_digits(leaf) for (leaf,) in self._rows(query, time)}

    def attempted(self) -> Iterator[AttemptedCell]:
        """Yield the results that may have several attempts, in their order."""
        query = (
            f"{OF_RUNS} SELECT l.file, r.model, p.prompt, k.content, "
            f"r.wanted, length(c.tests) / 16, r.judgements {_cells_of(('prompt',))} "
            "JOIN kinds k ON k.id = c.kind WHERE r.leaf = l.results AND r.wanted > 1 "
            "ORDER BY l.file, l.first, r.n"
        )
        for file, model, prompt, kind, wanted, tests, judgements in self._rows(query):
            yield AttemptedCell(
                file,
                model,
                as_digits(prompt) if prompt else None,
                json.loads(kind),
                count_attempts(wanted, tests),
                split_ids(judgements),
            )


def count_attempts(answers: int, conversations: int) -> int:
    """Return how often a case is tried for which so many answers are required."""
    return max(1, answers // max(1, conversations))


def _cells_of(by: By) -> str:
    """Return the tables of a grouping."""
    return " ".join([CELLS, *(_JOINS[name] for name in by if name in _JOINS)])


def _key(by: By, values: Sequence[Any]) -> Key:
    return tuple(
        as_digits(value) if name == "prompt" and value is not None else value
        for name, value in zip(by, values, strict=True)
    )


@contextmanager
def open_sums(store: Store, root: str) -> Iterator[ResultSums]:
    """Return the sums of a tree of results in a store, as it is now.

    Raises `StoreError` when one of its nodes is missing.
    """
    require_results(store, root)
    with store.snapshot() as connection:
        yield ResultSums(connection, bytes.fromhex(root))


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
            content = dict(zip(("tags", "prompts", "judgedBy"), kind, strict=True))
            for table, row in build_kind(id, canonical_json(content), content):
                rows[table].append(row)
        return id


def _joined(ids: Iterable[str]) -> bytes:
    return b"".join(as_bytes(id) or b"" for id in ids)
