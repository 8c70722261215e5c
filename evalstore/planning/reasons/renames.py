"""Finds the paths that test files had in earlier runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from evalstore.comparison.file_pairs import pair_alike, pair_files
from evalstore.store.trees.case_chunks import find_same, is_tree
from evalstore.store.trees.path_trees import find_entry, read_tree
from evalstore.workspace.file_ids import default_id

if TYPE_CHECKING:
    from evalstore.core.values import CaseFile
    from evalstore.planning.project import Project
    from evalstore.store import Store


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
