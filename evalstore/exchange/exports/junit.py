"""Writes the rows of an export as JUnit XML, which CI systems show as tests.

Elements and attributes are those of the schema of Jenkins (junit-10.xsd): a suite for each test
file, and a test case for each case and candidate. A test case of that schema has no properties, so
its ids and its cost are in `system-out`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from shutil import copyfileobj
from tempfile import TemporaryFile
from xml.sax.saxutils import escape, quoteattr

from evalstore.core.clock import iso
from evalstore.core.display import case_name, money
from evalstore.exchange.exports.formats import ByteWriter, Export, Row, cut
from evalstore.results.names import TestLines

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
