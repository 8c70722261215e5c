"""Finds the paths that test files had in earlier runs, and follows them through their snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from evalstore.comparison.file_pairs import pair_alike, pair_files
from evalstore.core.runs import Run
from evalstore.core.values import CaseFile
from evalstore.store import Store
from evalstore.store.runs import RUNS_SEARCHED
from evalstore.store.trees.case_chunks import find_same, is_tree
from evalstore.store.trees.path_trees import find_entry, read_tree, read_trees
from evalstore.workspace.file_ids import default_id

if TYPE_CHECKING:
    from evalstore.planning.project import Project


def known_ids(
    files: Mapping[str, CaseFile], folder: str, leaves: Mapping[str, str]
) -> dict[str, str]:
    """Return the ids of these test files by path; `files` are all leaves by id."""
    return {path: files[leaf].id or default_id(path, folder) for path, leaf in leaves.items()}


def stored_ids(
    store: Store, folder: str, files: dict[str, CaseFile], leaves: Mapping[str, str]
) -> dict[str, str]:
    """Return the ids of the test files of a snapshot by path; leaves are added to `files`."""
    files |= store.load_case_files(set(leaves.values()) - files.keys())
    return known_ids(files, folder, leaves)


def same_leaf(
    was: Mapping[str, CaseFile], now: Mapping[str, CaseFile], leaf: str, others: Iterable[str]
) -> str | None:
    """Return the first of other leaves with the same cases as a leaf; None if there is none."""
    if not is_tree(now[leaf]):
        return None
    return find_same(leaf, now[leaf], {id: was[id] for id in others if is_tree(was[id])})


def pair_with_workspace(
    project: Project, was: Mapping[str, str], files: dict[str, CaseFile] | None = None
) -> dict[str, str]:
    """Return the path that each test file of the workspace had in a snapshot with these entries.

    Leaves of the snapshot that are read are put into `files`.
    """
    folder, nodes = project.settings.paths["tests"], project.reading.nodes
    read = {} if files is None else files
    fresh = {leaf: project.reading.files[path] for path, leaf in nodes.items()}
    return pair_files(
        was,
        nodes,
        partial(stored_ids, project.store, folder, read),
        partial(known_ids, fresh, folder),
        partial(same_leaf, read, fresh),
        partial(pair_alike, read, fresh),
    )


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
    read = {} if files is None else files
    ids = partial(stored_ids, store, folder, read)
    same, alike = partial(same_leaf, read, read), partial(pair_alike, read, read)
    return pair_files(was, now, ids, ids, same, alike)


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
        was, now = self._read_changes(snapshot)
        self._newer = snapshot
        if only is not None and not self._concerns(only, was, now):
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

    def _concerns(self, path: str, was: Mapping[str, str], now: Mapping[str, str]) -> bool:
        """Return whether the path of a file may differ between these entries of two snapshots.

        It may where the file is gone or changed, and where its content is found after a gap.
        """
        name = self.name(path)
        return name in was or name in now or self._gaps.get(name or "") in was.values()

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

    def _read_changes(self, snapshot: str) -> tuple[dict[str, str], dict[str, str]]:
        """Return the entries of a snapshot and of the newer one that the other lacks."""
        load, newer = self._store.load_nodes, self._newer
        if isinstance(newer, str):
            was, now = read_trees([(snapshot, newer), (newer, snapshot)], load)
        else:
            was, now = read_tree(snapshot, load), dict(newer)
        equal = was.items() & now.items()
        return dict(was.items() - equal), dict(now.items() - equal)


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
