"""The command `ls`: lists the contents of the workspace or the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from evalstore.core.clock import iso, today
from evalstore.core.values import SPECIAL_TAGS, Case, Json
from evalstore.files.temporary_list import TemporaryList
from evalstore.planning.open_project import open_project, open_store
from evalstore.planning.options import Location, SelectionOptions, describe_selection
from evalstore.planning.planner import require_sound, select
from evalstore.planning.project import Project, files_of
from evalstore.planning.reasons.unknown_names import require_tag, tags_of
from evalstore.planning.reasons.version_reader import in_batches
from evalstore.results.edits.case_description import CaseDescriber
from evalstore.results.labels.label_list import COLUMNS, list_labels
from evalstore.results.table.model_table import describe_models

if TYPE_CHECKING:
    from evalstore.core.errors import Problem


@dataclass
class Listing:
    """A table: one mapping for each line."""

    kind: str
    rows: Collection[dict[str, Json]]
    """Those of cases are in a temporary file."""
    columns: tuple[str, ...]
    """The columns that are printed; the rows may contain more."""
    left_out: list[Problem] = field(default_factory=list)
    """Errors of test files that are left out."""

    def document(self) -> Json:
        """Return the rows as JSON; those in a file as an iterator."""
        return {self.kind: iter(self.rows) if isinstance(self.rows, TemporaryList) else self.rows}


def list_things(
    location: Location, kind: str, selection: SelectionOptions, *, full: bool = False
) -> Listing:
    """Return all items of a kind in the workspace or the store."""
    if kind == "checks":
        return _checks()
    if kind == "runs":
        return _runs(location)
    with open_project(location) as project:
        if kind in ("tests", "cases", "tags", "labels"):
            require_sound(project, replace(selection, keep_going=True))
        return replace(_LISTS[kind](project, selection, full), left_out=project.left_out)


def _checks() -> Listing:
    from evalstore.checks.explain_check import explain_checks

    rows = [
        {**check.document(), "example": check.examples[0].check if check.examples else None}
        for check in explain_checks()
    ]
    return Listing("checks", rows, ("type", "description", "settings", "example"))


def _runs(location: Location) -> Listing:
    with open_store(location) as store:
        rows: list[dict[str, Json]] = [
            {
                "run": run.id,
                "started": iso(run.started),
                "status": run.status,
                "message": run.message,
                "selection": describe_selection(run.selection) or None,
                **({"author": run.author} if run.author else {}),
                **({"cases": run.cases._asdict()} if run.cases else {}),
                **({"gitCommit": run.git.commit} if run.git else {}),
            }
            for run in store.find_runs()
        ]
    columns = ("run", "started", "status", "cases", "selection", "author", "gitCommit", "message")
    filled = {column for row in rows for column, value in row.items() if value is not None}
    always = ("run", "started", "status", "selection", "message")
    kept = tuple(column for column in columns if column in always or column in filled)
    return Listing("runs", rows, kept)


def _selected(project: Project, selection: SelectionOptions) -> Iterator[tuple[str, Case]]:
    criteria = select(project, selection)
    matches = criteria.matcher()
    files, is_any = files_of(project.reading), False
    for path, file in files.items():
        for _, case in criteria.read_ahead(path, enumerate(file.cases)):
            if matches(path, case):
                is_any = True
                yield path, case
    if selection.tags and not is_any:
        require_tag(selection.tags, tags_of(files.values()))


def _tests(project: Project, selection: SelectionOptions, _full: bool) -> Listing:
    counts: Counter[str] = Counter(path for path, _ in _selected(project, selection))
    tags = {
        path: sorted({tag for case in file.cases for tag in case.tags})
        for path, file in project.reading.files.items()
    }
    rows: list[dict[str, Json]] = [
        {"file": path, "cases": count, "tags": tags[path]} for path, count in counts.items()
    ]
    return Listing("tests", rows, ("file", "cases", "tags"))


def _cases(project: Project, selection: SelectionOptions, full: bool) -> Listing:
    rows = TemporaryList(_describe_cases(project, selection, full))
    return Listing("cases", rows, ("file", "row", "tests", "evaluation", "tags"))


def _describe_cases(
    project: Project, selection: SelectionOptions, full: bool
) -> Iterator[dict[str, Json]]:
    describer = CaseDescriber(project)
    for batch in in_batches(_selected(project, selection)):
        if full:
            describer.read(case for _, case in batch)
        for path, case in batch:
            yield {
                "file": path,
                "row": case.row,
                "tests": list(case.tests),
                "evaluation": case.evaluation,
                "tags": list(case.tags),
                **(describer.describe(path, case) if full else {}),
            }


def _models(project: Project, _selection: SelectionOptions, _full: bool) -> Listing:
    for candidate in (*project.settings.candidates, *project.settings.evaluators):
        project.find_model(candidate.id, "models")
    rows = describe_models(project.settings, project.reading, today())
    return Listing("models", rows, ("model", "provider", "code", "used"))


def _evaluators(project: Project, selection: SelectionOptions, _full: bool) -> Listing:
    rows: list[dict[str, Json]] = [
        {"evaluator": judge.id, "id": judge.evaluator, "prompt": judge.prompt, "times": judge.times}
        for judge in project.judges(selection)
    ]
    return Listing("evaluators", rows, ("evaluator", "id", "prompt", "times"))


_List = Callable[[Project, SelectionOptions, bool], "Listing"]


def _definitions(kind: str) -> _List:
    def listing(project: Project, _selection: SelectionOptions, _full: bool) -> Listing:
        rows: list[dict[str, Json]] = [
            {kind[:-1]: name, "ids": list(ids)}
            for name, ids in sorted(project.reading.names.get(kind, {}).items())
        ]
        return Listing(kind, rows, (kind[:-1], "ids"))

    return listing


def _tags(project: Project, selection: SelectionOptions, _full: bool) -> Listing:
    counts: Counter[str] = Counter(
        tag for _, case in _selected(project, selection) for tag in case.tags
    )
    rows: list[dict[str, Json]] = [
        {"tag": tag, "cases": count, "special": tag in SPECIAL_TAGS}
        for tag, count in sorted(counts.items())
    ]
    return Listing("tags", rows, ("tag", "cases"))


def _labels(project: Project, _selection: SelectionOptions, _full: bool) -> Listing:
    rows = [*list_labels(project)]
    return Listing("labels", rows, COLUMNS)


_LISTS: dict[str, _List] = {
    "tests": _tests,
    "cases": _cases,
    "models": _models,
    "evaluators": _evaluators,
    "prompts": _definitions("prompts"),
    "tools": _definitions("tools"),
    "schemas": _definitions("schemas"),
    "tags": _tags,
    "labels": _labels,
}
