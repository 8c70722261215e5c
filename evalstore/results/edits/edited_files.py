"""Finds what was edited between each run and the runs before it: test files and what they use."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from evalstore.comparison.version_diff import Difference
from evalstore.planning.options import is_partial
from evalstore.planning.reasons.renames import pair_in_store
from evalstore.planning.reasons.source_changes import SourceChanges, compare_sources
from evalstore.planning.reasons.version_reader import VersionReader
from evalstore.results.edits.edited_sources import EditedSources, Versions
from evalstore.results.prompt_names import PromptNames, prompts_of
from evalstore.store.run_sources import SourcesReader
from evalstore.store.trees.case_chunks import is_tree
from evalstore.store.trees.case_finder import CaseFinder
from evalstore.store.trees.path_trees import find_entry, read_tree, read_trees

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from evalstore.core.runs import Run
    from evalstore.core.values import Case, CaseFile
    from evalstore.store import Store
    from evalstore.workspace.folder import WorkspaceFolder

_PROMPT = "system prompt "
_LISTED = 2
"""The most paths in the text of an edit."""
_MOST_READ = 10
"""The most edited files of a run that are read; of more it is said whose bytes differ."""
_TREES_AT_ONCE = 50
"""Snapshots that are read together."""
_FEW = 20
"""The most files that are looked up one by one in the results of a run."""


class _Leaves(NamedTuple):
    """The leaves of a test file: of the last run that judged it, and of the newest one."""

    was: str | None
    now: str | None
    before: Run
    """The run that has the first one."""


class _Replaced(NamedTuple):
    """A system prompt that stands in the place of another one."""

    former: str
    """The id of the other one."""
    number: int
    """The number of the place in its case."""
    files: list[str]


@dataclass
class _Edits:
    """The edits that a run was the first to judge."""

    renamed: Mapping[str, str] = field(default_factory=dict)
    """The former paths of files by their new ones."""
    new: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    pairs: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The former and the new leaves of files, by path, until it is known what was edited."""
    changes: Mapping[str, SourceChanges | None] = field(default_factory=dict)
    """Whose bytes differ, for the same files."""
    edited: list[str] = field(default_factory=list)
    used: dict[str, None] = field(default_factory=dict)
    """What was edited of what test files use: `file files/terms.txt`."""
    unread: list[str] = field(default_factory=list)
    """Files of whose cases it is not known what they differ in."""
    prompts: dict[str, _Replaced] = field(default_factory=dict)
    """System prompts in the places of others."""

    def describe(self, names: PromptNames) -> Iterator[Difference]:
        """Yield a line for each kind of edit."""
        for path, former in sorted(self.renamed.items()):
            yield Difference(f"{former} renamed to {path}")
        yield from _list(self.new, "new")
        yield from _list(self.removed, "removed")
        named: set[str] = set()
        edited = {*self.edited}
        for id, replaced in self.prompts.items():
            name = names("prompt", id) or ""
            is_same = (names("prompt", replaced.former) or name) == name
            for file in replaced.files:
                changes = self.changes.get(file)
                prompts = changes.names_of(_PROMPT) if changes else [name] if is_same else []
                if is_same and name in prompts:
                    named.add(name)
                elif prompts and changes and not changes.is_test_edited:
                    named.update(prompts)
                elif changes and not changes.is_test_edited:
                    edited.add(f"cases of {file}")
                else:  # another prompt is used
                    edited.add(file)
        known = sorted(named - {""})
        yield from _list(known, "changed", _PROMPT if len(known) == 1 else "system prompts ")
        if "" in named:
            yield Difference(f"{'another' if known else 'a'} system prompt changed")
        yield from _list(sorted(self.used), "changed")
        yield from _list(sorted(edited), "changed")
        yield from _list(self.unread, "changed", "cases of ")

    def name_unread(self) -> None:
        """Name what was edited by whose bytes differ, without reading the files."""
        for path in self.pairs:
            changes = self.changes[path]
            names = [path] if changes and changes.is_test_edited else []
            self.edited += names
            self.used |= dict.fromkeys(changes.edited if changes else ())
            if not changes or not (names or changes.edited):
                self.unread.append(path)
        self.pairs = {}


