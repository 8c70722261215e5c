"""The tables of rows, how they are written, and the views of them that people ask with SQL.

In the views, ids are hexadecimal, verdicts are words, and times are UTC.

A leaf is a node with cases or with results; `n` is the place of a case or a result in it. Several
ids are concatenated, 16 bytes each. Verdicts are numbers: `VERDICT_NUMBERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from evalstore.core.batches import in_weighed_batches
from evalstore.core.errors import StoreError
from evalstore.core.hashing import canonical_json, digest_bytes, hash_content
from evalstore.core.runs import restore_run
from evalstore.core.values import VERDICTS, WORDS, Json, Verdict
from evalstore.store.contents import ID_BYTES, decode_row
from evalstore.store.driver import Connection
from evalstore.store.schema.table_definitions import (
    EVALUATIONS,
    NODES,
    RUNS,
    SESSIONS,
    TableColumns,
)

VERDICT_NUMBERS = {str(word): number for number, word in enumerate(WORDS, start=1)}
VERDICT_OF: dict[int | None, Verdict] = {VERDICT_NUMBERS[word]: word for word in VERDICTS}

_NUMBER, _TEXT, _BYTES, _REAL = "BIGINT NOT NULL", "TEXT NOT NULL", "BLOB NOT NULL", "FLOAT"
_COUNT = "BIGINT"


def _table(
    name: str, columns: dict[str, str], *ids: str, key: tuple[str, ...] = ("id",)
) -> TableColumns:
    return TableColumns(name, columns, frozenset(ids), key=key, is_clustered=True)


KINDS = _table("kinds", {"id": _BYTES, "content": _TEXT}, "id")
"""What cases have in common: their content without `row`, `key`, `tests`, `evaluation`, `recorded`.

