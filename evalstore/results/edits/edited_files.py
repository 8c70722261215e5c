"""Finds what was edited between runs, and since: files, candidates, judges and settings."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

from evalstore.comparison.comparison import EXCHANGED, differ_otherwise
from evalstore.comparison.version_diff import Difference
from evalstore.core.batches import in_small_batches
from evalstore.core.display import plural
from evalstore.core.hashing import DigestSet, digest_of_value
from evalstore.core.runs import Run
from evalstore.core.values import Case, CaseFile
from evalstore.planning.open_project import open_workspace
from evalstore.planning.options import Location, is_partial
from evalstore.planning.path_history import (
    compare_sources,
    pair_in_store,
    pair_with_workspace,
)
from evalstore.planning.plan import AT_REQUEST, Plan, PlanItem
from evalstore.planning.project import Project, VersionReader
from evalstore.planning.reasons import NEW_ANSWER, NEW_PROMPT, NEW_ROW
from evalstore.planning.status_report import FileChange, PlannedRows, lacks_row_id, plan_rows
from evalstore.results.edits.edits import (
    CASES,
    RENAMED,
    find_participant_edits,
    find_runs_since,
    name_by_bytes,
    pair_prompts,
)
from evalstore.results.names import PromptNames
from evalstore.store import Store
from evalstore.store.results import SourcesReader
from evalstore.store.trees.tree_nodes import (
    RowIndex,
    StoredCases,
    find_entries,
    read_tree,
    read_trees,
)
from evalstore.workspace.reader import read_sources

if TYPE_CHECKING:
    from evalstore.results.compare.diff_result import Diff


WasRun = Callable[[str, Case], bool]
"""Whether an earlier run had a case of a file as it is now."""
_PROMPT = "system prompt "
_LISTED = 2
"""The most paths in the text of an edit."""


class _Leaves(NamedTuple):
    """The leaves of a test file: of the last run that judged it, and of the newest one."""

    was: str | None
    now: str | None
    before: Run
    """The run that has the first one."""


def _describe(
    renamed: Mapping[str, str],
    new: Sequence[str],
    removed: Sequence[str],
    sources: Mapping[str, Iterable[str]],
) -> Iterator[Difference]:
    """Yield a line for each kind of edit.

    `renamed` are the former paths of files by their new ones, `sources` what was edited by test
    file, as `name_by_bytes` returns it.
    """
    named = [*dict.fromkeys(chain.from_iterable(sources.values()))]
    prompts = sorted(name.removeprefix(_PROMPT) for name in named if name.startswith(_PROMPT))
    for path, former in sorted(renamed.items()):
        changed = " and changed" if path in named else ""
        yield Difference(f"{former} renamed to {path}{changed}")
    yield from _list(new, "new")
    yield from _list(removed, "removed")
    yield from _list(prompts, "changed", _PROMPT if len(prompts) == 1 else "system prompts ")
    others = [name for name in named if not name.startswith((_PROMPT, CASES))]
    yield from _list(sorted({*others} - sources.keys()), "changed")
    yield from _list(sorted({*others} & sources.keys() - renamed.keys()), "changed")
    unread = [name.removeprefix(CASES) for name in named if name.startswith(CASES)]
    yield from _list(unread, "changed", CASES)


def describe_sides(diff: Diff) -> tuple[str, ...]:
    """Return the edits between both sides, as `log` says them: `tests/late.md changed`."""
    listed = [(path, it) for path, each in diff.edits.items() for it in each]
    former = {path: it.was for path, it in listed if it.subject == RENAMED and it.was}
    gone, new = (sorted(each.files) for each in diff.causes)
    edited = {path: None for path, it in listed if it.subject != RENAMED}
    sources = {path: diff.sources.get(path, (path,)) for path in edited}
    edits = _describe(former, new, gone, sources)
    return (*map(str, edits), *map(str, diff.participants))


class FileHistory:
    """Follows test files and system prompts from older to newer runs.

    An edit belongs to the first run with results of the edited file: a run of other files has it
    in its snapshot, too, but does not judge it. A step costs what differs between two snapshots.
    """

    def __init__(self, store: Store, folder: str) -> None:
        """`folder` is that of the test files."""
        self._store, self._folder = store, folder
        self._find_sources = SourcesReader(store).find
        self._unjudged: dict[str, _Leaves] = {}
        """The files that were edited since they were judged, by path."""

    def step(
        self, before: Run, run: Run, was: Mapping[str, str], now: Mapping[str, str]
    ) -> tuple[Difference, ...]:
        """Return the edits that a run was the first to judge.

        `was` and `now` are the leaves of the snapshots of the run before and of this one, by path;
        those that both have may be left out.
        """
        for path in was.keys() | now.keys():
            known = self._unjudged.get(path) or _Leaves(was.get(path), None, before)
            self._unjudged[path] = known._replace(now=now.get(path))
        gone = {
            path: each.was for path, each in self._unjudged.items() if each.was and not each.now
        }
        judged = self._unjudged
        if is_partial(run):
            present = [path for path, each in self._unjudged.items() if each.now]
            found = find_entries(run.results, present, self._store.load_nodes)
            judged = {path: self._unjudged[path] for path in found}
        edited = {path: it.now for path, it in judged.items() if it.now and it.was != it.now}
        new = {path: leaf for path, leaf in edited.items() if not judged[path].was}
        renamed = pair_in_store(self._store, self._folder, gone, new) if gone and new else {}
        sources = {}
        for path in sorted(edited):
            older = self._unjudged[former := renamed.get(path, path)]
            if older.was and older.was != edited[path]:
                both = self._find_sources(older.before), self._find_sources(run)
                sources[path] = name_by_bytes(path, compare_sources(*both, path, former))
        # Of a partial run, a file that is gone may have been renamed.
        removed = [] if is_partial(run) else sorted(gone.keys() - {*renamed.values()})
        for path in [*judged, *renamed.values()]:
            self._unjudged.pop(path, None)
        return (*_describe(renamed, sorted(new.keys() - renamed.keys()), removed, sources),)


def find_run_edits(
    location: Location, store: Store, runs: Sequence[Run]
) -> list[tuple[Difference, ...]]:
    """Return the edits that each of these runs was the first to judge; runs are newest first.

    They are edits of files and of participants. Runs of imported verdicts have none of files.
    """
    before = find_runs_since(store, runs[-1], is_partial) if runs else ()
    history = FileHistory(store, open_workspace(location).settings.paths["tests"])
    edits: dict[str, tuple[Difference, ...]] = {}
    every = [run for run in reversed([*runs, *before]) if run.origin is None]
    if every and is_partial(every[0]):  # what the first run of all left out is new in later ones
        history.step(every[0], every[0], {}, read_tree(every[0].snapshot, store.load_nodes))
    for pairs in in_small_batches(pairwise(every)):
        trees = [
            (one.snapshot, other.snapshot) for pair in pairs for one, other in (pair, pair[::-1])
        ]
        leaves = iter(read_trees(trees, store.load_nodes))
        for before_it, run in pairs:
            edits[run.id] = history.step(before_it, run, next(leaves), next(leaves))
    names = PromptNames(location)
    of_participants = find_participant_edits(store, runs, VersionReader(store).find, names)
    return [
        (*edits.get(run.id, ()), *others) for run, others in zip(runs, of_participants, strict=True)
    ]


def _list(names: Sequence[str], change: str, start: str = "") -> Iterator[Difference]:
    """Yield the one line about these names, such as `a.md, b.md and 3 more changed`."""
    if names:
        shown = names if len(names) <= _LISTED + 1 else names[:_LISTED]
        more = len(names) - len(shown)
        text = f"{', '.join(shown)}{f' and {more:,} more' if more else ''}"
        yield Difference(f"{start}{text} {change}")


# --- tells how a test file differs from that of a run, and what a plan does about it


_SHOWN, _REJUDGED, _UNSETTLED, _FOR_ALL = 1, 2, 4, 8
"""Bits of a case: it asks something else, it is only judged otherwise, the plan does something for
it or it waits, more than its system prompts was edited."""
_EDITED = _SHOWN | _REJUDGED
_MOST_OTHERS = 2
"""The items with different reasons of which one differs from any reason; more are counted."""


@dataclass
class FileItems:
    """The items of a plan for one file, each with the number of its case."""

    asks: list[tuple[int, PlanItem]] = field(default_factory=list)
    judgements: list[tuple[int, PlanItem]] = field(default_factory=list)
    used_again: set[int] = field(default_factory=set)
    """The cases about which stored judgements are used again, and nothing else is done."""

    def __iter__(self) -> Iterator[tuple[int, PlanItem]]:
        yield from self.asks
        yield from self.judgements


class EditedFile:
    """A test file in a run and in the workspace, with the sums of the plans of its cases."""

    def __init__(self, path: str, was: CaseFile, now: CaseFile, store: Store) -> None:
        """Compare the cases of both; the first one is stored."""
        self._path = path
        self.was, self.now = was, now
        self._store = store
        self._bits = bytearray(len(now.cases))
        self._gone, renamed = self._compare()
        others = [f"{plural(renamed, 'row')} renamed"] if renamed else []
        if any(old != new and {*old} == {*new} for old, new in pair_prompts(was, now)):
            others.append(f"system prompts{EXCHANGED}")
        self._settings = "; ".join([*map(str, differ_otherwise(was, now, ())), *others])
        """How the settings of the file itself were edited, and its rows renamed."""
        self._first: PlanItem | None = None
        """The first item of the plan that is not about a new row: of a question if there is one."""
        self._judged: dict[str, PlanItem] = {}
        """The first items of rows that are only judged, by their different reasons."""
        self._causes: Counter[str] = Counter()
        """How many cases each cause has: a part that was edited, or a reason without details."""
        self._heads: Counter[str] = Counter()
        """How many cases are asked for each reason, without its details."""
        self._shared = ""
        self._counts: Counter[str] = Counter()

    @property
    def differs(self) -> bool:
        """Return whether cases are edited or gone, or settings of the file edited."""
        return bool(self._gone or self._settings) or any(self._bits)

    def _compare(self) -> tuple[int, int]:
        """Set the bits of the edited cases; returns how many cases are gone, and how many renamed.

        The parts of a long file that both versions have are read only as far as the other parts
        have cases with the same conversations or names.
        """
        known, evaluations, kept = DigestSet(), DigestSet(), DigestSet()
        names: list[array[int]] = [array("Q"), array("Q")]
        has_several = False
        before, after = self._iterate_compared()
        for case, is_in_both in before:
            known.add(digest_of_value(_shown(case)))
            evaluations.add(digest_of_value(_for_all_prompts(case)))
            if not is_in_both:
                names[0].append(digest_of_value(case.key))
                names[1].append(digest_of_value(case.row))
            has_several = has_several or len(case.tests) > 1
        shown: list[Case] = []
        """Those that are compared with cases of several conversations."""
        for number, case in after:
            kept.add(digest_of_value(case.key))
            kept.add(digest_of_value(case.row))
            if number is None:
                continue
            is_for_all = digest_of_value(_for_all_prompts(case)) not in evaluations
            if digest_of_value(_shown(case)) not in known:
                self._bits[number] = _SHOWN | _FOR_ALL * is_for_all
                shown += [case] if has_several else []
            elif is_for_all:
                self._bits[number] = _REJUDGED | _FOR_ALL
        if fewer := _only_fewer(shown, self.was) if shown else set():
            for number, case in enumerate(self.now.cases):
                if self._bits[number] & _SHOWN and case.key in fewer:
                    was_for_all = self._bits[number] & _FOR_ALL
                    self._bits[number] = _REJUDGED | _FOR_ALL if was_for_all else 0
        found = Counter(key in kept for key, row in zip(*names, strict=True) if row not in kept)
        return found[False], found[True]

    def _iterate_compared(
        self,
    ) -> tuple[Iterator[tuple[Case, bool]], Iterator[tuple[int | None, Case]]]:
        """Return the cases to compare: the older ones, and the newer ones with their numbers.

        Each older one has whether it is in a part of both versions; a newer one in such a part has
        no number.
        """
        was, now = self.was.cases, self.now.cases
        if not (isinstance(was, StoredCases) and isinstance(now, StoredCases)):
            return ((case, False) for case in was), enumerate(now)
        old, new = list(was.smallest_parts()), list(now.smallest_parts())
        same = {part.node for part in old} & {part.node for part in new}
        gone, added = ([part for part in parts if part.node not in same] for parts in (old, new))
        tests = {test for case in now.read(added) for test in case.tests}
        names = {name for case in was.read(gone) for name in (case.key, case.row)}
        like_added = same & self._store.find_named_leaves((), tests)
        like_gone = same & self._store.find_named_leaves(names)
        before = was.read(part for part in old if part.node in like_added)
        after = now.read(part for part in new if part.node in like_gone)
        numbers = chain.from_iterable(range(part.first, part.first + part.size) for part in added)
        return (
            chain(((case, False) for case in was.read(gone)), ((case, True) for case in before)),
            chain(zip(numbers, now.read(added), strict=True), ((None, case) for case in after)),
        )

    @cached_property
    def _old(self) -> RowIndex:
        return RowIndex(self.was, self._store)

    def add(self, rows: PlannedRows, items: FileItems, settings: Container[str]) -> None:
        """Add rows and items of the plan; all of a case must be added at once.

        What only `settings`, which were edited, do about cases that were not is left out, and that
        they do something about the others, too.
        """
        due = {number for number, item in items if item.of in settings} - {
            number
            for number, item in items
            if self._bits[number] & _EDITED
            or not (item.of in settings or item.reason == NEW_ANSWER)
        }
        rows = replace(rows, asked=rows.asked - due, judged=rows.judged - due)

        def kept(listed: list[tuple[int, PlanItem]]) -> Iterator[tuple[int, PlanItem]]:
            for number, item in listed:
                is_told = f"candidate {item.model}" in settings
                also = (it for it in item.also if not (is_told and it.startswith(_OF_CANDIDATE)))
                if number not in due:
                    yield number, replace(item, also=tuple(also))

        items = FileItems([*kept(items.asks)], [*kept(items.judgements)], items.used_again)
        own = {number for number, _ in items}
        pending = rows.asked | rows.judged
        new = {number for number, item in items if item.reason.startswith(NEW_ROW)}
        new |= {
            number
            for number in pending - own
            if self._bits[number] & _SHOWN and not self._old.find(rows.cases[number])
        }
        asked, judged = rows.asked - new, rows.judged - new
        again = {
            number
            for number, item in items.asks
            if item.kind == "ask" and item.reason != NEW_PROMPT
        }
        added = {
            number
            for number in asked & own - again
            if (was := self._old.find(now := rows.cases[number])) and was.tests == now.tests
            if set(was.prompts) <= set(now.prompts) and len(was.prompts) < len(now.prompts)
        }
        edited = {number for number in rows.waiting if self._bits[number] & _EDITED}
        for name, numbers in (
            *(("pending", pending), ("new", new), ("asked", asked), ("judged", judged)),
            *(("added", added), ("waiting", edited), ("explained", own - new)),
            ("used again", items.used_again - pending - edited),
        ):
            self._counts[name] += len(numbers)
        causes = {(cause, n) for n, item in items if n not in new for cause in _causes_of(item)}
        self._causes.update(cause for cause, _ in causes)
        heads = {(_head(item), n) for n, item in items.asks if n not in new}
        self._heads.update(head for head, _ in heads)
        for number in asked & judged:
            former, now = self._old.find(rows.cases[number]), rows.cases[number]
            if former and former.evaluation != now.evaluation:
                self._bits[number] |= _REJUDGED
        requested = {number for number, item in items if item.reason.endswith(AT_REQUEST)}
        self._counts["asked by an edit"] += len(asked - requested)
        self._counts["judged by an edit"] += len(judged - requested)
        for number in pending | rows.waiting:
            self._bits[number] |= _UNSETTLED
        decided = (self._bits[number] for number in rows.decided)
        self._counts["partly"] += sum(1 for it in decided if it & _EDITED and it & _UNSETTLED)
        self._shared = self._shared or rows.shared
        self._note_reasons(items, judged)

    def _note_reasons(self, items: FileItems, judged: set[int]) -> None:
        """Keep the items whose reasons are told: that of an edit rather than `--refresh`."""

        def urgency(item: PlanItem) -> tuple[bool, bool]:
            return item.kind == "judge", item.reason.endswith(AT_REQUEST)

        if self._first is None or any(urgency(self._first)):
            listed = (item for _, item in items if not item.reason.startswith(NEW_ROW))
            first = (self._first,) if self._first else ()
            self._first = min((*first, *listed), key=urgency, default=None)
        for number, item in items.judgements:
            if len(self._judged) == _MOST_OTHERS:
                break
            if number in judged and item.reason != NEW_ANSWER:
                self._judged.setdefault(item.reason, item)

    def describe(self, was_run: WasRun) -> FileChange:
        """Return how the file differs, after all plans were added."""
        settled = sum(1 for bits in self._bits if bits & _EDITED and not bits & _UNSETTLED)
        count, first = self._counts, self._first
        is_again = bool(count["asked"] or count["judged"])
        own = (self._reason(first) if first else self._shared) if is_again else ""
        settings = "" if own and not own.endswith(AT_REQUEST) else self._settings
        reasons = filter(None, [own, settings])
        has = {bit: any(bits & bit for bits in self._bits) for bit in (_SHOWN, _REJUDGED)}
        is_asked = has[_SHOWN] or self._gone or count["asked by an edit"]
        is_judged = has[_REJUDGED] or (count["judged by an edit"] and not is_asked)
        return FileChange(
            code=("M" if is_asked else ".") + ("M" if is_judged else ".")
            if (count["pending"] or count["waiting"]) and (is_asked or is_judged)
            else "= ",
            file=self._path,
            asked=count["asked"],
            added=count["added"],
            judged=count["judged"],
            gone=self._gone,
            reason="; ".join(reasons),
            new=count["new"],
            was=first.was if first else None,
            now=first.now if first else None,
            also=self._also_edited(first) if first and is_again else (),
            settled=settled,
            waiting=count["waiting"],
            used_again=min(count["used again"], settled),
            partly=count["partly"],
            reverted=not settled
            or all(
                was_run(self._path, case)
                for bits, case in zip(self._bits, self.now.cases, strict=True)
                if bits & _EDITED and not bits & _UNSETTLED
            ),
        )

    def _reason(self, first: PlanItem) -> str:
        """Return why cases are asked again, with counts if not all of one reason, or judged."""
        own, other = _head(first), self._other_reason(first)
        beside = {None, _part(first.reason)} & {None, "system prompt"}
        others = [each for each in self._heads if each != own and _part(each) in beside]
        reasons = [first.reason]
        if others and own in self._heads:
            others.sort(key=lambda head: (-self._heads[head], head))
            counts = [f" ({plural(self._heads[each], 'case')})" for each in (own, *others)]
            listed = map(str.__add__, (first.reason, *others[:_MOST_OTHERS]), counts)
            left = len(others[_MOST_OTHERS:])
            reasons = [*listed, *([plural(left, "more reason")] if left else [])]
        return "; ".join([*reasons, other.reason] if other else reasons)

    def _also_edited(self, first: PlanItem) -> tuple[str, ...]:
        """Return which parts were edited beside the reasons that are given: `test of 1 case`."""
        other = self._other_reason(first)
        told = {_causes_of(item)[0] for item in (first, other) if item}
        also = (*first.also, *(other.also if other else ()), "test", "system prompt")
        return tuple(
            part
            if (count := self._causes[part]) >= self._counts["explained"]
            else f"{part} of {plural(count, 'case')}"
            for part in dict.fromkeys(also)
            if part in self._causes and part not in told
        )

    def _other_reason(self, first: PlanItem) -> PlanItem | None:
        """Return the first item of a case that is only judged again, if its reason is another."""
        if first.kind == "judge":
            return None
        return next((it for it in self._judged.values() if it.reason != first.reason), None)


_OF_CANDIDATE = ("model ", "temperature")
"""How what was edited of a candidate begins, among what else was edited."""
_PARTS = {
    "test": re.compile("test changed").match,
    "system prompt": re.compile(r"system prompt (?:(?:[^:]+ )?changed|.+ in place of )").match,
    "instructions": re.compile("instructions ").match,
    "checks": re.compile("check").match,
    "judge prompt": re.compile("judge prompt").match,
}
"""Parts of a case, and how the reasons begin that are about them."""


def _causes_of(item: PlanItem) -> list[str]:
    """Return the causes of an item, first that of its reason, without its details."""
    return [_part(item.reason) or _head(item), *item.also]


def _part(reason: str) -> str | None:
    """Return the part of a case that a reason is about; None if it is about none."""
    return next((part for part, is_of in _PARTS.items() if is_of(reason)), None)


def _head(item: PlanItem) -> str:
    """Return the reason of an item without its details."""
    return item.reason.partition(": ")[0]


def _only_fewer(cases: list[Case], was: CaseFile) -> set[str]:
    """Return the keys of the cases whose questions all were in the older version of the file."""
    held: dict[object, set[tuple[str, ...]]] = {}
    for case in was.cases:
        for test in set(case.tests):
            held.setdefault((case.prompts, case.recorded, test), set()).add(case.tests)
    return {
        case.key
        for case in cases
        if any(
            Counter(case.tests) <= Counter(tests)
            for tests in held.get((case.prompts, case.recorded, case.tests[0]), ())
        )
    }


def _for_all_prompts(case: Case) -> tuple[object, ...]:
    """Return what a case has of all that its verdicts depend on, apart from its system prompts."""
    return case.tests, case.recorded, case.temperature, case.seed, case.evaluation


def _shown(case: Case) -> tuple[object, ...]:
    """Return everything that the answers to a case depend on, apart from the model."""
    prompts = tuple(sorted(case.prompts, key=str)) if len(case.prompts) > 1 else case.prompts
    return case.tests, prompts, case.recorded, case.temperature, case.seed


# --- finds the test files that differ from the snapshot of a run


class FileChanges:
    """Finds the test files that differ from a run, from the plans of all cells, batch by batch."""

    def __init__(
        self,
        project: Project,
        run: Run,
        was_run: WasRun,
        settings: Container[str],
        *,
        narrows: bool,
    ) -> None:
        """Compare the files of the workspace with those of the run.

        `settings` are what was edited besides: candidates, judges, settings.
        With `narrows`, only files in which the command would do something are among the changes.
        """
        self._project, self._run, self._was_run = project, run, was_run
        self._settings, self._narrows = settings, narrows
        self._pairs = {path: path for path in project.reading.nodes}
        self._edited: dict[str, EditedFile] = {}
        """The files whose cases differ."""
        self._selected: set[str] = set()
        self._busy: set[str] = set()
        """Files with items of the plan."""
        self._gone: dict[str, int] = {}
        """How many cases each file had that is gone."""
        if project.snapshot()[0] == run.snapshot:
            return
        nodes, store = project.reading.nodes, project.store
        before = read_tree(run.snapshot, store.load_nodes)
        old_files: dict[str, CaseFile] = {}
        self._pairs = pair_with_workspace(project, before, old_files)
        changed = {path: old for path, old in self._pairs.items() if before[old] != nodes[path]}
        gone = before.keys() - set(self._pairs.values())
        broken = {problem.file for problem in (*project.reading.errors, *project.left_out)}
        leaves = {before[path] for path in (*changed.values(), *gone)}
        old_files |= store.load_case_files(leaves - old_files.keys())
        for path, old in changed.items():
            edited = EditedFile(path, old_files[before[old]], project.reading.files[path], store)
            if edited.differs:
                self._edited[path] = edited
        self._gone = {path: len(old_files[before[path]].cases) for path in gone - broken}

    def lists(self, file: str) -> bool:
        """Return whether a file is among the changes, if it has an item of the plan."""
        return file not in self._pairs or file in self._edited or self._pairs[file] != file

    def add(self, plan: Plan, items: Mapping[str, FileItems]) -> None:
        """Add the plan of a batch, with its items by file."""
        self._selected.update(cell.file for cell in plan.cells)
        self._busy |= {file for file, own in items.items() if own.asks or own.judgements}
        edited = {file for file in {cell.file for cell in plan.cells} if file in self._edited}
        if not edited:
            return
        rows = plan_rows(plan, edited, self._project.settings.verdict)
        for file in edited:
            self._edited[file].add(rows[file], items.get(file) or FileItems(), self._settings)

    def finish(self) -> list[FileChange]:
        """Return the changes, as git shows them."""
        reading, narrows = self._project.reading, self._narrows
        changes = [
            FileChange("A ", path, len(reading.files[path].cases), 0, 0, "new")
            for path in reading.nodes.keys() - self._pairs.keys()
            if not narrows or path in self._selected
        ]
        project = self._project
        was = SourcesReader(project.store).find(self._run) if self._edited else None
        now = read_sources(project.workspace, project.reading) if was else None
        for path, old in self._pairs.items():
            change = None
            if path in self._edited:
                sources = compare_sources(was, now, path, old)
                change = self._edited[path].describe(self._was_run)
                change = replace(change, edited=name_by_bytes(path, sources))
                if narrows:  # nothing is known of the cases that were not selected
                    change = replace(change, settled=0, used_again=0)
            workspace = self._project.workspace
            if change and change.gone and change.new and lacks_row_id(workspace, path):
                change = replace(change, may_be_edited_rows=True)
            if path != old:
                change = change or FileChange("R ", path, 0, 0, 0, "")
                reason = "; ".join(part for part in (f"was {old}", change.reason) if part)
                change = replace(change, reason=reason, old_file=old)
            if change:
                changes.append(change)
        changes += [
            FileChange("D ", path, 0, 0, count, "removed") for path, count in self._gone.items()
        ]
        if narrows:
            changes = [
                change
                for change in changes
                if change.file in self._busy or change.new or change.asked or change.judged
            ]
        return sorted(changes, key=lambda change: (change.file, change.code))
