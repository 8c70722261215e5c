"""Expands test files with their rows to cases, in file order.

Expanding a file is a pure function of its text, of the versions it refers to, and of its
data. The result is the cases, the contents of their versions, and the dependencies.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any

from evalstore.checks.base import INSTALL
from evalstore.checks.parser import is_installed, packages_of
from evalstore.core.errors import FileProblem, LimitProblem, Problem
from evalstore.core.values import CaseFile
from evalstore.files.datasets import Dataset, DatasetRow
from evalstore.files.fields import suggest
from evalstore.files.templates import ITEM
from evalstore.store.driver import note_reached
from evalstore.store.trees.case_chunks import CaseTreeBuilder
from evalstore.workspace.index import NumberLists
from evalstore.workspace.testfiles.case_builder import (
    CaseBuilder,
    CaseDraft,
    differing_groups,
)
from evalstore.workspace.testfiles.context import (
    COLUMNS,
    Definitions,
    ExpandedFile,
    FillContext,
    Sink,
)
from evalstore.workspace.testfiles.known_rows import KnownRows
from evalstore.workspace.testfiles.parser import TestFile
from evalstore.workspace.testfiles.replacements import RowDifferences, expand_rows, shorten_value
from evalstore.workspace.testfiles.template_filling import RowValues

MOST_CASES = 1_000_000
"""The most cases of one dataset."""
_MOST_AT_ONCE = 2_000
"""The most rows in memory at once when their cases can be stored."""
_TOLD_EVERY = 250
"""After so many rows it is told how far the reading has come."""
_MOST_PROBLEMS = 20
"""The most rows whose problems are reported individually."""


def expand_test(
    test: TestFile,
    library: Definitions,
    sink: Sink | None = None,
    *,
    in_nodes: bool = False,
    known: Callable[[dict[str, Any]], KnownRows | None] = lambda _: None,
) -> ExpandedFile:
    """Expand a test file to its cases, or its problems.

    With `sink`, large numbers of contents and files are passed to it, and the result lacks them.
    With `in_nodes` so are many cases, and the result has their node instead. `known` returns the
    rows of the same file with the same dependencies but other data.
    """
    result = ExpandedFile(sink=sink)
    if not test.readable:
        return result
    data: Dataset | None = None
    if test.dataset:
        try:
            data, digest = library.open_data(test.dataset, test.path)
        except FileProblem as problem:
            result.problems += problem.all_at(test.path)
            return result
        result.dependencies[f"dataset:{test.dataset.path}"] = digest
        result.dependencies[COLUMNS] = [*data.columns, *map(list, data.aliases.items())]
    for entry in test.checks.entries if test.checks else ():
        for kind, package in packages_of(entry.definition):
            installed = result.dependencies[f"package:{package}"] = is_installed(package)
            if not installed:
                message = f"the check '{kind}' needs the package '{package}', which is missing"
                result.report(test.path, message, entry.line, hint=INSTALL)
    prompts = _resolve_prompts(test, library, result)
    tools = _resolve(test, "availableTools", "tool", test.tools, library.tools, result)
    requested_schemas = (test.schema,) if test.schema else ()
    schemas = _resolve(
        test, "structuredResponseSchema", "schema", requested_schemas, library.schemas, result
    )
    drafter = CaseBuilder(test, data, tools, schemas[0] if schemas else None, prompts)
    result.problems += drafter.filler.problems
    if result.has_failed():
        try:  # unreadable data may also be why names are not defined
            deque(data or (), maxlen=0)
        except FileProblem as problem:
            result.problems = problem.all_at(test.path)
        return result
    project = FillContext(
        test.path, library, result, has_instructions=test.instructions is not None
    )
    can_store = in_nodes and data is not None and not drafter.has_groups
    former = known(result.dependencies) if can_store and not drafter.runs_code else None
    rest = _draft(_rows(test, drafter, data), drafter, data, project)
    most = _MOST_AT_ONCE if can_store else MOST_CASES
    drafts = [] if former else list(islice(rest, most + 1))
    if can_store and (former or len(drafts) > most):
        _build_tree(test, drafter, data, project, former, chain(drafts, rest))
        return result
    if data is not None:
        result.problems += data.problems
    if not result.has_failed() and differing_groups(drafts):
        line = test.checks.line if test.checks else None
        message = "a check of the scope 'group' is not the same for all rows of the group"
        hint = "mention only values that all of them share, or split them with the field 'group'"
        result.report(test.path, message, line, hint=hint)
    elif not result.has_failed():
        result.file = replace(_bare(test), cases=tuple(drafter.name(drafts, project)))
        is_unjudged = any(case.evaluation is None for case in result.file.cases)
        result.problems += _find_idle(test, drafter, data, None, is_unjudged=is_unjudged)
    return result


def _bare(test: TestFile) -> CaseFile:
    """Return the file without its cases."""
    return CaseFile((), test.attempts, test.evaluators, test.threshold, test.id)


def _build_tree(
    test: TestFile,
    drafter: CaseBuilder,
    data: Dataset | None,
    project: FillContext,
    known: KnownRows | None,
    drafts: Iterable[CaseDraft],
) -> None:
    """Store the cases of many rows in nodes; the rows are read twice if most are not known."""
    result = project.result
    columns = RowDifferences(test.row_id)
    rows = array("Q")
    unknown: list[_Row] = []
    try:
        for each in _rows(test, drafter, data):
            _tell(len(rows) + 1)
            rows.append(each[0].digest())
            if known is None:
                columns.add(drafter.texts_of(each[0]))
            elif not known.find(rows[-1]):
                unknown.append(each)
                if len(unknown) > _MOST_AT_ONCE:
                    _build_tree(test, drafter, data, project, None, drafts)
                    return
        texts = [drafter.texts_of(row) for row, _ in unknown]
    except FileProblem:
        deque(drafts, maxlen=0)  # finds the problems of all rows
        return
    if known:
        columns.digests = known.columns(texts, drafter.naming_order)
    labeller = columns.labeller()
    named = known.label(labeller, texts) if known else None
    if known and not named:
        _build_tree(test, drafter, data, project, None, drafts)
        return
    builder = CaseTreeBuilder(lambda description: result.keep("cases", description))
    keys, labels = array("Q"), labeller.given
    unjudged = False
    if known and named:
        made = [draft.case for draft in _draft(unknown, drafter, data, project)]
        if not result.has_failed():
            labels, names = named
            cases = [case._replace(row=label) for case, label in zip(made, names, strict=True)]
            keys = known.build(builder, cases)
            result.dependencies = {**known.depends, **result.dependencies}
        unjudged = any(case.evaluation is None for case in made)
    else:
        for number, draft in enumerate(drafts):
            _tell(number, len(rows))
            label = labeller.label(drafter.naming_texts(draft.values, draft.id))
            builder.add(draft.case._replace(row=label))
            keys.append(int(draft.case.key, 16))
            unjudged = unjudged or draft.case.evaluation is None
    if data is not None:
        result.problems += data.problems
    if result.has_failed():
        return
    result.node = builder.finish(_bare(test))
    if not labeller.has_signs and not labeller.repeated:
        values = columns.digests
        header = [list(labeller.names), list(values)]
        result.rows = NumberLists(header, [*values.values(), rows, keys, labels])
    result.problems += _find_idle(test, drafter, data, labeller.repeated, is_unjudged=unjudged)


def _find_idle(
    test: TestFile,
    drafter: CaseBuilder,
    data: Dataset | None,
    repeated: Collection[int] | None,
    *,
    is_unjudged: bool,
) -> Iterator[Problem]:
    """Yield the problems of a file whose cases could be made.

    `repeated` are the digests of ids that several rows have, if they are known.
    """
    warn = partial(Problem, test.path, severity="warning")
    if test.is_cut and is_unjudged:
        yield warn(
            "nothing below '---' says how to judge the answer, so it is never judged",
            test.first_line,
            hint="write the instructions for the judge below the line '---'",
        )
    for column, (name, line, row) in drafter.blank.items():
        used = f"{ITEM}.{column}" if name.startswith(f"{ITEM}.") else column
        yield _in_rows(
            warn(
                f"'{{{{{name}}}}}' is filled with an empty value",
                line,
                hint=f"fill it in, or write '{{{{ {used} | default(\"\") }}}}' if it may be empty",
            ),
            [_place(data, row)],
        )
    if test.group is not None and not drafter.has_groups:
        yield warn(
            "'group' has no effect: no check has the scope 'group'",
            test.line_of("group"),
            hint="give one, as in '{allEqual: , scope: group}'",
        )
    elif test.group is not None and not drafter.group_differs:
        yield warn(
            "'group' is the same for all rows, so all of them are one group",
            test.line_of("group"),
            hint='write what a group has in common, such as "{{ item.template }}"; or leave it out',
        )
    if (repeated is None or repeated) and (problem := _repeated_id(test, drafter, data)):
        yield problem


def _tell(done: int, total: int = 0) -> None:
    if not done % _TOLD_EVERY:
        note_reached("rows", done, total)


def _draft(
    rows: Iterable[_Row], drafter: CaseBuilder, data: Dataset | None, project: FillContext
) -> Iterator[CaseDraft]:
    """Yield the draft of every row; problems go to the result without duplicates."""
    broken: dict[Problem, list[str]] = {}
    try:
        for row, source in rows:
            try:
                yield drafter.draft(row, project)
            except LimitProblem:
                raise
            except FileProblem as problem:
                for each in problem.all_at(project.path):
                    broken.setdefault(each, []).append(_place(data, source))
                if data is not None and sum(map(len, broken.values())) == _MOST_PROBLEMS:
                    break
    except FileProblem as problem:
        project.result.problems += problem.all_at(project.path)
    project.result.add_once(_in_rows(*both) for both in broken.items())


def _in_rows(problem: Problem, places: list[str]) -> Problem:
    """Return the problem of one or several rows, with the place of the first."""
    first, others = places[0], " and other rows" if len(places) > 1 else ""
    if not first:
        return problem
    return replace(problem, message=f"{problem.message} ({first}{others})")


_Row = tuple[RowValues, DatasetRow | None]


def _rows(test: TestFile, drafter: CaseBuilder, data: Dataset | None) -> Iterator[_Row]:
    """Yield every row of data combined with every row of replacements, with the row of data."""
    if data is None:
        for values in expand_rows(test.replacements):
            yield RowValues(values, drafter.filler.values), None
        return
    combinations = list(expand_rows(test.replacements))
    count = 0
    for data_row in data:
        drafter.note_blank(data_row)
        for values in combinations:
            count += 1
            if count > MOST_CASES:
                raise FileProblem(
                    f"the dataset makes more than {MOST_CASES:,} cases",
                    test.line_of("dataset"),
                    hint="take fewer rows with 'limit', 'where' or 'sample'",
                )
            yield RowValues(values, drafter.filler.values, data_row.item), data_row


def _place(data: Dataset | None, row: DatasetRow | None) -> str:
    """Return the place of a row in the data; empty without data."""
    if data is None or row is None:
        return ""
    return f"{data.file}:{row.line}" if row.line else f"{data.file}, row {row.number}"


def _repeated_id(test: TestFile, drafter: CaseBuilder, data: Dataset | None) -> Problem | None:
    """Return the first id that two rows have, if any.

    Rows that are made of one by combining it with replacements share its id.
    """
    if test.row_id is None:
        return None
    combined = {
        name
        for item in test.replacements
        for name, values in item.items()
        if data is not None or len(values) > 1
    }
    seen: set[int] = set()
    for row, source in _rows(test, drafter, data):
        id = drafter.id_of(row)
        parts = [row.values[name].text if name in row.values else None for name in combined]
        key = hash((id, *parts))
        if key in seen:
            return _in_rows(
                Problem(
                    test.path,
                    f"several rows have the id '{shorten_value(id)}'",
                    test.line_of("rowId"),
                    severity="warning",
                    hint="give each row its own value: these rows are named by other values",
                ),
                [_place(data, source)],
            )
        seen.add(key)
    return None


def _resolve_prompts(
    test: TestFile, library: Definitions, result: ExpandedFile
) -> tuple[str | None, ...]:
    ids: list[str | None] = []
    for number, id in enumerate(test.system_prompts):
        if id is None:
            ids.append(None)
            continue
        versions = library.prompts.get(id)
        result.dependencies[f"prompt:{id}"] = list(versions or ())
        if versions is None:
            hint = suggest(id, library.prompts, "system prompts")
            if id in library.evaluator_prompts:
                hint = "it is a judge prompt (tag '_evaluator'), not a system prompt"
            result.report(
                test.path,
                f"unknown system prompt '{id}'",
                test.line_of("systemPrompts", number),
                hint=hint,
            )
        else:
            ids += versions
    return tuple(dict.fromkeys(ids))


def _resolve(
    test: TestFile,
    field_name: str,
    kind: str,
    ids: tuple[str, ...],
    known: Mapping[str, str],
    result: ExpandedFile,
) -> tuple[str, ...]:
    versions = []
    for number, id in enumerate(ids):
        version = known.get(id)
        result.dependencies[f"{kind}:{id}"] = version
        if version is None:
            result.report(
                test.path,
                f"unknown {kind} '{id}'",
                test.line_of(field_name, number),
                hint=suggest(id, known, f"{kind}s"),
            )
        else:
            versions.append(version)
    return tuple(sorted(set(versions)))
