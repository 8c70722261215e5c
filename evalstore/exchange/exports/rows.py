"""Yields the rows of an export, while the results are read, and writes JUnit XML and Parquet.

CI systems show JUnit XML as tests. Elements and attributes are those of the schema of Jenkins
(junit-10.xsd): a suite for each test file, and a test case for each case and candidate. A test case
of that schema has no properties, so its ids and its cost are in `system-out`.

Parquet and Arrow are written by pyarrow, which no other module imports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, groupby, islice
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from evalstore.core.batches import in_small_batches
from evalstore.core.clock import iso
from evalstore.core.display import case_name, money
from evalstore.core.errors import EvalstoreError
from evalstore.core.results import Result
from evalstore.core.runs import Run
from evalstore.core.values import Case
from evalstore.exchange.exports.writers import COLUMNS, SCHEMA_VERSION, ByteWriter, Export, Row, cut
from evalstore.planning.options import Location
from evalstore.planning.project import Project
from evalstore.planning.results import find_feedback
from evalstore.results.answer.answer import read_last_messages
from evalstore.results.names import name_prompts_of_cases
from evalstore.results.rendering import answer_text
from evalstore.results.show.revision_results import find_results, open_revision
from evalstore.results.stats.groups import CostReader
from evalstore.results.table.editable_files import TestLines
from evalstore.store.costs import Spent


@contextmanager
def open_export(location: Location, revision: str) -> Iterator[Export]:
    """Open the results of a run, or of the workspace as it is now (`@work`).

    Raises `RevisionError` for an unknown run, and `WorkspaceError` when the workspace has errors.
    """
    with open_revision(location, revision) as project:
        run, batches = find_results(project, revision)
        results = chain.from_iterable(batches)
        yield Export(project, run, results, _read_rows(project, run, results))


def _read_rows(project: Project, run: Run, results: Iterator[tuple[Result, Case]]) -> Iterator[Row]:
    started, store = iso(run.started), project.store
    prices = CostReader(store, prices=project.prices_by_version())
    for batch in in_small_batches(results):
        answers = store.find_answers(cell.sessions[0] for cell, _ in batch if cell.sessions)
        judgements = store.find_judgements(
            (id for cell, _ in batch for id in cell.evaluations), feedback=True
        )
        spent = store.find_spent(id for cell, _ in batch for id in cell.sessions)
        questions = read_last_messages(
            project.versions.load("test", [cell.test for cell, _ in batch])
        )
        made = {
            id: Spent(vote.started, vote.evaluator, usd)
            for id, (vote, _, usd, _) in judgements.items()
        }
        costs = prices.costs_of(spent, are_judgements=False)
        judging_costs = prices.costs_of(made, are_judgements=True)
        feedback = find_feedback(store, (cell.decision for cell, _ in batch), judgements)
        names = name_prompts_of_cases(project, (case for _, case in batch))
        for cell, case in batch:
            answer = answers.get(cell.sessions[0]) if cell.sessions else None
            yield {
                "schemaVersion": SCHEMA_VERSION,
                "run": run.id,
                "started": started,
                "file": cell.file,
                "row": cell.row,
                "prompt": cell.prompt and names[case.prompts][cell.prompt],
                "promptId": cell.prompt,
                "model": cell.model,
                "tags": list(case.tags),
                "verdict": cell.word,
                "score": cell.score,
                "feedback": feedback.get(cell.decision, ""),
                "answer": None if answer is None else answer_text(answer),
                "attempts": cell.required_answers,
                "answers": len(cell.sessions),
                "judgements": len(cell.evaluations),
                "cost": _sum_costs(cell.sessions, costs),
                "judgingCost": _sum_costs(cell.evaluations, judging_costs),
                "pricedLater": len(prices.later.keys() & {*cell.sessions, *cell.evaluations}),
                "latency": _mean_seconds(cell.sessions, spent),
                "test": cell.test,
                "evaluation": cell.evaluation,
                "sessions": list(cell.sessions),
                "evaluations": list(cell.evaluations),
                "question": questions.get(cell.test),
            }


def _sum_costs(ids: Iterable[str], costs: Mapping[str, float | None]) -> float | None:
    """Return the cost of those of these calls that are stored; None if one is not known."""
    total = 0.0
    for id in ids:
        cost = costs.get(id, 0.0)
        if cost is None:
            return None
        total += cost
    return round(total, 8) if total else 0.0


def _mean_seconds(ids: Iterable[str], spent: Mapping[str, Spent]) -> float | None:
    """Return the mean duration of those of these sessions that is known; None if none is."""
    durations = [spent[id].seconds for id in ids if id in spent]
    known = [seconds for seconds in durations if seconds is not None]
    return round(sum(known) / len(known), 6) if known else None


_INVALID = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Matches the characters that XML cannot contain, and the other control characters."""
_LONGEST = 10_000
"""Characters of an answer or a feedback; CI systems keep whole reports in memory."""
_MESSAGE = 200
_ELEMENTS = {
    "fail": ("failures", "failure"),
    "error": ("errors", "error"),
    "undecided": ("errors", "error"),
    "no reply": ("errors", "error"),
    "pending": ("skipped", "skipped"),
    None: ("skipped", "skipped"),
}
"""By verdict: the count of the suite that it adds to, and the element of the test case."""
_REASONS = {
    "error": "a check could not be run",
    "undecided": "the judges tied, or a reply could not be read",
    "no reply": "a call failed; 'evalstore log --failures' shows why",
    "pending": "not judged yet",
    None: "nothing says how to judge the answer",
}
"""The message of a test case without feedback."""


