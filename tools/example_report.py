"""The report of the example workspace, for pictures and for the docs site.

`python -m tools.example_report build` adds it to the source of the site.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from evalstore.files.atomic_write import write_whole
from evalstore.interfaces.cli.main import main as evalstore
from tools.example_history import build_history, edit

PAGE = "docs/reports.md"
_REPORT = "example-report.html"
_SUMMARY = "![The summary of a report](images/report-light.png)"


def make_report(folder: Path) -> Path:
    """Run the example several times with edits in between, and write its report."""
    root = build_history(folder)
    edit(root, "late.md", "two hours", "three hours")
    quiet = ["-q", "-C", str(root), "--color", "never"]
    evalstore([*quiet, "run", "--fail-on", "none"])
    page = folder / "report.html"
    evalstore([*quiet, "report", "-o", str(page)])
    return page


def add_report(folder: Path) -> None:
    """Put the report of the example beside the page about reports, which links to it."""
    page = folder / "source" / PAGE
    text = page.read_text(encoding="utf-8")
    assert text.count(_SUMMARY) == 1, f"{PAGE} no longer shows '{_SUMMARY}'"
    link = f"[The report of the example]({_REPORT}) is the file that these pictures show."
    with tempfile.TemporaryDirectory() as made:
        report = make_report(Path(made)).read_bytes()
    write_whole(page.parent / _REPORT, report, durable=False)
    shown = text.replace(_SUMMARY, f"{_SUMMARY}\n\n{link}")
    write_whole(page, shown.encode(), durable=False)


if __name__ == "__main__":
    add_report(Path(sys.argv[1]))
