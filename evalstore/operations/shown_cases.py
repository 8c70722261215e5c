"""The cases of a long test file that `show` lists, with their versions, in temporary files."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from evalstore.deserialize import restore_cases
from evalstore.files.temporary_list import TemporaryList
from evalstore.operations.json_output import Members
from evalstore.operations.rendering import references_of
from evalstore.workspace.digest_set import DigestSet, digest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from evalstore.values import Case, Json

    LoadVersions = Callable[[str, Iterable[str]], Mapping[str, Json]]

_SORTED = 8_000
"""So many versions are listed by their ids, then the next: the order of a query of the store."""


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
            tests = (id for case in cases for id in case.tests)
            self._cases.extend(batch)
            self._tests.extend([_in_order(related["tests"], tests)])
            evaluations = _in_order(related["evaluations"], (case.evaluation for case in cases))
            self._evaluations.extend([evaluations])
            references.update(dict.fromkeys(references_of(evaluations.values())))
        self.references = [*references]
        """The kinds and ids of the versions that the checks name."""

    def __iter__(self) -> Iterator[CaseBatch]:
        for number, tests, evaluations in zip(
            range(self._cases.batches), self._tests, self._evaluations, strict=True
        ):
            cases = restore_cases([*self._cases.read([number])])
            yield CaseBatch([*cases], tests, evaluations)

    def cases(self) -> Iterator[Json]:
        """Return the cases as they are stored."""
        return iter(self._cases)

    def related(self) -> dict[str, Json]:
        """Return the contents of the tests and evaluations by id, each once."""
        return {
            "tests": Members(_each_once(self._tests)),
            "evaluations": Members(_each_once(self._evaluations)),
        }


def cases_related(load: LoadVersions, cases: Sequence[Case]) -> dict[str, Json]:
    """Return the contents of the tests and evaluations of these cases, by id."""
    evaluations = [case.evaluation for case in cases if case.evaluation]
    return {
        "tests": load("test", [id for case in cases for id in case.tests]),
        "evaluations": load("evaluation", evaluations),
    }


def _in_order(contents: Mapping[str, Json], ids: Iterable[str | None]) -> dict[str, Json]:
    """Return the contents in the order in which cases name them."""
    return {id: contents[id] for id in dict.fromkeys(ids) if id is not None and id in contents}


def _each_once(batches: Iterable[dict[str, Json]]) -> Iterator[tuple[str, Json]]:
    """Yield the contents of batches with their ids."""
    seen = DigestSet()
    group: list[tuple[str, Json]] = []
    for id, content in chain.from_iterable(batch.items() for batch in batches):
        if seen.add(digest_of(id)):
            group.append((id, content))
        if len(group) == _SORTED:
            yield from sorted(group, key=lambda entry: entry[0])
            group = []
    yield from sorted(group, key=lambda entry: entry[0])