def write_junit(export: Export, file: ByteWriter) -> None:
    """Write a suite for each test file; a temporary file has its cases until they are counted."""
    lines = TestLines(export.project.workspace)
    file.write(b'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="evalstore">\n')
    for path, rows in groupby(export.rows, key=lambda row: row["file"]):
        with TemporaryFile() as cases:
            file.write(_write_cases(path, rows, export, lines, cases).encode())
            cases.seek(0)
            copyfileobj(cases, file)
        file.write(b"</testsuite>\n")
    file.write(b"</testsuites>\n")


def _write_cases(
    path: str, rows: Iterable[Row], export: Export, lines: TestLines, out: ByteWriter
) -> str:
    """Write the test cases of a suite, and return what stands before them."""
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    undecided, seconds = 0, 0.0
    for row in rows:
        counts["tests"] += 1
        if row["verdict"] in _ELEMENTS:
            counts[_ELEMENTS[row["verdict"]][0]] += 1
        undecided += row["verdict"] == "undecided"
        seconds += _seconds(row)
        out.write("".join(_case(row, lines.find(path, row["row"]))).encode())
    attributes = {
        "name": path,
        **counts,
        "time": f"{seconds:.3f}",
        "timestamp": iso(export.run.started).removesuffix("Z"),
        "file": path,
    }
    run = {"run": export.run.id, "status": export.run.status, "undecided": undecided}
    return "".join(
        [
            f"<testsuite{_attributes(attributes)}>\n<properties>\n",
            *(f"<property{_attributes({'name': n, 'value': v})}/>\n" for n, v in run.items()),
            "</properties>\n",
        ]
    )


def _case(row: Row, line: int) -> list[str]:
    name = case_name(row["model"], row["row"], row["prompt"])
    attributes = {
        "name": name,
        "classname": row["file"].removesuffix(".md").replace("/", "."),
        "time": f"{_seconds(row):.3f}",
        "file": row["file"],
        "line": line,
    }
    parts = [f"<testcase{_attributes(attributes)}>\n"]
    verdict = row["verdict"]
    if verdict in _ELEMENTS:
        element = _ELEMENTS[verdict][1]
        text = row["feedback"] or _REASONS.get(verdict, "failed")
        about = {"type": verdict or "not evaluated", "message": (text.splitlines()[0][:_MESSAGE])}
        parts.append(f"<{element}{_attributes(about)}>{_text(text)}</{element}>\n")
    parts += [f"<system-out>{_text(_describe(row))}</system-out>\n", "</testcase>\n"]
    return parts


def _describe(row: Row) -> str:
    """Return the ids, the costs and the answer of a result."""
    about = {
        "session": " ".join(row["sessions"]),
        "judgement": " ".join(row["evaluations"]),
        "cost": money(row["cost"]),
        "judging": money(row["judgingCost"]),
        "at today's price": row["pricedLater"],
    }
    lines = [f"{name}: {value}" for name, value in about.items() if value]
    return "\n".join([*lines, "", row["answer"] or "(no answer)"])


def _seconds(row: Row) -> float:
    return float(row["latency"] or 0) * int(row["answers"])


def _attributes(values: Mapping[str, object]) -> str:
    return "".join(f" {name}={quoteattr(_valid(str(value)))}" for name, value in values.items())


def _text(text: str) -> str:
    return escape(_valid(cut(text, _LONGEST)))


def _valid(text: str) -> str:
    """Return the text without the characters that XML cannot contain."""
    return _INVALID.sub("", text)


_IN_A_GROUP = 6_000
"""Rows of a group of the file."""
_MOST_BYTES = 64 * 2**20
"""Bytes of text after which a group ends, however few rows it has."""


def require_pyarrow(format: str = "Parquet") -> None:
    """Raise `EvalstoreError` when pyarrow is not installed."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise EvalstoreError(
            f"{format} needs pyarrow, which is not installed",
            hint="install the extra: pip install 'evalstore[parquet]'",
        ) from error


def read_table(export: Export) -> Any:
    """Return the rows as a `pyarrow.Table`; raises `EvalstoreError` without pyarrow."""
    require_pyarrow("an Arrow table")
    import pyarrow as arrow

    schema = _make_schema()
    return arrow.Table.from_batches(_read_batches(export, schema), schema)


def write_parquet(export: Export, file: ByteWriter) -> None:
    """Write the rows in groups, so that few of them are in memory."""
    from pyarrow import parquet

    schema = _make_schema()
    with parquet.ParquetWriter(file, schema) as writer:
        for batch in _read_batches(export, schema):
            writer.write_batch(batch)


def _make_schema() -> Any:
    """Return the columns with their types, as a `pyarrow.Schema`."""
    import pyarrow as arrow

    types: dict[str, Any] = {
        "integer": arrow.int64(),
        "number": arrow.float64(),
        "text": arrow.string(),
        "list of texts": arrow.list_(arrow.string()),
    }
    return arrow.schema(
        [(column.name, types[column.type]) for column in COLUMNS],
        metadata={"evalstore.schemaVersion": str(SCHEMA_VERSION)},
    )


def _read_batches(export: Export, schema: Any) -> Iterator[Any]:
    """Yield the rows as `pyarrow.RecordBatch`es."""
    import pyarrow as arrow

    type = arrow.struct(schema)
    while rows := _take_rows(export):
        yield arrow.RecordBatch.from_struct_array(arrow.array(rows, type))


def _take_rows(export: Export) -> list[dict[str, Any]]:
    """Return the next rows for a group: many short ones, or few long ones."""
    rows: list[dict[str, Any]] = []
    size = 0
    for row in islice(export.rows, _IN_A_GROUP):
        rows.append(row)
        size += len(row["answer"] or "") + len(row["feedback"])
        if size > _MOST_BYTES:
            break
    return rows
