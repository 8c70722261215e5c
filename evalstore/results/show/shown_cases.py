"""The cases of a long test file that `show` lists, with their versions, in temporary files."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.deserialize import restore_cases
from evalstore.files.json_output import Members
from evalstore.files.temporary_list import TemporaryList
from evalstore.results.rendering import references_of
from evalstore.workspace.digest_set import DigestSet, digest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from evalstore.core.values import Case, Json

    LoadVersions = Callable[[str, Iterable[str]], Mapping[str, Json]]


class CaseBatch(NamedTuple):
    """Some cases of a file."""

    cases: Sequence[Case]
    tests: Mapping[str, Json]
    """The contents of their tests, by id."""
    evaluations: Mapping[str, Json]
    """Those of their evaluations."""


class ShownCases:
    """Cases and the contents of their versions in files, which are read in their order."""

    def __init__(self, batches: Iterable[Sequence[Json]], load: LoadVersions) -> None:
        """`batches` are cases as they are stored, and `load` loads versions of a kind by id."""
        self._cases, self._tests, self._evaluations = (TemporaryList() for _ in range(3))
        references: dict[tuple[str, str], None] = {}
        for batch in batches:
            cases = [*restore_cases(batch)]
            related = cases_related(load, cases)
            self._cases.extend([batch])
            self._tests.extend([related["tests"]])
            self._evaluations.extend([related["evaluations"]])
            references.update(dict.fromkeys(references_of(related["evaluations"].values())))
        self.references = [*references]
        """The kinds and ids of the versions that the checks name."""

    def __iter__(self) -> Iterator[CaseBatch]:
        for cases, tests, evaluations in zip(
            self._cases, self._tests, self._evaluations, strict=True
        ):
            yield CaseBatch([*restore_cases(cases)], tests, evaluations)

    def cases(self) -> Iterator[Json]:
        """Return the cases as they are stored."""
        return chain.from_iterable(self._cases)

    def related(self) -> dict[str, Json]:
        """Return the contents of the tests and evaluations by id, each once."""
        return {
            "tests": Members(_each_once(self._tests)),
            "evaluations": Members(_each_once(self._evaluations)),
        }


def cases_related(load: LoadVersions, cases: Sequence[Case]) -> dict[str, Json]:
    """Return the contents of the tests and evaluations, by id, in the order of their cases."""
    tests = dict.fromkeys(id for case in cases for id in case.tests)
    evaluations = dict.fromkeys(case.evaluation for case in cases if case.evaluation)
    found = {"tests": load("test", tests), "evaluations": load("evaluation", evaluations)}
    ids = {"tests": tests, "evaluations": evaluations}
    return {name: {id: of[id] for id in ids[name] if id in of} for name, of in found.items()}


def _each_once(batches: Iterable[dict[str, Json]]) -> Iterator[tuple[str, Json]]:
    """Yield the contents of batches with their ids."""
    seen = DigestSet()
    for id, content in chain.from_iterable(batch.items() for batch in batches):
        if seen.add(digest_of(id)):
            yield id, content
