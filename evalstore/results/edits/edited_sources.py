"""Finds what was edited where two versions of a test file differ: it, or what it uses.

The parts of long files that are the same as before need not be read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from evalstore.comparison.case_edits import (
    EXCHANGED,
    PairedCases,
    differ_otherwise,
    differ_pair,
    prompts_compared,
    versions_compared,
)
from evalstore.comparison.version_diff import Difference, Name, nowhere
from evalstore.core.batches import in_batches
from evalstore.core.display import plural
from evalstore.core.runs import Run
from evalstore.core.values import Case, CaseFile
from evalstore.files.temporary_list import keep_values
from evalstore.planning.cell_results import LeafBuilder
from evalstore.planning.options import SelectionOptions
from evalstore.planning.path_history import ROWS, SourceChanges, as_replaced, name_edited
from evalstore.planning.settled_parts import SettledParts, find_settled
from evalstore.planning.status_report import compute_workspace, workspace_as_run
from evalstore.results.judgement_changes import differ_participants
from evalstore.store.trees.tree_nodes import (
    StoredCases,
    find_entry,
    long_parts_of,
    read_tree,
)

if TYPE_CHECKING:
    from evalstore.planning.project import Project, VersionReader
    from evalstore.store import Store


def find_unchanged_parts(project: Project, selection: SelectionOptions) -> SettledParts:
    """Return the settled parts of which there is nothing to tell since the last run.

    Their cases are in the same file of the last run, and their results in the newest run with
    results of the file. There are none when people gave labels since: these are counted case by
    case.
    """
    store, nodes, load = project.store, project.reading.nodes, project.store.load_nodes
    last = store.find_runs(limit=1)
    settled = find_settled(project, selection) if last else SettledParts()
    if not settled:
        return settled
    labels = store.find_labels()
    if labels and labels[-1].at > last[0].ended:
        return SettledParts()
    root = last[0].snapshot
    before = {path: find_entry([root], path, load).get(root) for path in settled.by_file}
    waiting = {path: leaf for path, leaf in before.items() if leaf}
    unchanged: list[tuple[str, int]] = []
    for run in store.find_recent_runs() if waiting else ():
        for path in sorted(waiting):
            leaf = find_entry([run.results], path, load).get(run.results)
            if leaf:
                ids, node = find_parts(store, {leaf}), waiting.pop(path)
                content = store.load_cases([node])[node] if node != nodes[path] else None
                cases = {*long_parts_of(content, store.load_cases)} if content else None
                unchanged += [
                    (path, first)
                    for first, part in settled.of(path).items()
                    if part.results in ids and (cases is None or part.node in cases)
                ]
        if not waiting:
            break
    return settled.only(unchanged)


def find_unedited_run(project: Project) -> Run | None:
    """Return the last run unless files, settings or labels changed since; nothing is planned."""
    store = project.store
    last = store.find_runs(limit=1)
    if not last or last[0].snapshot != project.snapshot()[0]:
        return None
    now = workspace_as_run(project)
    ids, current = ({each.id for each in run.candidates} for run in (last[0], now))
    edits = differ_participants(last[0], now, project.versions.find, project.name_of_version)
    is_edited = ids != current or any(edits) or store.count_labels()[1] > last[0].ended
    return None if is_edited else last[0]


def find_equal_run(project: Project) -> Run | None:
    """Return the last run if a run of the workspace would store the very results of it.

    It would not after a label, also one that agrees with the judges.
    """
    from evalstore.planning.planner import resolve_scope

    store, every = project.store, SelectionOptions()
    last = find_unedited_run(project)
    if last is None:
        return None
    scope = resolve_scope(project, every, settled=find_unchanged_parts(project, every))
    leaves = LeafBuilder(project.reading, store.load_cases, scope.settled)
    for _, results in compute_workspace(project, scope):
        leaves.add(results)
        leaves.forget()
    is_equal = leaves.finish_all() == read_tree(last.results, store.load_nodes)
    return last if is_equal else None


def find_parts(store: Store, leaves: Collection[str]) -> set[str]:
    """Return the ids of the results of the parts of long files with these results."""
    roots = store.load_leaves(leaves).values() if leaves else ()
    return {id for root in roots for id in long_parts_of(root, store.load_leaves)}


def leave_out_same(was: CaseFile, now: CaseFile, store: Store) -> tuple[CaseFile, CaseFile]:
    """Return two versions of a file without the parts of a long one that both have.

    Such parts stay if some of the other rows have names of theirs, so that these are paired as in
    the whole files.
    """
    if not (isinstance(was.cases, StoredCases) and isinstance(now.cases, StoredCases)):
        return was, now
    old, new = (list(cases.smallest_parts()) for cases in (was.cases, now.cases))
    same = {part.node for part in old} & {part.node for part in new}
    if not same:
        return was, now
    kept, others = ([part for part in parts if part.node not in same] for parts in (old, new))
    same = store.find_apart(same, (part.node for part in (*kept, *others)))
    before, after = (
        keep_values(
            cases.read(part for part in parts if part.node not in same), tuple, restore_case
        )
        for cases, parts in ((was.cases, old), (now.cases, new))
    )
    return replace(was, cases=before), replace(now, cases=after)


def restore_case(values: Sequence[Any]) -> Case:
    """Return a case that was kept as JSON."""
    return Case._make(tuple(each) if isinstance(each, list) else each for each in values)


CASES = "cases of "
"""Begins the name of a test file of which it is not known what was edited."""
_IN_CHECK = re.compile(r"check \d+ changed: (schema|judge prompt)\b")
"""Begins a difference of a check that uses something which another difference names."""
Prompts = tuple["str | None", ...]


def pair_prompts(before: CaseFile, after: CaseFile) -> set[tuple[Prompts, Prompts]]:
    """Return the system prompts of the cases at the same places of two versions of a file."""
    if isinstance(before.cases, StoredCases) and isinstance(after.cases, StoredCases):
        # All cases of a long file are rows of one test file, so they have the same ones.
        return {(before.cases[0].prompts, after.cases[0].prompts)}
    pairs = zip(before.cases, after.cases, strict=False)
    return {(was.prompts, now.prompts) for was, now in pairs}


def name_by_bytes(path: str, changes: SourceChanges | None) -> tuple[str, ...]:
    """Return what was edited, by whose bytes differ, such as `rows of tests/data/letters.csv`.

    The path of a test file is the first name if it was edited; if neither it nor what it uses was,
    or it is not known, it is `cases of` its path.
    """
    test = (path,) if changes and changes.is_test_edited else ()
    return (*test, *(changes.edited if changes else ())) or (f"{CASES}{path}",)


# --- finds the edits of test files: the first difference of each kind


_OF_USED = re.compile(
    r"(?:conversation \d+, )?(?P<name>(?:file|tool|schema) .+?) changed(?:: (?P<rest>.*))?$",
    re.DOTALL,
)
"""A difference that is an edit of something that the test file uses."""
_TOLD = re.compile(r"(?P<kind>schema|judge prompt) .+?(?: changed)?: (?P<rest>.+)", re.DOTALL)
_TOLD_BY_CHECK = re.compile(
    r"check \d+ changed: (?P<kind>schema|judge prompt)(?:, (?P<rest>.+))?$", re.DOTALL
)
"""An edit of something that checks use, and the same as an edit of a check."""
RENAMED = "renamed"
PROMPT_EDITS = ("system prompt ", "judge prompt ")
"""Beginnings of the differences that are edits of a prompt and not of the test file."""


class _Compared(NamedTuple):
    """Two versions of a case of a file, or a difference of the file besides these."""

    file: str
    was: Case | None = None
    now: Case | None = None
    other: Difference | None = None


def find_edits(
    versions: VersionReader,
    files: Mapping[str, tuple[CaseFile, CaseFile]],
    store: Store,
    name: Name = nowhere,
    changes: Mapping[str, SourceChanges | None] | None = None,
    *,
    is_reversed: bool = False,
) -> dict[str, Sequence[Difference]]:
    """Return the differences between two versions of each file, reading contents in batches.

    Parts of a long file that both versions have are not read.

    Of equal edits of several rows only the first is listed. One that is filled in otherwise in
    other rows names its row. `changes` tell whose bytes differ. With `is_reversed` the first
    versions are the newer ones, whose names count, and `changes` those from the other ones to them.
    """
    known = changes or {}
    found = {file: EditKinds(len(now.cases)) for file, (_, now) in files.items()}

    def compared() -> Iterator[_Compared]:
        for file, pair in files.items():
            was, now = leave_out_same(*pair, store)
            paired = PairedCases(was, now)
            yield from (_Compared(file, *cases) for cases in paired)
            others = differ_otherwise(was, now, paired.gone())
            yield from (_Compared(file, other=other) for other in others)

    for batch in in_batches(compared()):
        versions.read_ahead(
            version
            for each in batch
            if each.was and each.now
            for version in versions_compared(each.was, each.now)
        )
        for file, was, now, other in batch:
            if other:
                found[file].append(other)
            if now:
                change, named = known.get(file), name
                older, newer = (now, was) if is_reversed else (was, now)
                for kind, old, new in prompts_compared(older, newer) if older and newer else ():
                    named = name_edited(named, change, old, new, kind)
                is_same = change is not None and not change.is_test_edited
                for difference in differ_pair(was, now, versions.find, named, is_same_list=is_same):
                    replaced = as_replaced(difference, change, is_reversed=is_reversed)
                    found[file].add(replaced, now.row)
    return {file: _without_repeated(kinds.listed()) for file, kinds in found.items()}


def _without_repeated(edits: Sequence[Difference]) -> Sequence[Difference]:
    """Return edits without those of checks that say again how a prompt or a schema was edited.

    A check names no lines of its schema, so it is left out only where nothing else was edited.
    """
    told, kinds = set[tuple[str | None, ...]](), set[str]()
    for each in edits:
        if match := _TOLD.match(each.subject):
            told.add((match["kind"], match["rest"], each.was, each.now))
            kinds.add(match["kind"])
    if not kinds:
        return edits
    is_schema_alone = len(edits) == 2 and kinds == {"schema"}
    return [
        each
        for each in edits
        if not (match := _TOLD_BY_CHECK.match(each.subject))
        or not (
            (match["kind"], match["rest"], each.was, each.now) in told
            or (is_schema_alone and match["kind"] == "schema")
        )
    ]


def by_subject(
    edits: Mapping[str, Iterable[Difference]], sources: Mapping[str, Sequence[str]]
) -> Mapping[str, Sequence[Difference]]:
    """Return the edits by what was edited: a test file, or a named prompt, once for all files.

    `sources` are the names of what was edited, by test file. Where it was not the test file, the
    edits are those of what it uses: a `tool`, or `rows of tests/data/letters.csv`.
    """
    subjects: dict[str, dict[Difference, None]] = defaultdict(dict)
    for file, differences in edits.items():
        names = sources.get(file, (file,))
        for difference in differences:
            text = difference.subject
            prompt, colon, rest = text.partition(": ")
            used = _OF_USED.match(text)
            subject, use = file, _IN_CHECK.match(text)
            if use and file not in names and any(name.startswith(use[1]) for name in names):
                continue  # that is told of what the check uses
            if colon and text.startswith(PROMPT_EDITS):
                subject, text = prompt, rest
            elif file in names or not names or text == RENAMED:
                pass
            elif used and used["name"] in names:
                subject, text = used["name"], used["rest"] or "changed"
            elif text.endswith(EXCHANGED):
                kind = text.removesuffix(f"s{EXCHANGED}")
                subject = ", ".join(it for it in names if it.startswith(kind)) or names[0]
            else:
                subject = next((name for name in names if name.startswith(ROWS)), names[0])
            subjects[subject][replace(difference, subject=text)] = None  # several files may use it
    prompts_last = sorted(subjects, key=lambda it: it.startswith(PROMPT_EDITS))
    return {subject: [*subjects[subject]] for subject in prompts_last}


# --- lists of the edits of test files


@dataclass(slots=True)
class _Kind:
    """The first difference of a kind in the rows of a file."""

    first: Difference
    row: str
    rows: int = 1
    """How many rows have a difference of this kind."""
    differ: bool = False
    """Whether not all of these have the same values."""


class EditKinds:
    """The first difference of each kind in the rows of a file, then differences besides these."""

    def __init__(self, cases: int) -> None:
        """`cases` are how many the file has."""
        self._cases = cases
        self._kinds: dict[str, _Kind] = {}
        self._others: list[Difference] = []

    def add(self, difference: Difference, row: str) -> None:
        """Add a difference of a row."""
        kind = self._kinds.get(difference.subject)
        if kind is None:
            self._kinds[difference.subject] = _Kind(difference, row)
            return
        kind.rows += 1
        kind.differ = kind.differ or kind.first != difference

    def append(self, difference: Difference) -> None:
        """Add a difference besides those of rows, unless one of these is of its kind."""
        if difference.subject not in self._kinds:
            self._others.append(difference)

    def listed(self) -> list[Difference]:
        """Return all; each with its row, if other rows have other values or none at all."""
        return [*map(self._named, self._kinds.values()), *self._others]

    def _named(self, kind: _Kind) -> Difference:
        difference = kind.first
        is_alone = kind.rows == 1 < self._cases and not difference.subject.startswith("row ")
        if not kind.row or not (kind.differ or is_alone):
            return difference
        others = "" if is_alone else f" and {plural(kind.rows - 1, 'other row')}"
        return replace(difference, subject=f"{difference.subject} in [{kind.row}]{others}")
