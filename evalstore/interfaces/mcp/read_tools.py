"""The tools that read: each returns the JSON of its command, or a page of it.

They call no model, run no code of the workspace, and have no argument that allows anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Json
from evalstore.files.json_output import read_whole, to_json
from evalstore.interfaces.mcp.arguments import (
    DiffArguments,
    ExplainArguments,
    FileCheckArguments,
    PageArguments,
    ResultsArguments,
    SearchArguments,
    ShowArguments,
    StatsArguments,
    StatusArguments,
)
from evalstore.interfaces.mcp.result_text import PAGE, REST, ResultPage, fit, page_of, with_page
from evalstore.planning.options import Location, SelectionOptions
from evalstore.runs.status.status_text import price_text

if TYPE_CHECKING:
    from evalstore.comparison.comparison import Pair

T = TypeVar("T")
Document = dict[str, Json]
MOST_FOUND = 10_000
"""Texts that a search lists, on all its pages."""
_CHANGES = ("broke", "fixed", "changed", "new", "gone")


def status(location: Location, arguments: StatusArguments) -> Document:
    """Return what a run would do and its price, with a page of its calls."""
    from evalstore.runs.status.status import status as operation

    report = operation(location, arguments.options, whole=True)
    document = {
        **to_json(replace(report, items=[])),
        "price": price_text(report),
        "refused": report.refused,
    }
    return _page(
        document,
        "items",
        report.items,
        arguments,
        lambda item: _with_prompt(to_json(item), report.prompts),
    )


def check(location: Location, arguments: FileCheckArguments) -> Document:
    """Return a page of the problems of the files."""
    from evalstore.runs.workspace_checks.check import check as operation

    report = operation(location, tuple(arguments.paths))
    document = to_json(replace(report, problems=[]))
    return _page(document, "problems", report.problems, arguments)


def list_runs(location: Location, arguments: PageArguments) -> Document:
    """Return a page of the runs, newest first."""
    from evalstore.results.log.log import log

    runs = log(location, limit=arguments.offset + arguments.limit)
    listed = map(to_json, runs.entries[arguments.offset :])
    page = page_of(listed, arguments.offset, runs.total, arguments.max_text)
    return _with_page({}, "runs", page, arguments)


def list_failed_calls(location: Location, arguments: PageArguments) -> Document:
    """Return a page of the failed calls, newest first, each with a hint."""
    from evalstore.results.log.failures import log_failures

    failures = log_failures(location, limit=arguments.offset + arguments.limit)
    listed = map(to_json, failures.entries[arguments.offset :])
    page = page_of(listed, arguments.offset, failures.total, arguments.max_text)
    return _with_page({"total": failures.total}, "failures", page, arguments)


def list_results(location: Location, arguments: ResultsArguments) -> Document:
    """Return a page of the results of a run with their feedback."""
    from evalstore.results.table.result_list import (
        ResultFilter,
        describe_results,
        find_filtered,
    )

    wanted = ResultFilter(
        paths=() if arguments.file is None else (arguments.file,),
        models=() if arguments.model is None else (arguments.model,),
        tags=tuple(arguments.tags),
        name=arguments.name,
        verdicts=tuple(arguments.verdicts),
        grep=arguments.grep,
        broke=arguments.broke,
        since=arguments.since,
    )
    with find_filtered(location, arguments.run, wanted) as (project, found):
        chosen, total = found.page(arguments.offset, arguments.limit)
        items = [_describe(row) for row in describe_results(location, project, [chosen])]
        run = found.run
    page = page_of(items, arguments.offset, total, arguments.max_text)
    document: Document = {"run": run.id, "verdicts": to_json(run.verdicts)}
    return _with_page(document, "results", page, arguments)


def _describe(row: Document) -> Document:
    file, label = row["file"], row["row"]
    named = ("model", "prompt", "verdict", "score", "sessions", "promptName", "feedback")
    return {"case": f"{file}::{label}" if label else file, **{name: row[name] for name in named}}


def explain_case(location: Location, arguments: ExplainArguments) -> Document:
    """Return why a case has its verdict, since when, and what changed then."""
    from evalstore.results.case_reference import CaseReference, read_reference
    from evalstore.results.show.explained_case import explain_case as operation

    reference = read_reference(arguments.case) or CaseReference(arguments.case)
    explained = operation(location, reference, arguments.model, arguments.prompt)
    return _fit(explained.document(), arguments.max_text, arguments.text_offset)


def show(location: Location, arguments: ShowArguments) -> Document:
    """Return a stored object."""
    from evalstore.results.show import shown_item

    shown = read_whole(to_json(shown_item.describe_shown(location, arguments.id)))
    return _fit(shown, arguments.max_text, arguments.text_offset)


def diff(location: Location, arguments: DiffArguments) -> Document:
    """Return a page of the changes between two runs, the workspace, or two candidates."""
    from evalstore.results.compare import diff as operations
    from evalstore.results.compare.diff_within import diff_models

    selection = SelectionOptions(paths=tuple(arguments.paths))
    if arguments.versus is not None:
        if arguments.model is None or arguments.after is not None:
            raise EvalstoreError(
                "'versus' compares two candidates of one run",
                hint="name the other candidate as 'model', and leave 'after' out",
            )
        compared = diff_models(
            location,
            arguments.before,
            (arguments.model, arguments.versus),
            selection=selection,
            answers=arguments.answers,
        )
    else:
        models = () if arguments.model is None else (arguments.model,)
        compared = operations.diff(
            location,
            arguments.before,
            arguments.after,
            selection=SelectionOptions(paths=selection.paths, models=models),
            answers=arguments.answers,
        )
    document = compared.document_with({})
    document["counts"] = {name: len(getattr(compared, name)) for name in _CHANGES}
    document["counts"]["sameAnswer"] = document.pop("sameAnswer")
    groups = [(name, getattr(compared, name)) for name in arguments.changes]
    pairs = ((name, pair) for name, group in groups for pair in group)

    def describe(change: tuple[str, Pair]) -> Document:
        name, pair = change
        return {"change": name, **_with_prompt(compared.pair_document(pair), compared.prompts)}

    start = arguments.offset
    items = map(describe, islice(pairs, start, start + arguments.limit))
    total = sum(len(group) for _, group in groups)
    page = page_of(items, start, total, arguments.max_text)
    return _with_page(document, "changes", page, arguments)


def stats(location: Location, arguments: StatsArguments) -> Document:
    """Return pass rates with their intervals, costs and times by group."""
    from evalstore.results.stats.stats import judge_stats
    from evalstore.results.stats.stats import stats as operation

    if arguments.by == ["judge"]:
        return _fit(to_json(judge_stats(location, arguments.run)), arguments.max_text)
    document = to_json(operation(location, arguments.run, tuple(arguments.by)))
    return _fit(document, arguments.max_text)


def search(location: Location, arguments: SearchArguments) -> Document:
    """Return a page of the stored texts that contain words; of many, of the newest."""
    from evalstore.results.search.grep import Searcher

    kinds = () if arguments.within is None else (arguments.within,)
    found = Searcher(location).find(arguments.pattern, MOST_FOUND, within=kinds)
    assert found is not None
    if found.problem:
        raise found.problem
    hits = [text.hit for text in found.texts]
    more = {"leftOut": found.total - len(hits)} if found.total > len(hits) else {}
    return _page(more, "hits", hits, arguments)


def _with_prompt(item: Document, prompts: Mapping[str, Mapping[str | None, str]]) -> Document:
    """Return an item with the name of its system prompt; `prompts` has files with several."""
    return {**item, "promptName": prompts.get(item["file"], {}).get(item["prompt"])}


def _page(
    document: Document,
    name: str,
    listed: Sequence[T],
    arguments: PageArguments,
    describe: Callable[[T], Json] = to_json,
) -> Document:
    """Return a document with the page of a list that the arguments name; only it becomes JSON."""
    start = arguments.offset
    items = map(describe, islice(listed, start, start + arguments.limit))
    page = page_of(items, start, len(listed), arguments.max_text)
    return _with_page(document, name, page, arguments)


def _with_page(
    document: Document, name: str, page: ResultPage, arguments: PageArguments
) -> Document:
    return with_page(document, name, page, arguments.max_text)


def _fit(document: Json, max_text: int, offset: int = 0) -> Document:
    fitted: Document = fit(document, PAGE + REST, max_text, offset)
    return fitted
