"""Follows test files through the paths and snapshots of earlier runs, and selects cases by them."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice

from evalstore.comparison.comparison import former_prompts, pair_files
from evalstore.comparison.version_diff import Difference, Name, in_place
from evalstore.core.clock import now
from evalstore.core.errors import EvalstoreError, NothingSelectedError
from evalstore.core.hashing import ValueSet
from evalstore.core.runs import SOURCE_TEST, Run, RunSources
from evalstore.core.values import Case, CaseFile
from evalstore.planning.cells import SkippedPair, StreamedCells
from evalstore.planning.options import SelectionOptions
from evalstore.planning.plan import AT_REQUEST, EVER, AgeLimit
from evalstore.planning.project import Project
from evalstore.planning.selection import Placed, Subset
from evalstore.store import Store
from evalstore.store.events import RUNS_SEARCHED
from evalstore.store.trees.tree_nodes import find_entry, read_tree, read_trees
from evalstore.workspace.settings.settings import AGE_HINT, Settings, read_age


def pair_with_workspace(
    project: Project, was: Mapping[str, str], files: dict[str, CaseFile] | None = None
) -> dict[str, str]:
    """Return the path that each test file of the workspace had in a snapshot with these entries.

    Leaves of the snapshot that are read are put into `files`.
    """
    nodes, folder = project.reading.nodes, project.settings.paths["tests"]
    fresh = {leaf: project.reading.files[path] for path, leaf in nodes.items()}
    load = partial(_load, project.store, {} if files is None else files)
    return pair_files(was, nodes, folder, load, lambda _leaves: fresh)


def pair_in_store(
    store: Store,
    folder: str,
    was: Mapping[str, str],
    now: Mapping[str, str],
    files: dict[str, CaseFile] | None = None,
) -> dict[str, str]:
    """Return the path that each test file of a snapshot had in an older one, by its path.

    Leaves that are read are put into `files`.
    """
    load = partial(_load, store, {} if files is None else files)
    return pair_files(was, now, folder, load, load)


def _load(store: Store, files: dict[str, CaseFile], leaves: Collection[str]) -> dict[str, CaseFile]:
    """Return `files` with the cases of these leaves, which are added to them."""
    files |= store.load_case_files({*leaves} - files.keys())
    return files


def name_in_newest_run(project: Project, file: str) -> str:
    """Return the path of a test file of the workspace in the newest run; else its current path."""
    runs = project.store.find_runs(limit=1)
    if not runs or file not in project.reading.nodes:
        return file
    root, load = runs[0].snapshot, project.store.load_nodes
    if find_entry([root], file, load).get(root) == project.reading.nodes[file]:
        return file
    return pair_with_workspace(project, read_tree(root, load)).get(file, file)


def name_in_workspace(project: Project, file: str) -> str:
    """Return the current path of a test file of the newest run; else its path in that run."""
    runs = project.store.find_runs(limit=1)
    if not runs or file in project.reading.nodes:
        return file
    was = read_tree(runs[0].snapshot, project.store.load_nodes)
    names = {old: new for new, old in pair_with_workspace(project, was).items()}
    return names.get(file, file)


# --- follows files back through the snapshots of runs


class PathHistory:
    """Knows the path that each test file had in a snapshot, stepping from newer to older ones.

    A step costs what differs between two snapshots, however many files there are.
    """

    def __init__(
        self,
        store: Store,
        folder: str,
        nodes: Mapping[str, str] | str,
        files: Mapping[str, CaseFile],
    ) -> None:
        """`nodes` are the newest leaves of all test files by path, or the root of their tree.

        `folder` is that of the test files; `files` are cases of leaves that the store may lack.
        """
        self._store, self._folder = store, folder
        self._newer = nodes
        self._files = dict(files)
        self._former: dict[str, str | None] = {}
        """Newest path -> path in the last snapshot, where they differ; None: another file's."""
        self._newest: dict[str, str] = {}
        """The reverse of it."""
        self._gaps: dict[str, str] = {}
        """Paths of files that the last snapshot lacks -> the leaf they had after it."""
        self.renames = 0
        """How many renames were met."""

    def name(self, path: str) -> str | None:
        """Return the path that a test file had in the last snapshot; None if it had none."""
        return self._former.get(path, path)

    def newest_path(self, name: str) -> str | None:
        """Return the newest path of the file that had a path in the last snapshot."""
        return self._newest.get(name, None if name in self._former else name)

    def step(self, snapshot: str, only: str | None = None) -> None:
        """Go on to the next older snapshot; with `only`, follow no other file than this one."""
        if snapshot == self._newer:
            return
        load, newer, self._newer = self._store.load_nodes, self._newer, snapshot
        if isinstance(newer, str):
            was, now = read_trees([(snapshot, newer), (newer, snapshot)], load)
        else:
            was, now = read_tree(snapshot, load), dict(newer)
        equal = was.items() & now.items()  # sorted: of equal files, the first is the renamed one
        was, now = (dict(sorted(each.items() - equal)) for each in (was, now))
        name = self.name(only) if only else None
        # Its path may differ where it is gone or changed, or its content is found after a gap.
        if only and not (name in was or name in now or self._gaps.get(name or "") in was.values()):
            return
        gone, lost = was.keys() - now.keys(), now.keys() - was.keys()
        pairs: dict[str, str] = {}
        if gone and lost:
            pairs = pair_in_store(self._store, self._folder, was, now, self._files)
        gone -= set(pairs.values())
        self._gaps |= {path: now[path] for path in lost - pairs.keys()}
        by_leaf = {was[path]: path for path in sorted(gone - self._gaps.keys(), reverse=True)}
        for path in sorted(self._gaps.keys() & gone):
            del self._gaps[path]
        for path, leaf in sorted(self._gaps.items()) if by_leaf else ():
            if leaf in by_leaf:
                pairs[path] = by_leaf.pop(leaf)
                del self._gaps[path]
        self._rename({new: old for new, old in pairs.items() if new != old})

    def _rename(self, names: Mapping[str, str]) -> None:
        """Follow files to older paths, by their newer ones."""
        if not names:
            return
        followed: dict[str, str | None] = {}
        taken: dict[str, str | None] = {}
        for newer, older in names.items():
            if (path := self.newest_path(newer)) is not None:
                followed[path] = older
            if (path := self.newest_path(older)) is not None:
                taken[path] = None
        self._former |= taken | followed
        self._newest = {name: path for path, name in self._former.items() if name is not None}
        self.renames += 1


