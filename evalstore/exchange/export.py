"""The command `export`: the results of a run, or of the workspace, in a file for other programs.

Its rows are read while they are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from evalstore.core.batches import in_small_batches
from evalstore.core.clock import iso
from evalstore.core.errors import EvalstoreError
from evalstore.core.runs import Run
from evalstore.core.values import Case, Result
from evalstore.exchange.exports import (
    every_eval_ever,
    formats,
    inspect_logs,
    junit,
    langbite_tables,
    otlp,
    parquet,
)
from evalstore.exchange.exports.formats import (
    SCHEMA_VERSION,
    ByteWriter,
    Export,
    FolderWriter,
    Format,
    Row,
    Writer,
)
from evalstore.files.atomic_write import (
    require_new_folder,
    require_writable,
    temporary_file,
    temporary_folder,
)
from evalstore.planning.cell_results import find_feedback
from evalstore.planning.options import Location
from evalstore.planning.project import Project
from evalstore.results.answer.answer import read_last_messages
from evalstore.results.names import name_prompts_of_cases
from evalstore.results.show.show import find_results, open_revision, without_garbage_collection
from evalstore.results.stats.groups import CostReader
from evalstore.results.value_text import answer_text
from evalstore.store.events import Spent


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
        answers = store.find_sessions(cell.sessions[0] for cell, _ in batch if cell.sessions)
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
                "answer": None if answer is None else answer_text(answer.answer),
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


_WRITERS: dict[Format, Writer] = {
    "jsonl": formats.write_json_lines,
    "csv": formats.write_csv,
    "parquet": parquet.write_parquet,
    "json": formats.write_json,
    "md": formats.write_markdown,
    "junit": junit.write_junit,
    "otlp": otlp.write_otlp,
}
_FOLDER_WRITERS: dict[Format, FolderWriter] = {
    "inspect": inspect_logs.write_inspect_logs,
    "langbite": langbite_tables.write_langbite,
    "every-eval-ever": every_eval_ever.write_every_eval_ever,
}
_SUFFIXES: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".otlp.json": "otlp",
    ".json": "json",
    ".md": "md",
    ".junit.xml": "junit",
    ".xml": "junit",
}


def format_of(path: Path) -> Format | None:
    """Return the format that the suffix of a file names; None if it names none."""
    name = path.name.casefold()
    return next((found for suffix, found in _SUFFIXES.items() if name.endswith(suffix)), None)


def find_format(path: Path, format: Format | None = None) -> Format:
    """Return the format of a file, by its suffix unless it is given; raises `EvalstoreError`."""
    chosen = format or format_of(path)
    if chosen is None:
        hint = f"end the name with {', '.join(_SUFFIXES)}, or add --format"
        if path.suffix.lower() in (".html", ".htm"):
            hint = f"'evalstore report -o {path}' writes a page"
        raise EvalstoreError(f"the suffix of '{path}' names no format", hint=hint)
    if chosen == "parquet":
        parquet.require_pyarrow()
    return chosen


def write_exports(
    location: Location, revision: str, paths: Sequence[Path], format: Format | None = None
) -> None:
    """Write the results of a revision to files or folders, each whole or not at all.

    Existing files are replaced, folders only if they are empty; relative paths are relative to the
    folder of the location. Raises `EvalstoreError`.
    """
    formats = require_exports(location, paths, format)
    for path, chosen in zip(paths, formats, strict=True):
        target = (location.directory / path).resolve()
        try:
            if chosen not in _FOLDER_WRITERS:
                with temporary_file(target) as file:
                    write_export(location, revision, chosen, file)
                continue
            with (
                without_garbage_collection(),
                open_export(location, revision) as export,
                temporary_folder(target) as folder,
            ):
                _FOLDER_WRITERS[chosen](export, folder)
        except OSError as error:
            raise EvalstoreError(f"'{path}' cannot be written: {error.strerror}") from error


def require_exports(
    location: Location, paths: Sequence[Path], format: Format | None = None
) -> list[Format]:
    """Return the formats of files; raises `EvalstoreError` when one cannot be written."""
    formats = [find_format(path, format) for path in paths]
    for path, chosen in zip(paths, formats, strict=True):
        require = require_new_folder if chosen in _FOLDER_WRITERS else require_writable
        require(location.directory / path, path)
    return formats


def write_export(location: Location, revision: str, format: Format, file: ByteWriter) -> None:
    """Write the results of a revision to an open file; raises `EvalstoreError`."""
    if format in _FOLDER_WRITERS:
        raise EvalstoreError(
            f"'{format}' writes several files, which cannot be printed",
            hint="name a folder with -o",
        )
    if format == "parquet":
        parquet.require_pyarrow()
    with without_garbage_collection(), open_export(location, revision) as export:
        _WRITERS[format](export, file)
