"""What a run tells GitHub Actions: annotations on test files, and a summary of the step."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from evalstore import __version__
from evalstore.core.display import case_name, plural, safe
from evalstore.exchange.exports.writers import cut
from evalstore.results.growing_results import cell_of
from evalstore.results.table.editable_files import TestLines
from evalstore.runs.run_results import list_results

if TYPE_CHECKING:
    from evalstore.core.errors import Problem
    from evalstore.core.results import Result
    from evalstore.runs.run_report import RunReport
    from evalstore.workspace.folder import WorkspaceFolder

MOST = 10
"""The annotations of a kind that GitHub shows for a step."""
_LONGEST = 1_000
"""Characters of a message."""
_SUMMARY = 1_000_000
"""Bytes of a summary; GitHub refuses one of more than a MiB."""


class Annotation(NamedTuple):
    """A message on a line of a file, or on the whole run."""

    kind: str
    """`error`, `warning` or `notice`."""
    title: str
    message: str
    file: str = ""
    line: int = 1

    @property
    def command(self) -> str:
        """Return the command that a step prints, with its texts escaped."""
        place = {"file": self.file, "line": str(self.line)} if self.file else {}
        escaped = {name: _escape(text) for name, text in {**place, "title": self.title}.items()}
        properties = ",".join(
            f"{name}={text.replace(':', '%3A').replace(',', '%2C')}"
            for name, text in escaped.items()
        )
        return f"::{self.kind} {properties}::{_escape(self.message)}"


def annotate(report: RunReport, workspace: WorkspaceFolder) -> Iterator[Annotation]:
    """Yield the failures of a run, the new ones first, at most as many as GitHub shows."""
    lines = TestLines(workspace)
    folder = folder_in_checkout(workspace.root)
    prompts = report.totals.prompts
    shown = list(islice(_failures(report), MOST))
    for result, feedback, change in shown:
        prompt = prompts.get(result.file, {}).get(result.prompt)
        word = change if change == "broke" else result.word
        name = case_name(result.file, result.row, prompt)
        yield Annotation(
            "error",
            f"{word}: {name}, {result.model}",
            feedback or f"the verdict is '{result.word}'",
            f"{folder}{result.file}",
            lines.find(result.file, result.row),
        )
    verdicts = report.verdicts
    rest = verdicts["fail"] + verdicts["error"] - len(shown)
    if rest > 0:
        yield Annotation("notice", "evalstore", f"{plural(rest, 'more failure')} in the log")
    if undecided := verdicts["undecided"]:
        yield Annotation("notice", "evalstore", f"{plural(undecided, 'result')} undecided")
    for message, count in islice(report.failures.items(), MOST):
        yield Annotation("warning", f"evalstore: {plural(count, 'call')} failed", message)


def annotate_problems(problems: Iterable[Problem], root: Path) -> Iterator[Annotation]:
    """Yield the problems of files, of each severity at most as many as GitHub shows."""
    folder = folder_in_checkout(root)
    counts = Counter[str]()
    for problem in problems:
        kind = "error" if problem.severity == "error" else "warning"
        counts[kind] += 1
        if counts[kind] <= MOST:
            hint = f"\n{problem.hint}" if problem.hint else ""
            file = f"{folder}{problem.file}"
            yield Annotation(kind, "evalstore", problem.message + hint, file, problem.line or 1)


def _failures(report: RunReport) -> Iterator[tuple[Result, str, str]]:
    """Yield the failing results with their feedback, those that are new first, each once."""
    seen = set()
    for entry in list_results(report).entries:
        if entry.result.verdict in ("fail", "error"):
            seen.add(cell_of(entry.result))
            yield entry.result, entry.feedback, entry.change
    for result, feedback in report.lines():
        if result.verdict in ("fail", "error") and cell_of(result) not in seen:
            yield result, feedback, ""


def folder_in_checkout(root: Path) -> str:
    """Return the path of the workspace in the checkout, with a slash at its end, or nothing."""
    checkout = os.environ.get("GITHUB_WORKSPACE")
    if not checkout:
        return ""
    try:
        inside = root.resolve().relative_to(Path(checkout).resolve()).as_posix()
    except ValueError:
        return ""
    return "" if inside == "." else f"{inside}/"


def fit_summary(text: str) -> str:
    """Return the text, or a note when it is too long for a summary."""
    if len(text.encode()) <= _SUMMARY:
        return text
    return "The report is too long for a summary of GitHub: `evalstore report --markdown`\n"


def _escape(text: str) -> str:
    text = cut(text, _LONGEST)
    return safe(text, lines=True).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_RULES = {
    "error": ("file-error", "A file has an error, so its tests cannot run."),
    "warning": ("file-warning", "A file has something that is probably not meant."),
}
"""Maps severities to the id of a rule and its description."""
_HELP = (
    "`evalstore check` prints the same problems with their hints. Correct the file at this line."
)
"""GitHub requires a help text and a full description for each rule."""


def sarif_log(problems: Iterable[Problem], root: Path) -> dict[str, Any]:
    """Return a log with a result for each problem.

    Paths are relative to the checkout of GitHub Actions, elsewhere to the workspace `root`.
    """
    folder = folder_in_checkout(root)
    rules = [
        {
            "id": id,
            "shortDescription": {"text": text},
            "fullDescription": {"text": text},
            "help": {"text": _HELP},
            "defaultConfiguration": {"level": severity},
        }
        for severity, (id, text) in _RULES.items()
    ]
    driver = {"name": "evalstore", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(problem, folder) for problem in problems],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(problem: Problem, folder: str) -> dict[str, Any]:
    severity = "error" if problem.severity == "error" else "warning"
    text = problem.message + (f"\n{problem.hint}" if problem.hint else "")
    region = {"startLine": max(problem.line or 1, 1)}
    if problem.line and problem.column:
        region["startColumn"] = problem.column
    location = {"uri": quote(os.fsencode(f"{folder}{problem.file}"))}
    return {
        "ruleId": _RULES[severity][0],
        "level": severity,
        "message": {"text": safe(text, lines=True)},
        "locations": [{"physicalLocation": {"artifactLocation": location, "region": region}}],
    }
