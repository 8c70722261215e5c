"""Builds the history of one test: its versions with their edits and results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from evalstore.comparison.candidate_edits import differ_candidates
from evalstore.comparison.word_diff import ChangedLine, diff_lines
from evalstore.core.errors import EvalstoreError
from evalstore.core.values import CaseFile, Json
from evalstore.planning.candidate_order import candidate_order
from evalstore.planning.open_project import open_project, open_store, open_workspace
from evalstore.planning.reasons.renames import name_in_newest_run, name_in_workspace
from evalstore.planning.reasons.version_reader import VersionReader
from evalstore.results.edits.test_parts import SYSTEM, describe_parts, load_test_parts
from evalstore.results.log.test_spans import (
    VersionSpan,
    add_results,
    add_workspace,
    find_spans,
    follow_case,
    join_spans,
    results_now,
)
from evalstore.results.prompt_names import label_prompts

if TYPE_CHECKING:
    from evalstore.comparison.version_diff import Difference, Find
    from evalstore.core.results import Result
    from evalstore.planning.options import Location
    from evalstore.planning.project import Project

NEW, GONE, OTHERS = "new", "gone", "other rows"


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a test, which begins with a run."""

    run: str | None
    """The first run with this version; None if only the workspace has it."""
    started: int
    """The start of that run in microseconds since 1970, UTC."""
    edits: tuple[str, ...]
    """The parts that differ from the previous version, and the candidates that do."""
    verdicts: Mapping[str, tuple[str, ...]]
    """The verdicts by candidate, one for each system prompt."""
    parts: Mapping[str, str]
    """The texts for candidates and evaluators by name of the part; empty if the test is gone."""
    candidates: tuple[str, ...] = ()
    """How candidates are defined differently since the previous version, in words."""
    row: str = ""
    """The label of the row in this version; empty if the test is gone."""
    judged_in: Mapping[str, str] = field(default_factory=dict)
    """The newest run with these verdicts, by candidate."""
    last_run: str | None = None
    """The newest run with results of this version; None without one."""
    prompts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The name of the system prompt of each verdict, by candidate, if there are several."""
    prompt_names: Mapping[int, str] = field(default_factory=dict)
    """The names of the system prompts by their numbers, from 1, if there are several."""


def merge_candidates(versions: Sequence[Version]) -> list[str]:
    """Return the candidates of all versions; each version has them in the order of the settings."""
    merged: list[str] = []
    for version in versions:
        place = len(merged)
        for model in reversed([*version.verdicts]):
            if model not in merged:
                merged.insert(place, model)
            place = merged.index(model)
    return merged


@dataclass(frozen=True, slots=True)
class Edit:
    """The differences in one part of a test."""

    part: str
    hunks: tuple[tuple[ChangedLine, ...], ...]


def versions_of(location: Location, file: str, row: str) -> list[Version]:
    """Return the versions of a case since its first run, newest first; empty without a run."""
    with ExitStack() as stack:
        project: Project | None = None
        with suppress(EvalstoreError):  # errors of the workspace do not matter here
            project = stack.enter_context(open_project(location))
        store = project.store if project else stack.enter_context(open_store(location))
        settings = open_workspace(location).settings
        folder = settings.paths["tests"]
        spans = find_spans(store, name_in_newest_run(project, file) if project else file, folder)
        now = name_in_workspace(project, file) if project else file
        files = store.load_case_files(list({span.node for span in spans if span.node}))
        spans = join_spans(spans, files)
        add_workspace(spans, files, project, now)
        follow_case(spans, files, row)
        add_results(store, spans, file)
        if project and spans and spans[-1].run is None and spans[-1].case:
            spans[-1].results = results_now(project, now, spans[-1].case.row)
        order = candidate_order(settings)
        for span in spans:
            span.results = sorted(span.results, key=lambda result: order(result.model))
        contents = load_test_parts(store, project, [span.case for span in spans if span.case])
        find = VersionReader(store).find
        versions = list(_versions(spans, files, contents, partial(_prompt_names, project), find))
    return versions[::-1]


def edits_between(was: Version | None, now: Version) -> list[Edit]:
    """Return the differences part by part; in the first version everything is new."""
    before = was.parts if was else {}
    edits: list[Edit] = []
    for part in dict.fromkeys((*now.parts, *before)):
        hunks = diff_lines(before.get(part, ""), now.parts.get(part, ""))
        if hunks:
            name = _part_name(part, now, was)
            edits.append(Edit(name, tuple(map(tuple, hunks))))
    return edits


def _part_name(part: str, *versions: Version | None) -> str:
    """Return `system prompt brief` for `system prompt 1`; other parts have their own names."""
    kind, _, number = part.rpartition(" ")
    if kind != SYSTEM:
        return part
    names = (each.prompt_names.get(int(number)) for each in versions if each)
    return next((f"{SYSTEM} {name}" for name in names if name), part)


# --- versions


def _versions(
    spans: Sequence[VersionSpan],
    files: Mapping[str, CaseFile],
    contents: Mapping[str, Json],
    name: Callable[[Mapping[str | None, int]], Mapping[str | None, str]],
    find: Find,
) -> Iterator[Version]:
    begun: list[tuple[VersionSpan, list[str], list[Difference], dict[str, str]]] = []
    before: VersionSpan | None = None
    judged: set[str] = set()
    parts_before: Mapping[str, str] = {}
    for span in spans:
        parts = (
            describe_parts(span.case, contents, files[span.node]) if span.case and span.node else {}
        )
        edits: list[str] = []
        judged |= {result.model for result in span.results}
        candidates = _candidates(before, span, judged, find) if before else []
        if not span.case:
            edits = [GONE] if before and before.case else []
        elif before is None or not before.case:
            edits = [NEW]
        else:
            names = dict.fromkeys((*parts_before, *parts))
            changed = [part for part in names if parts_before.get(part) != parts.get(part)]
            edits = list(dict.fromkeys(_kind(part) for part in changed))
            edits += dict.fromkeys(_kind_of_edit(edit) for edit in candidates)
            if not edits and before.node != span.node:
                edits = [OTHERS]
        if edits:
            begun.append((span, edits, candidates, parts))
        elif span.case and begun:
            begun[-1][0].add_newer(span)
        if span.case or (before and before.case):
            before, parts_before = span, parts
    for span, edits, candidates, parts in begun:
        words, prompts, prompt_names = _verdicts(span.results, name)
        yield Version(
            *(span.run, span.started, tuple(edits), words, parts),
            tuple(str(edit) for edit in candidates if str(edit) not in edits),
            row=span.case.row if span.case else "",
            judged_in=span.judged_in,
            last_run=span.last_run,
            prompts=prompts,
            prompt_names=prompt_names,
        )


def _kind(part: str) -> str:
    """Return the kind of a part: its name without the number."""
    return part.rstrip("0123456789 ")


def _candidates(
    was: VersionSpan, now: VersionSpan, judged: Set[str], find: Find
) -> list[Difference]:
    """Return the changes of the candidates of this case, of those that were judged until now."""
    known = {**now.candidates, **was.candidates} if was.is_limited else was.candidates
    known = {id: candidate for id, candidate in known.items() if id not in now.unnamed}
    return list(differ_candidates(known, now.candidates, judged, find))


def _kind_of_edit(edit: Difference) -> str:
    """Return what changed of a candidate, without its values."""
    subject, colon, _ = edit.subject.partition(": ")
    return f"model of {subject}" if colon else subject


_ByModel = dict[str, tuple[str, ...]]


def _verdicts(
    results: Iterable[Result], name: Callable[[Mapping[str | None, int]], Mapping[str | None, str]]
) -> tuple[_ByModel, _ByModel, dict[int, str]]:
    """Return the verdicts on each candidate by system prompt, and the prompts' names.

    The names come by candidate, and by the numbers of the prompts, from 1.
    """
    results_of: dict[str, dict[int, Result]] = {}
    for cell in sorted(results, key=lambda cell: cell.prompt_number):
        results_of.setdefault(cell.model, {})[cell.prompt_number] = cell
    shown = {
        result.prompt: number
        for last in results_of.values()
        if len(last) > 1
        for number, result in last.items()
    }
    names = name(shown) if shown else {}
    return (
        {
            id: tuple(result.word or "answered" for result in last.values())
            for id, last in results_of.items()
        },
        {
            id: tuple(names[result.prompt] for result in last.values())
            for id, last in results_of.items()
            if len(last) > 1
        },
        {number + 1: names[prompt] for prompt, number in shown.items()},
    )


def _prompt_names(
    project: Project | None, prompts: Mapping[str | None, int]
) -> Mapping[str | None, str]:
    if project is None:
        return {id: "no prompt" if id is None else id[:8] for id in prompts}
    return label_prompts(project, prompts)
