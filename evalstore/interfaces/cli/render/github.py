"""Tells GitHub Actions what a run has found, when the program runs there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.cli import output

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalstore.core.errors import Problem
    from evalstore.planning.options import Location
    from evalstore.runs.run_report import RunReport


def print_problems(location: Location, problems: Iterable[Problem]) -> None:
    """Print an annotation for each problem of a file."""
    from evalstore.exchange.github import annotate_problems
    from evalstore.workspace.settings.settings import find_root

    for annotation in annotate_problems(problems, find_root(location.directory)):
        output.workflow_command(annotation.command)


def print_annotations(location: Location, report: RunReport) -> None:
    """Print the annotations of a run, and append its report to the summary of the step.

    A summary that cannot be written is a warning: the run is not affected.
    """
    from evalstore.exchange.github import annotate, fit_summary
    from evalstore.exchange.markdown_report import markdown_report
    from evalstore.files.atomic_write import append
    from evalstore.planning.open_project import open_workspace

    for annotation in annotate(report, open_workspace(location)):
        output.workflow_command(annotation.command)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if not summary:
        return
    try:
        append(Path(summary), fit_summary(markdown_report(location, report.run)).encode())
    except (EvalstoreError, OSError) as error:
        output.warn(f"the summary of the step is not written: {error}")