def follow_file(
    store: Store, runs: Iterable[Run], file: str, folder: str
) -> Iterator[tuple[str, str | None]]:
    """Yield the path of a test file in each run, newest first, and its leaf, if any.

    `file` is its path in the newest run that has it. It follows the rule of `PathHistory`, which
    is asked only about runs from which the file is absent, and about the one after them.
    """
    left, name = list(runs), file
    history: PathHistory | None = None
    newer: str | None = None
    is_absent, steps = False, RUNS_SEARCHED
    while left:
        nodes = find_entry({run.snapshot for run in left}, name, store.load_nodes)
        for number, run in enumerate(left):
            root = run.snapshot
            if newer is not None and steps and (is_absent or root not in nodes):
                history = history or PathHistory(store, folder, newer, {})
                history.step(newer)
                history.step(root, only=file)
                newer, steps = root, steps - 1
                former = history.name(file)
                if former is None:
                    yield from ((name, None) for _ in left[number:])
                    return
                if former != name:
                    name, left, is_absent = former, left[number:], False
                    break
            is_absent = root not in nodes
            if not is_absent:
                newer = root
            yield name, nodes.get(root)
        else:
            return


def find_later_name(store: Store, run: Run, names: Iterable[str], folder: str) -> str | None:
    """Return the path in a run of a test file that had one of these paths in an older run.

    The newest older run with one of them decides. None: no recent run has it, or it is gone since.
    """
    history = PathHistory(store, folder, run.snapshot, {})
    former = dict.fromkeys(names)
    for older in store.find_recent_runs(before=run):
        history.step(older.snapshot)
        for name in former:
            if find_entry({older.snapshot}, name, store.load_nodes):
                later = history.newest_path(name)
                is_there = later and find_entry({run.snapshot}, later, store.load_nodes)
                return later if is_there else None
    return None