class FileHistory:
    """Follows test files and system prompts from older to newer runs.

    An edit belongs to the first run with results of the edited file: a run of other files has it
    in its snapshot, too, but does not judge it. A step costs what differs between two snapshots.
    """

    def __init__(self, store: Store, folder: str) -> None:
        """`folder` is that of the test files."""
        self._store, self._folder = store, folder
        self._sources = SourcesReader(store)
        self._unjudged: dict[str, _Leaves] = {}
        """The files that were edited since they were judged, by path."""

    def step(self, before: Run, run: Run, was: Mapping[str, str], now: Mapping[str, str]) -> _Edits:
        """Return the edits that a run was the first to judge.

        `was` and `now` are the leaves of the snapshots of the run before and of this one, by path;
        those that both have may be left out.
        """
        load = self._store.load_nodes
        for path in was.keys() | now.keys():
            known = self._unjudged.get(path) or _Leaves(was.get(path), None, before)
            self._unjudged[path] = known._replace(now=now.get(path))
        gone = {path: each.was for path, each in self._unjudged.items() if not each.now}
        judged = self._unjudged
        if is_partial(run):
            present = [path for path, each in self._unjudged.items() if each.now]
            if len(present) > _FEW:
                found = read_tree(run.results, load)
                present = [path for path in present if path in found]
            else:
                present = [path for path in present if find_entry([run.results], path, load)]
            judged = {path: self._unjudged[path] for path in present}
        edits = self._sort(
            {path: each for path, each in judged.items() if each.was != each.now},
            {path: was for path, was in gone.items() if was},
        )
        find = self._sources.find
        edits.changes = {
            path: compare_sources(find(judged[path].before), find(run), path)
            for path in edits.pairs
        }
        if is_partial(run):  # a file that is gone may have been renamed
            edits.removed.clear()
        for path in [*judged, *edits.renamed.values()]:
            self._unjudged.pop(path, None)
        return edits

    def _sort(self, edited: Mapping[str, _Leaves], gone: Mapping[str, str]) -> _Edits:
        """Sort edited files, and those that are gone, by what was edited."""
        new = {path: each.now for path, each in edited.items() if each.now and not each.was}
        renamed = pair_in_store(self._store, self._folder, gone, new) if gone and new else {}
        pairs = {
            path: (each.was, each.now)
            for path, each in sorted(edited.items())
            if each.was and each.now
        }
        removed = sorted(gone.keys() - set(renamed.values()))
        return _Edits(renamed, sorted(new.keys() - renamed.keys()), removed, pairs)


def _find_sources(
    store: Store, edits: Collection[_Edits], sources: EditedSources, names: PromptNames
) -> None:
    """Find out what was edited: the files, system prompts, or what else the files use."""
    for each in edits:
        if len(each.pairs) > _MOST_READ:
            each.name_unread()
    files = store.load_case_files(
        {leaf for each in edits for pair in each.pairs.values() for leaf in pair}
    )
    others: dict[tuple[int, str], Versions] = {}
    """The files in which more was edited than system prompts, by the number of their edits."""
    for number, each in enumerate(edits):
        for path, (was, now) in each.pairs.items():
            before, after = files[was], files[now]
            is_long = is_tree(before) or is_tree(after)
            replaced, is_all = (set(), False) if is_long else find_replaced_prompts(before, after)
            if not is_all:
                others[number, path] = Versions(path, before, after, each.changes[path])
            for place, former, id in replaced:
                each.prompts.setdefault(id, _Replaced(former, place, [])).files.append(path)
    if others:
        pairs = ((each.was, each.now) for each in others.values())
        short = (file for pair in pairs for file in pair if not is_tree(file))
        names.expect([*dict.fromkeys(prompts_of(short))])
    found = sources.find(others)
    for number, each in enumerate(edits):
        for path in each.pairs:
            edited = found.get((number, path), ())
            each.edited += [name for name in edited if name == path]
            used = (name for name in edited if name != path and not name.startswith(_PROMPT))
            each.used |= dict.fromkeys(used)


