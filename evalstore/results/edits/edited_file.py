"""Tells how a test file differs from that of a run, and what a plan does about it.

Of the cases of a very long file only digests and a few bits are kept.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from evalstore.core.display import plural
from evalstore.planning.cells.row_index import RowIndex
from evalstore.planning.reasons.reason import NEW_PROMPT, NEW_ROW
from evalstore.planning.status.status_report import FileChange
from evalstore.workspace.digest_set import DigestSet, digest_of_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from evalstore.core.values import Case, CaseFile
    from evalstore.planning.plan_item import PlanItem
    from evalstore.planning.status.planned_rows import PlannedRows

    WasRun: TypeAlias = Callable[[str, Case], bool]
    """Whether an earlier run had a case of a file as it is now."""

_SHOWN, _REJUDGED, _UNSETTLED = 1, 2, 4
"""Bits of a case: it asks something else, it is only judged otherwise, the plan does something for
it or it waits."""
_EDITED = _SHOWN | _REJUDGED
_MOST_OTHERS = 2
"""The items with different reasons of which one differs from any reason."""


@dataclass
class FileItems:
    """The items of a plan for one file, each with the number of its case."""

    asks: list[tuple[int, PlanItem]] = field(default_factory=list)
    judgements: list[tuple[int, PlanItem]] = field(default_factory=list)
    used_again: set[int] = field(default_factory=set)
    """The cases about which stored judgements are used again, and nothing else is done."""

    def __iter__(self) -> Iterator[tuple[int, PlanItem]]:
        yield from self.asks
        yield from self.judgements


class EditedFile:
    """A test file in a run and in the workspace, with the sums of the plans of its cases."""

    def __init__(self, path: str, was: CaseFile, now: CaseFile) -> None:
        """Compare the cases of both."""
        self._path = path
        self.was, self.now = was, now
        self._bits = bytearray(len(now.cases))
        self._gone = self._compare()
        self._first: PlanItem | None = None
        """The first item of the plan that is not about a new row: of a question if there is one."""
        self._judged_otherwise: list[PlanItem] = []
        """The first items of rows that are only judged, with different reasons."""
        self._shared = ""
        self._counts: Counter[str] = Counter()

    @property
    def differs(self) -> bool:
        """Return whether cases are edited or gone."""
        return bool(self._gone) or any(self._bits)

    def _compare(self) -> int:
        """Set the bits of the edited cases; returns how many cases are gone."""
        known, evaluations, kept = DigestSet(), DigestSet(), DigestSet()
        names: list[array[int]] = [array("Q"), array("Q")]
        has_several = False
        for case in self.was.cases:
            known.add(digest_of_value(_shown(case)))
            evaluations.add(digest_of_value((case.tests, case.evaluation)))
            names[0].append(digest_of_value(case.key))
            names[1].append(digest_of_value(case.row))
            has_several = has_several or len(case.tests) > 1
        shown: list[Case] = []
        """Those that are compared with cases of several conversations."""
        for number, case in enumerate(self.now.cases):
            kept.add(digest_of_value(case.key))
            kept.add(digest_of_value(case.row))
            if digest_of_value(_shown(case)) not in known:
                self._bits[number] = _SHOWN
                shown += [case] if has_several else []
            elif digest_of_value((case.tests, case.evaluation)) not in evaluations:
                self._bits[number] = _REJUDGED
        if fewer := _only_fewer(shown, self.was) if shown else set():
            for number, case in enumerate(self.now.cases):
                if self._bits[number] == _SHOWN and case.key in fewer:
                    is_judged = digest_of_value((case.tests, case.evaluation)) in evaluations
                    self._bits[number] = 0 if is_judged else _REJUDGED
        return sum(1 for key, row in zip(*names, strict=True) if not (key in kept or row in kept))

    @cached_property
    def _old(self) -> RowIndex:
        return RowIndex(self.was)

    def add(self, rows: PlannedRows, items: FileItems) -> None:
        """Add rows and items of the plan; all of a case must be added at once."""
        own = {number for number, _ in items}
        pending = rows.asked | rows.judged
        new = {number for number, item in items if item.reason.startswith(NEW_ROW)}
        new |= {
            number
            for number in pending - own
            if self._bits[number] & _SHOWN and not self._old.find(rows.cases[number])
        }
        asked, judged = rows.asked - new, rows.judged - new
        again = {
            number
            for number, item in items.asks
            if item.kind == "ask" and item.reason != NEW_PROMPT
        }
        added = {
            number
            for number in asked & own - again
            if _has_more_prompts(self._old.find(rows.cases[number]), rows.cases[number])
        }
        edited = {number for number in rows.waiting if self._bits[number] & _EDITED}
        for name, numbers in (
            *(("pending", pending), ("new", new), ("asked", asked), ("judged", judged)),
            *(("added", added), ("waiting", edited)),
            ("used again", items.used_again - pending - edited),
            *((part, {n for n, item in items if of(item.reason)}) for part, of in _PARTS),
        ):
            self._counts[name] += len(numbers)
        for number in pending | rows.waiting:
            self._bits[number] |= _UNSETTLED
        for name, counts in (("failing", rows.failing), ("undecided", rows.undecided)):
            self._counts[name] += sum(
                count for number, count in counts.items() if self._bits[number] & _EDITED
            )
        self._shared = self._shared or rows.shared
        self._note_reasons(items, judged)

    def _note_reasons(self, items: FileItems, judged: set[int]) -> None:
        """Keep the items whose reasons are told."""
        if self._first is None or self._first.kind == "judge":
            listed = items.asks if self._first else [*items]
            first = (item for _, item in listed if not item.reason.startswith(NEW_ROW))
            self._first = next(first, self._first)
        others = self._judged_otherwise
        for number, item in items.judgements:
            if len(others) == _MOST_OTHERS:
                break
            if number in judged and item.reason not in (other.reason for other in others):
                others.append(item)

    def describe(self, was_run: WasRun) -> FileChange:
        """Return how the file differs, after all plans were added."""
        settled = sum(1 for bits in self._bits if bits & _EDITED and not bits & _UNSETTLED)
        count, first = self._counts, self._first
        is_again = bool(count["asked"] or count["judged"])
        reason = self._reason(first) if first else self._shared
        has = {bit: any(bits & bit for bits in self._bits) for bit in (_SHOWN, _REJUDGED)}
        return FileChange(
            code=("M" if has[_SHOWN] or self._gone else ".") + ("M" if has[_REJUDGED] else ".")
            if count["pending"] or count["waiting"]
            else "= ",
            file=self._path,
            asked=count["asked"],
            added=count["added"],
            judged=count["judged"],
            gone=self._gone,
            reason=reason if is_again else "",
            new=count["new"],
            was=first.was if first else None,
            now=first.now if first else None,
            also=self._also_edited(first) if first and is_again else (),
            settled=settled,
            waiting=count["waiting"],
            used_again=min(count["used again"], settled),
            failing=count["failing"],
            undecided=count["undecided"],
            reverted=not settled or self._were_run(was_run),
        )

    def _were_run(self, was_run: WasRun) -> bool:
        """Return whether an earlier run had all settled cases."""
        bits = self._bits
        return all(
            was_run(self._path, case)
            for number, case in enumerate(self.now.cases)
            if bits[number] & _EDITED and not bits[number] & _UNSETTLED
        )

    def _reason(self, first: PlanItem) -> str:
        """Return why cases are asked again, and why others are only judged again."""
        other = self._other_reason(first)
        return f"{first.reason}; {other.reason}" if other else first.reason

    def _also_edited(self, first: PlanItem) -> tuple[str, ...]:
        """Return what was edited beside the reasons that are given."""
        other = self._other_reason(first)
        others = self._edits_of_others(first)
        if other is None:
            return (*first.also, *others)
        described = ("instructions", "checks")  # by the other reason
        return (*(part for part in first.also if part not in described), *other.also, *others)

    def _edits_of_others(self, first: PlanItem) -> Iterator[str]:
        """Yield what was edited in other cases alone: `test of 1 case`."""
        for part, is_of in _PARTS:
            count = self._counts[part]
            if count and part not in first.also and not is_of(first.reason):
                yield f"{part} of {plural(count, 'case')}"

    def _other_reason(self, first: PlanItem) -> PlanItem | None:
        """Return the first item of a case that is only judged again, if its reason is another."""
        if first.kind == "judge":
            return None
        return next((i for i in self._judged_otherwise if i.reason != first.reason), None)


_PARTS = (
    ("test", re.compile("test changed").match),
    ("system prompt", re.compile(r"system prompt (?:(?:[^:]+ )?changed|.+ in place of )").match),
)
"""Parts of a case, and how the reasons begin that are about them."""


def _has_more_prompts(was: Case | None, now: Case) -> bool:
    """Return whether a case is shown with the system prompts of before and with others."""
    return (
        was is not None
        and was.tests == now.tests
        and len(was.prompts) < len(now.prompts)
        and set(was.prompts) <= set(now.prompts)
    )


def _only_fewer(cases: list[Case], was: CaseFile) -> set[str]:
    """Return the keys of the cases whose questions all were in the older version of the file."""
    held: dict[object, set[tuple[str, ...]]] = {}
    for case in was.cases:
        for test in set(case.tests):
            held.setdefault((case.prompts, case.recorded, test), set()).add(case.tests)
    return {
        case.key
        for case in cases
        if any(
            Counter(case.tests) <= Counter(tests)
            for tests in held.get((case.prompts, case.recorded, case.tests[0]), ())
        )
    }


def _shown(case: Case) -> tuple[object, ...]:
    """Return everything that the answers to a case depend on, apart from the model."""
    return case.tests, case.prompts, case.recorded
