"""Finds the test files and system prompts that differ between each run and the runs before it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from evalstore.planning.options import is_partial
from evalstore.planning.renames import pair_in_store
from evalstore.reports.version_diff import Difference
from evalstore.store.case_chunks import is_tree
from evalstore.store.path_trees import find_entry, read_trees

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evalstore.operations.prompt_names import PromptNames
    from evalstore.runs import Run
    from evalstore.store import Store
    from evalstore.values import Case, CaseFile

_LISTED = 2
"""The most paths in the text of an edit."""
_MOST_READ = 20
"""The most edited files of a run that are read to find out whether only a prompt was edited."""


class _Leaves(NamedTuple):
    """The leaves of a test file: of the last run that judged it, and of the newest one."""

    was: str | None
    now: str | None


@dataclass
class _Edits:
    """The edits that a run was the first to judge."""

    renamed: Mapping[str, str] = field(default_factory=dict)
    """The former paths of files by their new ones."""
    new: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)
    prompts: dict[str, int] = field(default_factory=dict)
    """New versions of system prompts, each with its number in its case."""

    def describe(self, names: PromptNames) -> Iterator[Difference]:
        """Yield a line for each kind of edit."""
        for path, former in sorted(self.renamed.items()):
            yield Difference(f"{former} renamed to {path}")
        yield from _list(self.new, "new")
        yield from _list(self.removed, "removed")
        named = {names("prompt", id) or "" for id in self.prompts}
        yield from _list(sorted(named - {""}), "edited", "system prompt ")
        if "" in named:
            yield Difference(
                "another system prompt edited" if named - {""} else "a system prompt edited"
            )
        yield from _list(self.edited, "edited")


class FileHistory:
    """Follows test files and system prompts from older to newer runs.

    An edit belongs to the first run with results of the edited file: a run of other files has it
    in its snapshot, too, but does not judge it. A step costs what differs between two snapshots.
    """

    def __init__(self, store: Store, folder: str) -> None:
        """`folder` is that of the test files."""
        self._store, self._folder = store, folder
        self._last: Run | None = None
        self._unjudged: dict[str, _Leaves] = {}
        """The files that were edited since they were judged, by path."""

    def step(self, run: Run) -> _Edits:
        """Return the edits that a run was the first to judge; none for the first run."""
        last, self._last = self._last, run
        if last is None:
            return _Edits()
        load = self._store.load_nodes
        trees = [(last.snapshot, run.snapshot), (run.snapshot, last.snapshot)]
        was, now = read_trees(trees, load)
        for path in was.keys() | now.keys():
            before = self._unjudged[path].was if path in self._unjudged else was.get(path)
            self._unjudged[path] = _Leaves(before, now.get(path))
        judged = {
            path: leaves
            for path, leaves in self._unjudged.items()
            if leaves.now is None or not is_partial(run) or find_entry([run.results], path, load)
        }
        for path in judged:
            del self._unjudged[path]
        return self._sort({path: each for path, each in judged.items() if each.was != each.now})

    def _sort(self, edited: Mapping[str, _Leaves]) -> _Edits:
        """Sort edited files by what was edited."""
        gone = {path: each.was for path, each in edited.items() if each.was and not each.now}
        new = {path: each.now for path, each in edited.items() if each.now and not each.was}
        renamed = pair_in_store(self._store, self._folder, gone, new) if gone and new else {}
        pairs = {
            path: (each.was, each.now)
            for path, each in sorted(edited.items())
            if each.was and each.now
        }
        prompts, others = self._find_prompts(pairs)
        return _Edits(
            renamed,
            sorted(new.keys() - renamed.keys()),
            sorted(gone.keys() - set(renamed.values())),
            others,
            prompts,
        )

    def _find_prompts(
        self, pairs: Mapping[str, tuple[str, str]]
    ) -> tuple[dict[str, int], list[str]]:
        """Return new versions of system prompts, and the files in which more was edited."""
        if len(pairs) > _MOST_READ:
            return {}, list(pairs)
        files = self._store.load_case_files({leaf for pair in pairs.values() for leaf in pair})
        prompts: dict[str, int] = {}
        others: list[str] = []
        for path, (was, now) in pairs.items():
            before, after = files[was], files[now]
            if is_tree(before) or is_tree(after):
                others.append(path)
                continue
            added = dict(_prompts_of(after).items() - _prompts_of(before).items())
            prompts |= added
            if not added or _without_prompts(before) != _without_prompts(after):
                others.append(path)
        return prompts, others


def find_file_edits(
    store: Store, folder: str, names: PromptNames, runs: Sequence[Run], before: Iterable[Run]
) -> list[tuple[Difference, ...]]:
    """Return the edits that each of these runs was the first to judge; runs are newest first.

    `before` are runs before them, newest first. Runs of imported verdicts have no edits. `folder`
    is that of the test files.
    """
    history = FileHistory(store, folder)
    edits = {run.id: history.step(run) for run in reversed([*runs, *before]) if run.origin is None}
    listed = [edits.get(run.id, _Edits()) for run in runs]
    names.expect([(id, number) for each in listed for id, number in each.prompts.items()])
    return [tuple(each.describe(names)) for each in listed]


def _prompts_of(file: CaseFile) -> dict[str, int]:
    return {id: number for case in file.cases for number, id in enumerate(case.prompts) if id}


def _without_prompts(file: CaseFile) -> list[Case]:
    return [replace(case, prompts=()) for case in file.cases]


def _list(names: Sequence[str], change: str, start: str = "") -> Iterator[Difference]:
    """Yield the one line about these names, such as `a.md, b.md and 3 more edited`."""
    if names:
        shown = names if len(names) <= _LISTED + 1 else names[:_LISTED]
        more = len(names) - len(shown)
        text = f"{', '.join(shown)}{f' and {more:,} more' if more else ''}"
        yield Difference(f"{start}{text} {change}")