def find_file_edits(
    store: Store,
    workspace: WorkspaceFolder,
    names: PromptNames,
    runs: Sequence[Run],
    before: Iterable[Run],
) -> list[tuple[Difference, ...]]:
    """Return the edits that each of these runs was the first to judge; runs are newest first.

    `before` are runs before them, newest first. Runs of imported verdicts have no edits.
    """
    history = FileHistory(store, workspace.settings.paths["tests"])
    sources = EditedSources(CaseFinder(store), VersionReader(store), names)
    edits: dict[str, _Edits] = {}
    every = [run for run in reversed([*runs, *before]) if run.origin is None]
    for start in range(0, len(every) - 1, _TREES_AT_ONCE):
        pairs = [*pairwise(every[start : start + _TREES_AT_ONCE + 1])]
        trees = [
            (one.snapshot, other.snapshot) for pair in pairs for one, other in (pair, pair[::-1])
        ]
        leaves = iter(read_trees(trees, store.load_nodes))
        found = {
            run.id: history.step(before_it, run, next(leaves), next(leaves))
            for before_it, run in pairs
        }
        _find_sources(store, found.values(), sources, names)
        edits |= found
    listed = [edits.get(run.id, _Edits()) for run in runs]
    names.expect(
        (version, replaced.number)
        for each in listed
        for id, replaced in each.prompts.items()
        for version in (id, replaced.former)
    )
    return [tuple(each.describe(names)) for each in listed]


def are_edited_prompts(names: Iterable[str], changes: SourceChanges | None) -> bool:
    """Return whether system prompts were edited, as far as it is known whose bytes differ.

    If not, the test file has another one in the place of each.
    """
    return changes is None or {*names} <= {*changes.names_of(_PROMPT)}


def find_replaced_prompts(
    before: CaseFile, after: CaseFile
) -> tuple[set[tuple[int, str, str]], bool]:
    """Return the system prompts that were replaced, and whether the file differs in nothing else.

    Of each its number, its former and its new id.
    """
    replaced = _find_replaced(before, after)
    is_all = bool(replaced) and _without_prompts(before) == _without_prompts(after)
    return replaced, is_all


def _find_replaced(before: CaseFile, after: CaseFile) -> set[tuple[int, str, str]]:
    """Return the number, the former and the new id of each system prompt that was replaced.

    Empty if prompts were added, removed or exchanged, which is an edit of the test file.
    """
    replaced: set[tuple[int, str, str]] = set()
    pairs = zip(before.cases, after.cases, strict=False)
    for was, now in {(was.prompts, now.prompts) for was, now in pairs}:
        if len(was) != len(now):
            return set()
        former_ones, present = frozenset(was), frozenset(now)
        for number, (former, id) in enumerate(zip(was, now, strict=True)):
            if former != id:
                if not former or not id or former in present or id in former_ones:
                    return set()
                replaced.add((number, former, id))
    return replaced


def _without_prompts(file: CaseFile) -> list[Case]:
    return [case._replace(prompts=()) for case in file.cases]


def _list(names: Sequence[str], change: str, start: str = "") -> Iterator[Difference]:
    """Yield the one line about these names, such as `a.md, b.md and 3 more changed`."""
    if names:
        shown = names if len(names) <= _LISTED + 1 else names[:_LISTED]
        more = len(names) - len(shown)
        text = f"{', '.join(shown)}{f' and {more:,} more' if more else ''}"
        yield Difference(f"{start}{text} {change}")
