"""Digests of test files and of what they use, by which a run tells later what was edited since."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any

from evalstore.core import hashing
from evalstore.core.runs import SOURCE_TEST, RunSources
from evalstore.files.datasets import DatasetSpec, resolve_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalstore.workspace.folder import WorkspaceFolder
    from evalstore.workspace.reader import Reading

MOST_DIGESTS = 1_000
"""The most digests of a run: about 45 kB."""
_DIGITS = 12
"""Two versions of one file are compared, never those of different ones, so that a few suffice."""
_KINDS = ("dataset", "prompt", "evaluator", "tool", "schema", "file")
"""The kinds of dependencies that are files."""


def read_sources(workspace: WorkspaceFolder, reading: Reading) -> RunSources:
    """Return the digests of the test files that use other files, and of what they use.

    Where they are too many, those of test files with a dataset come first.
    """
    tests: dict[str, Mapping[str, str]] = {}
    left = MOST_DIGESTS
    for path in _paths(reading):
        used = [*_iterate_used(reading.depends[path])]
        left -= 1 + len(used)
        if left < 0:
            return RunSources(tests, is_cut=True)
        if used:
            tests[path] = {
                SOURCE_TEST: _shorten(reading.digests[path]),
                **{_key(workspace, path, kind, name): digest for kind, name, digest in used},
            }
    return RunSources(tests, is_cut=not reading.nodes.keys() <= reading.digests.keys())


def _paths(reading: Reading) -> Iterator[str]:
    """Yield the test files that depend on something, those with a dataset first."""
    known = [path for path in reading.nodes if reading.depends.get(path)]
    of_data = [
        path for path in known if any(name.startswith("dataset:") for name in reading.depends[path])
    ]
    yield from dict.fromkeys([*of_data, *known])


def _iterate_used(depends: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the kind, the name and the digest of each file that a test file uses."""
    for dependency, ids in depends.items():
        kind, _, name = dependency.partition(":")
        if kind in _KINDS and ids is not None:
            joined = ids if isinstance(ids, str) else hashing.hash_bytes("".join(ids).encode())
            yield kind, name, _shorten(joined)


def _shorten(digest: str) -> str:
    return digest[:_DIGITS]


def _key(workspace: WorkspaceFolder, test: str, kind: str, name: str) -> str:
    """Return the name of what a test file uses.

    That of a data file is its path in the workspace, or as it is written where it lies outside.
    """
    if kind != "dataset":
        return f"{kind}:{name}"
    named = resolve_path(DatasetSpec(name), workspace.settings.dataset_roots)
    base = "" if named != name else posixpath.dirname(test)
    path = posixpath.normpath(posixpath.join(base, named))
    is_outside = path.startswith(("../", "/")) or ":" in path
    return f"dataset:{name if is_outside else path}"
