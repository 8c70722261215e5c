"""The tables of rows.

A leaf is a node with cases or with results; `n` is the place of a case or a result in it. Several
ids are concatenated, 16 bytes each. Verdicts are numbers: `VERDICT_NUMBERS`.
"""

from __future__ import annotations

from evalstore.core.values import WORDS
from evalstore.store.schema.table_definitions import (
    EVALUATIONS,
    NODES,
    RUNS,
    SESSIONS,
    TableColumns,
)

VERDICT_NUMBERS = {str(word): number for number, word in enumerate(WORDS, start=1)}

_NUMBER, _TEXT, _BYTES, _REAL = "BIGINT NOT NULL", "TEXT NOT NULL", "BLOB NOT NULL", "FLOAT"
_COUNT = "BIGINT"


def _table(
    name: str, columns: dict[str, str], *ids: str, key: tuple[str, ...] = ("id",)
) -> TableColumns:
    return TableColumns(name, columns, frozenset(ids), key=key, is_clustered=True)


KINDS = _table("kinds", {"id": _BYTES, "content": _TEXT}, "id")
"""What cases have in common: all of their content but `row`, `key`, `tests` and `evaluation`.

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
