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
    from collections.abc import Sequence
    from pathlib import Path

    from evalstore.files.access import Boundary

CACHE = "sums"
"""The name of its file."""
_FORMAT = [2, __version__]
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
    """What `GroupTotals.sums` returns, by groupings as `plain_grouping` returns them.

    The grouping by nothing has the totals.
    """

    def has(self, by: By) -> bool:
        """Return whether it has the groups of a grouping."""
        return plain_grouping(by) in self.groups

    def of(self, by: By) -> dict[Key, list[Any]]:
        """Return the groups of a grouping, with an empty text as the path of the file."""
        plain = plain_grouping(by)
        if plain == by:
            return self.groups[by]
        groups: dict[Key, list[Any]] = {}
        for key, sums in self.groups[plain].items():
            values = {"file": "", **dict(zip(plain, key, strict=True))}
            groups[tuple(values[name] for name in by)] = sums
        return groups


def plain_grouping(by: By) -> By:
    """Return the grouping whose sums are those of another: sorted, and not by file.

    A part is in one file, and may be in others. A grouping that repeats a dimension is its own.
    """
    return tuple(sorted({*by} - {"file"})) if len({*by}) == len(by) else by


def keys_with(
    by: By, model: str, prompt: str | None, tags: tuple[str, ...], file: str = ""
) -> Sequence[Key]:
    """Return the groups of a result with a candidate, a prompt and the tags of a case."""
    keys: list[Key] = [()]
    for name in by:
        parts: Sequence[str | None]
        match name:
            case "model":
                parts = (model,)
            case "prompt":
                parts = (prompt,)
            case "tag":
                parts = tags or (None,)
            case _:
                parts = (file,)
        keys = [(*key, part) for key in keys for part in parts]
    return keys


def without_file(by: By, key: Key) -> Key:
    """Return the key of a group without the path of the file: the same part may be in others."""
    return tuple("" if name == "file" else part for name, part in zip(by, key, strict=True))


@dataclass
class SumsCache:
    """The cached sums by the node of the results of the part."""

    path: Path
    rule: str
    """The rule by which several votes make a verdict."""
    parts: dict[str, PartSums] = field(default_factory=dict)
    changed: bool = False

    def put(self, node: str, sums: PartSums) -> None:
        """Add the sums of a part; keep those that are known.

        Those with very many groups are not written.
        """
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
                        if len(groups) <= _MOST_GROUPS
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
