"""Problems of files as SARIF 2.1.0, which code scanning and editors show beside the lines."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from evalstore import __version__
from evalstore.core.display import safe
from evalstore.exchange.github import folder_in_checkout

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.core.errors import Problem

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