ROWS = "rows of "
"""Begins the name of a data file that was edited."""
_NAMES = {
    "dataset": ROWS,
    "prompt": "system prompt ",
    "evaluator": "judge prompt ",
    "tool": "tool ",
    "schema": "schema ",
    "file": "file ",
}
"""How edits name what a test file uses, by its kind."""
_EDIT = re.compile(
    r"(?P<place>conversation \d+, )?"
    r"(?:(?P<kind>tool|schema) (?P<name>.+?) changed(?=:|$)"
    r"|(?P<prompt>(?:system|judge) prompt) (?P<called>.+?): )",
    re.DOTALL,
)
"""Begins a difference that names what was edited."""
_UNNAMED = re.compile(r"[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class SourceChanges:
    """Whose bytes differ between two versions of a test file."""

    is_test_edited: bool
    """Whether those of the test file itself do."""
    edited: tuple[str, ...]
    """What else was edited, of what both versions use: `rows of tests/data/letters.csv`."""
    given_up: tuple[str, ...] = ()
    """What the newer version does not use any more."""

    def names_of(self, kind: str) -> list[str]:
        """Return the names of what was edited of a kind, such as `system prompt `."""
        return [name.removeprefix(kind) for name in self.edited if name.startswith(kind)]

    def uses_another(self, kind: str, name: str) -> bool:
        """Return whether a version with this name is one that the older version did not use.

        Then the test file was edited, and not what it uses.
        """
        names = self.names_of(f"{kind} ")
        is_edited = name in names or (bool(names) and bool(_UNNAMED.fullmatch(name)))
        return self.is_test_edited and not is_edited


def replaced_by(
    kind: str, name: str, changes: SourceChanges, *, is_reversed: bool = False
) -> Difference:
    """Return that a version with this name is used in the place of what was used before.

    With `is_reversed` that was used then in the place of it.
    """
    given_up = [each for each in changes.given_up if each.startswith(f"{kind} ")]
    former = given_up[0].removeprefix(f"{kind} ") if len(given_up) == 1 else None
    if not is_reversed:
        return in_place(kind, name, former)
    return Difference(f"{f'{kind} {former}' if former else f'another {kind}'} in place of {name}")


def names_use(difference: Difference) -> bool:
    """Return whether a difference names something that a test file uses as edited."""
    return _EDIT.match(difference.subject) is not None


def as_replaced(
    difference: Difference, changes: SourceChanges | None, *, is_reversed: bool = False
) -> Difference:
    """Return a difference; if it names as edited what was not used before, that it is used now."""
    match = _EDIT.match(difference.subject) if changes else None
    if match is None or changes is None:
        return difference
    kind, name = match["kind"] or match["prompt"], match["name"] or match["called"]
    if not changes.uses_another(kind, name):
        return difference
    found = replaced_by(kind, name, changes, is_reversed=is_reversed)
    return Difference(f"{match['place'] or ''}{found.subject}")


def name_edited(
    name: Name,
    changes: SourceChanges | None,
    was: tuple[str | None, ...],
    now: tuple[str | None, ...],
    kind: str = "system prompt",
) -> Name:
    """Return the names, with those that follow from whose bytes differ.

    Prompts of files that both versions use are edits of each other. The only edited one has the
    name that it had then, if no prompt is like it now.
    """
    known: dict[str, str] = {}
    both = former_prompts(was, now).items() if changes and was != now else ()
    pairs = [(new, old) for new, old in both if new and old and new != old]
    for pair in pairs:
        names = [name("prompt", id) for id in pair]
        if not any(names):
            listed = changes.names_of(f"{kind} ") if changes else []
            known |= dict.fromkeys(pair, listed[0]) if len(listed) == len(pairs) == 1 else {}
        elif None in names or not (changes and changes.uses_another(kind, names[0] or "")):
            known |= dict.fromkeys(pair, names[0] or names[1] or "")
    return lambda kind, id: known.get(id) or name(kind, id)


def compare_sources(
    was: RunSources | None, now: RunSources | None, path: str, former: str | None = None
) -> SourceChanges | None:
    """Return whose bytes differ between two versions of a test file; None if that is not known.

    `former` is its path in the older version, if it had another one.
    """
    before = was.of(former or path) if was else None
    after = now.of(path) if now else None
    if before is None or after is None:
        return None
    if not (before and after):  # one of them uses nothing, so only the test file can differ
        return SourceChanges(True, ())
    return SourceChanges(
        before[SOURCE_TEST] != after[SOURCE_TEST],
        _names(key for key, digest in after.items() if before.get(key, digest) != digest),
        _names(key for key in before if key not in after),
    )


def _names(keys: Iterable[str]) -> tuple[str, ...]:
    """Return how edits name what a test file uses."""
    parts = (key.partition(":") for key in keys)
    return tuple(f"{_NAMES[kind]}{name}" for kind, _, name in parts if kind in _NAMES)


ALL = "leave the option out to select all; 'evalstore ls cases' lists the cases"


def is_plain(selection: SelectionOptions) -> bool:
    """Return whether a selection depends neither on earlier runs nor on a sample or shard."""
    others = selection.sample is not None or selection.shard is not None or selection.changed
    return not (others or selection.last_failed or selection.retry_errors)


def take_subset(cells: StreamedCells, subset: Subset) -> StreamedCells:
    """Return the cells and skipped pairs of the cases in a subset; cases without any do not count.

    Raises `NothingSelectedError` for an empty shard.
    """
    counts, pairs = array("I"), array("I")

    def read() -> Iterator[Placed]:
        del counts[:], pairs[:]
        for file, case, count, lacking in cells.cases():
            counts.append(count)
            pairs.append(lacking)
            yield file, case

    chosen = subset.choose(read)
    if chosen and not any(chosen) and subset.shard:
        number, count = subset.shard
        raise NothingSelectedError(
            f"nothing is selected: no case falls into shard {number}/{count}",
            hint="use fewer shards than there are cases",
        )
    kept, skipped = bytearray(), list[SkippedPair]()
    left = iter(cells.skipped)
    for is_chosen, count, lacking in zip(chosen, counts, pairs, strict=True):
        kept += (b"\1" if is_chosen else b"\0") * count
        of_case = [*islice(left, lacking)]
        skipped += of_case if is_chosen else ()
    chosen_cells = cells.keep(kept)
    chosen_cells.skipped = skipped
    return chosen_cells


# --- age limits

_SECOND = 1_000_000
"""Microseconds."""


def bounds_of(
    selection: SelectionOptions, settings: Settings, *, judge_only: bool, begun: float = math.inf
) -> tuple[AgeLimit, AgeLimit]:
    """Return the age limits of answers and of judgements; raises `EvalstoreError`.

    Options of the command line limit answers, with `judge_only` judgements; the settings limit
    answers. `begun` is when the run began: its own results count even when it refreshes.
    """
    from_options = EVER
    if selection.max_age is not None:
        from_options = _bound(selection.max_age, "verdict" if judge_only else "answer")
    if selection.refresh:
        from_options = AgeLimit(begun, AT_REQUEST)
    from_settings = EVER if settings.max_age is None else _bound(settings.max_age, "answer")
    if judge_only:
        return from_settings, from_options
    return (from_settings if from_options == EVER else from_options), EVER


def _bound(age: str, subject: str) -> AgeLimit:
    seconds = read_age(age)
    if seconds is None:
        raise EvalstoreError(f"'--max-age {age}' is not valid", hint=AGE_HINT)
    return AgeLimit(now() - seconds * _SECOND, f"{subject} is older than {age.strip()}")


# --- changed


class ChangedCases:
    """Finds the cases that are not in the snapshot of the newest run."""

    def __init__(self, project: Project) -> None:
        self._known: dict[str, ValueSet] = {}
        """By file, what its cases were in the run."""
        self._same: set[str] = set()
        """The files that are as they were."""
        self._moved: ValueSet | None = None
        """The cases of files that are gone, which any file may have got; None without a run."""
        self._was_asked = self._is_any = False
        if runs := project.store.find_runs(limit=1):
            self._read(project, runs[0].snapshot)

    def _read(self, project: Project, snapshot: str) -> None:
        """Read the cases of a snapshot."""
        nodes = project.reading.nodes
        entries = read_tree(snapshot, project.store.load_nodes)
        files = project.store.load_case_files(list(set(entries.values())))
        pairs = pair_with_workspace(project, entries, files)
        gone = [files[id] for path, id in entries.items() if path not in nodes]
        self._moved = _contents(gone)
        self._same = {path for path, old in pairs.items() if entries[old] == nodes[path]}
        self._known = {
            path: _contents([files[entries[old]]])
            for path, old in pairs.items()
            if path not in self._same
        }

    def __call__(self, path: str, case: Case) -> bool:
        """Return whether a case of a file has changed."""
        self._was_asked = True
        is_changed = self._moved is None or not (
            path in self._same
            or (content := _content(case)) in self._moved
            or (path in self._known and content in self._known[path])
        )
        self._is_any = self._is_any or is_changed
        return is_changed

    def require_any(self) -> None:
        """Raise `NothingSelectedError` when it was asked about cases, none of which has changed."""
        if self._was_asked and not self._is_any:
            raise NothingSelectedError(
                "nothing is selected: nothing has changed since the newest run", hint=ALL
            )


_Content = tuple[object, ...]


def _content(case: Case) -> _Content:
    return case.tests, case.prompts, case.evaluation


def _contents(files: Iterable[CaseFile]) -> ValueSet:
    contents = ValueSet()
    for file in files:
        contents.update(map(_content, file.cases))
    return contents
