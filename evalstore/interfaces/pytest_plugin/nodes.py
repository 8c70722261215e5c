"""The nodes of a pytest session: a test file, and a case with a system prompt and a candidate."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from evalstore.core.display import safe
from evalstore.results.case_reference import show_answer

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.interfaces.pytest_plugin.current_cases import CurrentCase, CurrentCases

_LONGEST = 2_000
"""The most characters of a text of a model in the text of a failure."""


class CaseSource(Protocol):
    """Where items find the verdicts on their cases."""

    root: Path
    """The folder of the workspace."""
    is_offline: bool
    """Whether no model is called that needs the network."""
    refused: str
    """Why no run was made although something is missing; empty if one was made, and in a worker
    of pytest-xdist, where the summary has it."""

    @property
    def current(self) -> CurrentCases:
        """Return the cases with their verdicts, as they were read last."""

    def settled(self, case: CurrentCase) -> CurrentCase:
        """Return a case with its verdict after the run; `case` is as it was collected."""


class TestFileNode(pytest.File):
    """A test file of the workspace."""

    def __init__(self, *, cases: CaseSource, file: str, **keywords: Any) -> None:
        """`file` is the path relative to the workspace."""
        super().__init__(**keywords)
        self._cases = cases
        self._file = file

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the cases of the file; raises `CollectError` with its errors."""
        current = self._cases.current
        if problems := current.problems.get(self._file):
            lines = [f"{safe(problem.place)}: {safe(problem.message)}" for problem in problems]
            raise self.CollectError("\n".join(lines))
        for name, case in name_cases(current.cases.get(self._file, [])):
            yield CaseItem.from_parent(self, name=name, cases=self._cases, case=case)


def name_cases(cases: list[CurrentCase]) -> Iterator[tuple[str, CurrentCase]]:
    """Yield the cases of one file with their names, such as `city=Oslo[brief-gpt-5.5]`.

    A case without a row is named after its file. The names are unique.
    """
    used: set[str] = set()
    for case in cases:
        file, row, _, model = case.place
        row = row or file.rpartition("/")[2].removesuffix(".md")
        candidate = f"{case.prompt}-{model}" if case.prompt else model
        label = safe(row).replace("::", ":")  # pytest takes node ids apart at `::`
        name = base = f"{label}[{safe(candidate)}]"
        number = 1
        while name in used:
            number += 1
            name = f"{base}-{number}"
        used.add(name)
        yield name, case


class CaseItem(pytest.Item):
    """A case: it passes, fails or is skipped as the verdict on it says."""

    def __init__(self, *, cases: CaseSource, case: CurrentCase, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.case = case
        """The case as it was when it was collected."""
        self._cases = cases
        self.extra_keyword_matches.update(case.tags)
        self.add_marker(pytest.mark.evalstore)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the path, the line from 0, and the name.

        pytest wants it of each item that it runs. Finding a line takes as long as all else, so for
        cases that have passed it is the first.
        """
        is_listed = self.config.option.collectonly or self.case.word != "pass"
        return self.path, self._find_line() - 1 if is_listed else 0, self.name

    def _find_line(self) -> int:
        """Return the line of the row's value, else that of the first message, from 1."""
        file, row, *_ = self.case.place
        return self._cases.current.lines.find(file, row)

    def setup(self) -> None:
        """Skip or fail a case without a verdict, so that it counts as an error."""
        case = self._cases.settled(self.case)
        if case.word == "skipped":
            pytest.skip(case.reason)
        if case.word is None:
            pytest.skip("nothing judges the answer")
        if case.is_missing:
            reason = self._cases.refused or case.reason
            if self._cases.is_offline and case.word == "pending":
                pytest.skip(f"pending: {reason}")
            pytest.fail(f"{case.word}: {safe(reason, lines=True)}", pytrace=False)

    def runtest(self) -> None:
        """Fail unless the verdict is a pass."""
        case = self._cases.settled(self.case)
        if case.word != "pass":
            pytest.fail(self._explain(case), pytrace=False)

    def _explain(self, case: CurrentCase) -> str:
        """Return the feedback, then the case and its answer."""
        _, row, _, model = case.place
        path = os.path.relpath(self.path, self.config.invocation_params.dir)
        place = f"{path}:{self._find_line()}" + (f" [{row}]" if row else "")
        feedback = case.feedback or "there is no feedback"
        lines = [
            f"{case.word}: {_shortened(feedback)}",
            f"case: {safe(place)}",
            f"model: {safe(model)}" + (f", system prompt: {safe(case.prompt)}" * bool(case.prompt)),
            f"answer: {_shortened(case.answer)}",
            f"({show_answer(case.session, self._cases.root, self.config.invocation_params.dir)})",
        ]
        return "\n".join(lines)


def _shortened(text: str) -> str:
    """Return a text of a model as it can be printed; its further lines are indented."""
    shown = safe(text[:_LONGEST], lines=True) + ("…" if len(text) > _LONGEST else "")
    return shown.replace("\n", "\n    ")
