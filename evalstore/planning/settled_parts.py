"""Finds the parts of very long test files for which a run has nothing to do, without planning them.

They are those that the last run left settled, as long as nothing that their plan follows from has
changed: their cases, the settings and models, and the answers and judgements of their questions.
They are kept in a file beside the index, which is for this machine only, and can be deleted.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalstore import __version__
from evalstore.core import hashing
from evalstore.core.hashing import canonical_json, count_distinct, digest_of, find_repeated
from evalstore.core.values import CaseFile, Verdict
from evalstore.files.access import Boundary
from evalstore.planning.options import SelectionOptions
from evalstore.store.driver import Extent
from evalstore.store.trees.tree_nodes import StoredCases
from evalstore.workspace.index import NumberLists, read_lists

if TYPE_CHECKING:
    from evalstore.planning.cells import Candidate, Judge
    from evalstore.planning.project import Project


CACHE = "settled"
"""The name of its file."""
_FORMAT = [6, __version__]
"""Raise the number when the fields of a part, or what plans and verdicts follow from, change."""


@dataclass(slots=True)
class SettledPart:
    """A part of a test file whose cases have all answers and judgements, in sums."""

    context: str
    """The digest of all but the cases that its plan and its verdicts follow from."""
    node: str
    """The node of its cases."""
    results: str = ""
    """The node of its results."""
    cells: int = 0
    cases: int = 0
    """How many of its cases have a cell."""
    answers: int = 0
    """How many answers count, each once."""
    saved: float = 0.0
    """The cost of these answers and their judgements, in USD."""
    words: list[tuple[str, Verdict | None, int]] = field(default_factory=list)
    """Candidate, verdict, how many cells; the candidates in the order of their first cells."""
    clusters: list[tuple[int, int, int, int]] = field(default_factory=list)
    """How many verdicts, passes and unresolved ones a case has, and how many cases have these."""
    prompts: list[tuple[str | None, int]] = field(default_factory=list)
    """The system prompts, with their numbers within the cases."""
    attempts: list[tuple[str, int, str, list[Verdict]]] = field(default_factory=list)
    """Row, number of the prompt, candidate, and verdicts of attempts that do not all pass."""
    questions: array[int] = field(default_factory=lambda: array("Q"))
    """The first digits of the ids of the questions, each once."""

    @property
    def key(self) -> tuple[str, str]:
        """Return what identifies the part."""
        return self.context, self.node


_FIELDS = tuple(name for name in SettledPart.__dataclass_fields__ if name != "questions")


@dataclass(slots=True)
class SettledCache:
    """The settled parts, and how far the store reached when they were."""

    identity: Sequence[Any]
    """Names the file of the store, as `Database.file` does; empty for one on a server."""
    extent: Extent
    parts: dict[tuple[str, str], SettledPart]

    def write(self, path: Path) -> None:
        """Write the cache; a read-only workspace is not an error."""
        parts = self.parts.values()
        header = {
            "format": _FORMAT,
            "store": list(self.identity),
            "extent": list(self.extent),
            "parts": [[getattr(part, name) for name in _FIELDS] for part in parts],
        }
        NumberLists(header, [part.questions for part in parts]).write(path)


def read_settled_cache(path: Path, boundary: Boundary) -> SettledCache | None:
    """Return the cache at a path; None when it is missing, damaged or of another version."""
    try:
        header, lists = read_lists(path, boundary)
        if header["format"] != _FORMAT:
            return None
        parts = [
            SettledPart(**dict(zip(_FIELDS, values, strict=True)), questions=questions)
            for values, questions in zip(header["parts"], lists, strict=True)
        ]
        extent = tuple(header["extent"])
        return SettledCache(header["store"], extent, {part.key: part for part in parts})
    except (ValueError, KeyError, TypeError):
        return None


# --- finds those that are settled still


_NEEDS = ("tools", "structured", "image", "pdf", "file", "audio")
"""All capabilities that a case can need."""
_MOST_NEW = 100_000
"""The most rows that the store may have got; with more, everything is planned."""
_NOT_OF_PLANS = ("lacks", "reachable", "trust_needed")
"""Fields of candidates and judges that only matter where something is missing."""


@dataclass(slots=True)
class SettledParts:
    """The settled parts of test files, by path and by the number of their first case."""

    by_file: dict[str, dict[int, SettledPart]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.by_file.values()))

    def __iter__(self) -> Iterator[SettledPart]:
        for parts in self.by_file.values():
            yield from parts.values()

    @property
    def answers(self) -> int:
        """Return how many answers count in them."""
        return sum(part.answers for part in self)

    @property
    def models(self) -> set[str]:
        """Return the candidates of their cells."""
        return {model for part in self for model, _, _ in part.words}

    def of(self, path: str) -> dict[int, SettledPart]:
        """Return those of a file."""
        return self.by_file.get(path, {})

    def only(self, keys: Collection[tuple[str, int]]) -> SettledParts:
        """Return those of them at these places."""
        kept = SettledParts()
        for path, first in keys:
            kept.by_file.setdefault(path, {})[first] = self.by_file[path][first]
        return kept

    def places(self) -> Iterator[tuple[str, int, SettledPart]]:
        """Yield each with its file and the number of its first case, in their order."""
        for path in sorted(self.by_file):
            for first in sorted(self.by_file[path]):
                yield path, first, self.by_file[path][first]

    def without(self, questions: Set[int]) -> SettledParts:
        """Return those that ask none of these questions, which are digests."""
        if not questions:
            return self
        return self.only(
            [
                (path, first)
                for path, first, part in self.places()
                if questions.isdisjoint(part.questions)
            ]
        )


def can_settle(project: Project, selection: SelectionOptions) -> bool:
    """Return whether parts of files are settled for a command.

    Its plan is that of all cases, whatever the time is.
    """
    return selection == SelectionOptions() and project.settings.max_age is None


def long_files(project: Project) -> dict[str, CaseFile]:
    """Return the test files whose cases are not all in memory."""
    files = sorted(project.reading.files.items())
    return {path: file for path, file in files if isinstance(file.cases, StoredCases)}


def find_settled(project: Project, selection: SelectionOptions) -> SettledParts:
    """Return the settled parts of the workspace for a command; none for most selections.

    A question of theirs is asked in no other settled part.
    """
    if not can_settle(project, selection) or not (files := long_files(project)):
        return SettledParts()
    workspace = project.workspace
    cache = read_settled_cache(workspace.private / CACHE, workspace.boundary)
    if cache is None or list(cache.identity) != list(project.store.file or ()):
        return SettledParts()
    new = project.store.find_new_questions(cache.extent, _MOST_NEW)
    if new is None:
        return SettledParts()
    found = SettledParts()
    contexts = context_digests(project, selection, files)
    for path, file in files.items():
        assert isinstance(file.cases, StoredCases)
        for part in file.cases.parts():
            known = cache.parts.get((contexts[path], part.node))
            if known:
                found.by_file.setdefault(path, {})[part.first] = known
    found = found.without({digest_of(id) for id in new})
    digests = [part.questions for part in found]
    if count_distinct(chain.from_iterable(digests)) != sum(map(len, digests)):
        found = found.without(find_repeated(chain.from_iterable(digests)))
    stored = project.store.load_lengths("results", {part.results for part in found})
    return found.only(
        [(path, first) for path, first, part in found.places() if part.results in stored]
    )


def context_digests(
    project: Project, selection: SelectionOptions, files: Mapping[str, CaseFile]
) -> dict[str, str]:
    """Return for each file the digest of all but its cases that plans and verdicts follow from."""
    settings = project.settings
    shared = [
        [[_describe(each), each.lacks(_NEEDS)] for each in project.candidates(selection)],
        [_describe(each) for each in project.judges(selection)],
        [settings.required_tags1, settings.required_tags2, settings.prohibited_tags],
        settings.verdict,
    ]
    return {
        path: hashing.hash_content(
            canonical_json([hashing.SCHEME, shared, file.attempts, file.evaluators])
        )
        for path, file in files.items()
    }


def _describe(participant: Candidate | Judge) -> dict[str, object]:
    return {
        name: value for name, value in participant._asdict().items() if name not in _NOT_OF_PLANS
    }
