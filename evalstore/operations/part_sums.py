"""Sums of the results of the parts of long files by group, and a cache of them.

The sums of a part follow from its results alone, which never change, so `stats` reads the results
of a part once. The cache is a file beside the index, for this machine only, and can be deleted.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from evalstore import __version__
from evalstore.files.digest_file import DigestFile, read_digest_file

if TYPE_CHECKING:
    from array import array
    from pathlib import Path

    from evalstore.files.access import Boundary

CACHE = "sums"
"""The name of its file."""
_FORMAT = [1, __version__]
"""Raise the number when the sums, or what they follow from, change."""
_MOST_GROUPS = 100
"""The most groups of a part that are cached."""

Key = tuple[str | None, ...]
By = tuple[str, ...]


class PartSums(NamedTuple):
    """The sums of a part, by grouping and group."""

    sessions: array[int]
    """The first digits of the ids of the answers, each once."""
    groups: dict[By, dict[Key, list[Any]]]
    """What `GroupTotals.sums` returns; the grouping by nothing has the totals."""


@dataclass
class SumsCache:
    """The cached sums by the node of the results of the part."""

    path: Path
    rule: str
    """The rule by which several votes make a verdict."""
    parts: dict[str, PartSums] = field(default_factory=dict)
    changed: bool = False

    def put(self, node: str, sums: PartSums) -> None:
        """Add the sums of a part, unless they have too many groups; keep those that are known."""
        if any(len(groups) > _MOST_GROUPS for groups in sums.groups.values()):
            return
        known = self.parts.get(node)
        groups = {**known.groups, **sums.groups} if known else sums.groups
        self.parts[node] = PartSums(sums.sessions, groups)
        self.changed = True

    def write(self, kept: set[str]) -> None:
        """Write the sums of these parts, if some are new."""
        if not self.changed:
            return
        parts = [(node, sums) for node, sums in self.parts.items() if node in kept]
        header = {
            "format": _FORMAT,
            "rule": self.rule,
            "parts": [
                [
                    node,
                    [
                        [list(by), [[list(key), sums] for key, sums in groups.items()]]
                        for by, groups in part.groups.items()
                    ],
                ]
                for node, part in parts
            ],
        }
        digests = [part.sessions for _, part in parts]
        with suppress(OSError):
            DigestFile(json.dumps(header), digests).write(self.path)


def read_sums(path: Path, boundary: Boundary, rule: str) -> SumsCache:
    """Return the cache at a path; empty when it is missing, damaged or for another rule."""
    cache = SumsCache(path, rule)
    try:
        file = read_digest_file(path, boundary)
        header = json.loads(file.header)
        if header["format"] == _FORMAT and header["rule"] == rule:
            cache.parts = {
                node: PartSums(
                    sessions,
                    {tuple(by): {tuple(key): sums for key, sums in groups} for by, groups in known},
                )
                for (node, known), sessions in zip(header["parts"], file.digests, strict=True)
            }
    except (ValueError, KeyError, TypeError, RecursionError):
        return SumsCache(path, rule)
    return cache
