"""Tells which rows a name filter selects, where labels have long values that are cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from evalstore.core.batches import in_batches
from evalstore.core.values import Case, Json
from evalstore.planning.cells.row_labels import CUT, complete_label
from evalstore.planning.reasons.version_reader import VersionReader
from evalstore.planning.selection import compile_name

_NO, _YES = 1, 2
"""What is known of a case."""


class NamedRows:
    """Tells whether a name filter selects a case; long values that its messages have are in full.

    Of the cases that are read ahead, messages are read together, and each decision is kept.
    """

    def __init__(self, expression: str, versions: VersionReader) -> None:
        self._selects = compile_name(expression)
        self._versions = versions
        words = expression.replace("(", " ").replace(")", " ").split()
        self._only_adds = CUT not in expression and "not" not in words
        """Whether the filter selects a full label if it selects the one with cuts."""
        self._known: dict[str, bytearray] = {}
        """What is known of the cases of each file, by their numbers."""
        self._selected: Case | None = None
        """The case that was read ahead last, if it is selected."""

    def __call__(self, file: str, case: Case) -> bool:
        """Return whether a case of a file is selected."""
        return case is self._selected or next(self._decide(file, [case]))

    def read_ahead(
        self,
        file: str,
        cases: Iterable[tuple[int, Case]],
        wanted: Callable[[str, Case], bool],
    ) -> Iterator[tuple[int, Case]]:
        """Yield the cases of a file that are wanted and selected, and perhaps others."""
        known = self._known.setdefault(file, bytearray())
        for batch in in_batches(cases):
            known += bytes(max(0, batch[-1][0] + 1 - len(known)))
            new = [each for each in batch if not known[each[0]]]
            new = [(number, case) for number, case in new if wanted(file, case)]
            decided = self._decide(file, [case for _, case in new])
            for (number, _), is_selected in zip(new, decided, strict=True):
                known[number] = _YES if is_selected else _NO
            for each in batch:
                if (of_case := known[each[0]]) != _NO:
                    self._selected = each[1] if of_case == _YES else None
                    yield each

    def _decide(self, file: str, cases: list[Case]) -> Iterator[bool]:
        """Yield for each of these cases whether it is selected."""
        selects, start = self._selects, f"{file}::"
        if self._only_adds:
            named = [selects(start + case.row) for case in cases]
        else:
            named = [CUT not in case.row and selects(start + case.row) for case in cases]
        cut = [
            case
            for case, is_selected in zip(cases, named, strict=True)
            if not is_selected and CUT in case.row
        ]
        tests = (test for case in cut for test in case.tests)
        texts = {id: _text_of(each) for id, each in self._versions.load("test", tests).items()}
        for case, is_selected in zip(cases, named, strict=True):
            if is_selected or CUT not in case.row:
                yield is_selected
            else:
                own = "\n".join(texts[id] for id in dict.fromkeys(case.tests) if id in texts)
                yield selects(start + complete_label(case.row, own))


def _text_of(test: Json) -> str:
    """Return the texts of the messages of a test."""
    texts: list[str] = []
    for message in test.get("messages", ()):
        content = message.get("content", ())
        if isinstance(content, str):
            texts.append(content)
        else:
            texts += [part["text"] for part in content if "text" in part]
    return "\n".join(texts)