Its id is the hash of it."""
KIND_TAGS = _table(
    "kind_tags",
    {"kind": _BYTES, "place": _NUMBER, "tag": _TEXT},
    "kind",
    key=("kind", "place"),
)
KIND_PROMPTS = _table(
    "kind_prompts",
    {"kind": _BYTES, "number": _NUMBER, "prompt": "BLOB"},
    "kind",
    "prompt",
    key=("kind", "number"),
)
ENTRIES = _table(
    "entries",
    {"tree": _BYTES, "place": _NUMBER, "name": _TEXT, "child": _BYTES, "is_file": _NUMBER},
    "tree",
    "child",
    key=("tree", "place"),
)
PARTS = _table(
    "parts",
    {"parent": _BYTES, "place": _NUMBER, "child": "BLOB", "first": _COUNT},
    "parent",
    "child",
    key=("parent", "place"),
)
"""The nodes below a node; `first` is the number of their first case below a node of cases."""
CASE_NODES = _table(
    "case_nodes",
    {"id": _BYTES, "level": _NUMBER, "size": _NUMBER, "settings": _TEXT},
    "id",
)
CASE_ROWS = _table(
    "case_rows",
    {
        "leaf": _BYTES,
        "n": _NUMBER,
        "key": _TEXT,
        "row": "TEXT",
        "tests": _BYTES,
        "evaluation": "BLOB",
        "kind": _BYTES,
    },
    "leaf",
    "evaluation",
    "kind",
    key=("leaf", "n"),
)
CASE_NAMES = _table("case_names", {"name": _NUMBER, "leaf": _BYTES}, "leaf", key=("name", "leaf"))
"""Numbers by which cases are found: of their keys, their labels and their tests."""
RESULT_NODES = _table(
    "result_nodes",
    {"id": _BYTES, "cases": _BYTES, "level": _NUMBER},
    "id",
    "cases",
)
RESULT_ROWS = _table(
    "result_rows",
    {
        "leaf": _BYTES,
        "n": _NUMBER,
        "case_n": _NUMBER,
        "prompt": _NUMBER,
        "model": _TEXT,
        "verdict": _COUNT,
        "score": _REAL,
        "wanted": _NUMBER,
        "sessions": _BYTES,
        "judgements": _BYTES,
    },
    "leaf",
    key=("leaf", "n"),
)
ANSWER_ROWS = _table(
    "answer_rows",
    {
        "id": _BYTES,
        "test": _BYTES,
        "prompt": "BLOB",
        "model": _BYTES,
        "started": _NUMBER,
        "usd": _REAL,
        "seconds": _REAL,
        "input": _COUNT,
        "output": _COUNT,
        "cached": _COUNT,
        "reasoning": _COUNT,
        "finish": "TEXT",
    },
    "id",
    "test",
    "prompt",
    "model",
)
JUDGEMENT_ROWS = _table(
    "judgement_rows",
    {
        "id": _BYTES,
        "usd": _REAL,
        "seconds": _REAL,
        "input": _COUNT,
        "output": _COUNT,
        "is_carried": _NUMBER,
    },
    "id",
)
"""What the table of judgements has not."""
RUN_ROWS = _table(
    "run_rows",
    {
        "id": _BYTES,
        "started": _NUMBER,
        "ended": _NUMBER,
        "status": _TEXT,
        "snapshot": _BYTES,
        "results": _BYTES,
        "message": "TEXT",
        "author": "TEXT",
        "git_commit": "TEXT",
        "selected": _COUNT,
        "total": _COUNT,
        "usd": _REAL,
        "asked": _NUMBER,
        "judged": _NUMBER,
        "reused": _NUMBER,
        "failed": _NUMBER,
    },
    "id",
    "snapshot",
    "results",
)
OF_KINDS = (KINDS, KIND_TAGS, KIND_PROMPTS)
"""The tables whose rows follow from what several cases have in common."""
ROWS_OF: dict[str, tuple[TableColumns, ...]] = {
    NODES.name: (
        *(*OF_KINDS, ENTRIES, PARTS, CASE_NODES, CASE_ROWS, CASE_NAMES),
        *(RESULT_NODES, RESULT_ROWS),
    ),
    SESSIONS.name: (ANSWER_ROWS,),
    EVALUATIONS.name: (JUDGEMENT_ROWS,),
    RUNS.name: (RUN_ROWS,),
}
"""The tables with the rows of the contents of a table."""
ROW_TABLES = {table.name: table for tables in ROWS_OF.values() for table in tables}


VIEWS = ("runs_v", "results_v", "answers_v", "judgements_v", "costs_v")


@dataclass(frozen=True)
class _Words:
    """What SQLite and PostgreSQL write in different ways; braces take an expression."""

    hex: str
    time: str
    day: str
    last: str
    """The last id of concatenated ones."""
    tags: str
    field: str
    """A field of a JSON text."""
    text: str
    """The text of the last turn."""
    first: str
    """The first answer of a judgement."""
    count: str


_SQLITE = _Words(
    hex="nullif(lower(hex({})), '')",
    time="strftime('%Y-%m-%dT%H:%M:%fZ', {} / 1000000.0, 'unixepoch')",
    day="strftime('%Y-%m-%d', {} / 1000000, 'unixepoch')",
    last="substr({0}, length({0}) - 15, 16)",
    tags="group_concat(tag, ', ')",
    field="json_extract({}, '$.{}')",
    text="json_extract({}, '$.turns[#-1].text')",
    first="json_extract({}, '$.sessions[0]')",
    count="json_array_length({}, '$.sessions')",
)
_POSTGRESQL = _Words(
    hex="encode({}, 'hex')",
    time="to_char(to_timestamp({} / 1e6) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')",
    day="to_char(to_timestamp({} / 1e6) AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
    last="substring({0} FROM greatest(length({0}) - 15, 1) FOR 16)",
    tags="string_agg(tag, ', ')",
    field="content_json({}) ->> '{}'",
    text="content_json({}) -> 'turns' -> -1 ->> 'text'",
    first="content_json({}) -> 'sessions' ->> 0",
    count="json_array_length(content_json({}) -> 'sessions')",
)


def sqlite_views() -> dict[str, str]:
    """Return the statements that create the views in SQLite, by name."""
    return _views(_SQLITE)


def postgresql_views() -> dict[str, str]:
    """Return the same for PostgreSQL."""
    return _views(_POSTGRESQL)


def _views(words: _Words) -> dict[str, str]:
    columns = {
        "runs_v": _runs(words),
        "results_v": _results(words),
        "answers_v": _answers(words),
        "judgements_v": _judgements(words),
        "costs_v": _costs(words),
    }
    return {
        name: f"CREATE VIEW {name} AS {' '.join(text.split())}" for name, text in columns.items()
    }


def by_verdict(column: str, words: Iterable[str], value_of: Callable[[str], object]) -> str:
    """Return what stands for each of these verdicts, as an expression of their number."""
    cases = " ".join(f"WHEN {VERDICT_NUMBERS[word]} THEN {value_of(word)}" for word in words)
    return f"CASE {column} {cases} END"


def numbers_of(words: Iterable[str]) -> str:
    """Return the numbers of verdicts as a list in SQL."""
    return ", ".join(str(VERDICT_NUMBERS[word]) for word in words)


def _runs(words: _Words) -> str:
    return f"""
    SELECT {words.hex.format("r.id")} AS run, {words.time.format("r.started")} AS started,
        {words.time.format("r.ended")} AS ended, r.status, r.message, r.author,
        r.git_commit, r.selected AS cases, r.total AS all_cases, r.asked, r.judged, r.reused,
        r.failed, r.usd
    FROM run_rows r
    """


def _results(words: _Words) -> str:
    return f"""
    WITH RECURSIVE
    tree (run, node) AS (
        SELECT id, results FROM run_rows
        UNION SELECT t.run, e.child FROM tree t JOIN entries e ON e.tree = t.node
        WHERE e.is_file = 0),
    part (run, file, first, cases, results) AS (
        SELECT t.run, e.name, CAST(0 AS BIGINT), n.cases, n.id FROM tree t
        JOIN entries e ON e.tree = t.node AND e.is_file = 1 JOIN result_nodes n ON n.id = e.child
        UNION ALL
        SELECT p.run, p.file, p.first + c.first, c.child, q.child FROM part p
        JOIN parts q ON q.parent = p.results AND q.child IS NOT NULL
        JOIN parts c ON c.parent = p.cases AND c.place = q.place)
    SELECT {words.hex.format("p.run")} AS run, p.file, p.first + r.case_n AS number,
        coalesce(c.row, '') AS row, c.key, r.model,
        {words.hex.format("k.prompt")} AS prompt,
        {by_verdict("r.verdict", WORDS, repr)} AS verdict, r.score,
        (SELECT {words.tags} FROM (SELECT tag FROM kind_tags g
            WHERE g.kind = c.kind AND substr(tag, 1, 1) <> '_' ORDER BY g.place) AS t) AS tags,
        {words.hex.format("substr(c.tests, 1, 16)")} AS test,
        {words.hex.format("c.evaluation")} AS evaluation, length(r.sessions) / 16 AS answers,
        {words.hex.format("a.id")} AS answer, {words.text.format("s.content")} AS text,
        a.usd, a.seconds, a.output AS output_tokens, {words.hex.format("j.id")} AS judgement,
        {words.field.format("j.content", "feedback")} AS feedback
    FROM part p JOIN result_rows r ON r.leaf = p.results
    JOIN case_rows c ON c.leaf = p.cases AND c.n = r.case_n
    LEFT JOIN kind_prompts k ON k.kind = c.kind AND k.number = r.prompt
    LEFT JOIN answer_rows a ON a.id = {words.last.format("r.sessions")}
    LEFT JOIN sessions s ON s.id = {words.last.format("r.sessions")}
    LEFT JOIN evaluations j ON j.id = {words.last.format("r.judgements")}
    """


def _answers(words: _Words) -> str:
    provider, code = (words.field.format("m.content", name) for name in ("provider", "code"))
    return f"""
    SELECT {words.hex.format("a.id")} AS answer, {provider} AS provider, {code} AS model,
        {words.hex.format("a.test")} AS test, {words.hex.format("a.prompt")} AS prompt,
        {words.time.format("a.started")} AS started, a.usd, a.seconds, a.input AS input_tokens,
        a.output AS output_tokens, a.cached AS cached_tokens, a.reasoning AS reasoning_tokens,
        a.finish AS finish_reason, {words.text.format("s.content")} AS text
    FROM answer_rows a JOIN sessions s ON s.id = a.id LEFT JOIN models m ON m.id = a.model
    """


def _judgements(words: _Words) -> str:
    human, checks, judge = (
        words.field.format("v.content", name) for name in ("human", "checks", "model")
    )
    code = words.field.format("m.content", "code")
    return f"""
    SELECT {words.hex.format("j.id")} AS judgement, {words.first.format("j.content")} AS answer,
        {words.count.format("j.content")} AS answers,
        {words.hex.format("j.evaluation")} AS evaluation,
        CASE WHEN {human} IS NOT NULL THEN 'person' WHEN {checks} IS NOT NULL THEN 'checks'
            ELSE 'model' END AS kind,
        coalesce({human}, {code}) AS judge, j.verdict, j.score,
        {words.time.format("j.started")} AS started, r.usd, r.seconds, r.input AS input_tokens,
        r.output AS output_tokens, r.is_carried AS carried_over,
        {words.field.format("j.content", "feedback")} AS feedback
    FROM evaluations j LEFT JOIN judgement_rows r ON r.id = j.id
    LEFT JOIN evaluators v ON v.id = j.evaluator
    LEFT JOIN models m ON {words.hex.format("m.id")} = {judge}
    """


def _costs(words: _Words) -> str:
    code, judge = (
        words.field.format(*place) for place in (("m.content", "code"), ("v.content", "model"))
    )
    sums = """count(*) AS calls, sum(CASE WHEN c.usd IS NULL THEN 1 ELSE 0 END) AS unpriced,
        sum(c.usd) AS usd, sum(c.input) AS input_tokens, sum(c.output) AS output_tokens"""
    return f"""
    SELECT {words.day.format("c.started")} AS day, 'answer' AS kind, {code} AS model, {sums}
    FROM answer_rows c LEFT JOIN models m ON m.id = c.model GROUP BY 1, 3
    UNION ALL
    SELECT {words.day.format("j.started")} AS day, 'judgement' AS kind, {code} AS model, {sums}
    FROM evaluations j JOIN judgement_rows c ON c.id = j.id
    JOIN evaluators v ON v.id = j.evaluator
    JOIN models m ON {words.hex.format("m.id")} = {judge} WHERE c.is_carried = 0 GROUP BY 1, 3
    """


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


def _result_rows(
    id: bytes, content: Json, _kinds: set[bytes]
) -> Iterator[tuple[TableColumns, Row]]:
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
    "results": _result_rows,
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
