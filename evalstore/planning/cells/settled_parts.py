"""Finds the parts of very long test files for which a run has nothing to do, without planning them.

They are those that the last run left settled, as long as nothing that their plan follows from has
changed: their cases, the settings and models, and the answers and judgements of their questions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Set
from dataclasses import dataclass, field, fields
from itertools import chain
from typing import TYPE_CHECKING

from evalstore.core import hashing
from evalstore.core.canonical_json import canonical_json
from evalstore.planning.cells.settled_cache import CACHE, SettledPart, read_settled_cache
from evalstore.planning.options import SelectionOptions
from evalstore.store.trees.case_files import CasePart, StoredCases
from evalstore.workspace.digest_set import count_distinct, digest_of, find_repeated

if TYPE_CHECKING:
    from evalstore.core.values import CaseFile
    from evalstore.planning.cells.cells import Candidate, Cell, Judge
    from evalstore.planning.project import Project

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

    def apart_from(self, cells: Iterable[Cell]) -> SettledParts:
        """Return those that share no question with these cells, which are planned."""
        if not self:
            return self
        return self.without({digest_of(id) for cell in cells for id in cell.questions})


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
    contexts = Contexts(project, selection)
    for path, file in files.items():
        context = contexts.of(file)
        for part in _parts_of(file):
            known = cache.parts.get((context, part.node))
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


def _parts_of(file: CaseFile) -> Iterator[CasePart]:
    assert isinstance(file.cases, StoredCases)
    return file.cases.parts()


class Contexts:
    """Computes digests of all but the cases that plans and verdicts of a command follow from."""

    def __init__(self, project: Project, selection: SelectionOptions) -> None:
        settings = project.settings
        self._shared = [
            [[_describe(each), each.lacks(_NEEDS)] for each in project.candidates(selection)],
            [_describe(each) for each in project.judges(selection)],
            [settings.required_tags1, settings.required_tags2, settings.prohibited_tags],
            settings.verdict,
        ]

    def of(self, file: CaseFile) -> str:
        """Return the digest for a file."""
        content = [hashing.SCHEME, self._shared, file.attempts, file.evaluators]
        return hashing.hash_content(canonical_json(content))


def _describe(participant: Candidate | Judge) -> dict[str, object]:
    return {
        each.name: getattr(participant, each.name)
        for each in fields(participant)
        if each.name not in _NOT_OF_PLANS
    }
