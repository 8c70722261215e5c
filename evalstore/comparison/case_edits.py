"""Compares two versions of a test file, case by case and setting by setting."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from evalstore.comparison.comparison import former_prompts, prompts_of_unknown_text
from evalstore.comparison.version_diff import (
    RECORDED_ANSWER,
    Difference,
    Find,
    Name,
    differ_evaluations,
    differ_prompts,
    differ_tests,
    evaluation_parts,
    in_place,
    recorded_text,
)
from evalstore.core.batches import in_batches
from evalstore.core.display import ROW_NUMBER
from evalstore.core.values import SPECIAL_TAGS, Case, CaseFile, Json, Result

EXCHANGED = " exchanged"
"""Ends the difference that the same prompts are in another order."""
_SETTINGS = ("attempts", "evaluators", "threshold", "id")
"""The fields of a test file that are not fields of its cases."""
_OPTIONS = ("temperature", "seed", "limit")
"""The fields of a case that are options of its test versions, too."""


class PairedCases:
    """Pairs the cases of two versions of a file by their keys, else by the labels of their rows.

    Of very long files few cases are in memory, and the digests of the names of the others.
    """

    def __init__(self, was: CaseFile, now: CaseFile) -> None:
        self._was, self._now = was.cases, now.cases
        self._keys, self._rows = array("q"), array("q")
        for case in was.cases:
            self._keys.append(hash(case.key))
            self._rows.append(hash(case.row))
        self._by_key = {digest: number for number, digest in enumerate(self._keys)}
        self._by_row = {digest: number for number, digest in enumerate(self._rows)}
        self._met_keys, self._met_rows = (bytearray(len(self._keys)) for _ in range(2))
        """1 where the newer version has a case with that key, or that label."""

    def __iter__(self) -> Iterator[tuple[Case | None, Case]]:
        """Yield each case of the newer version with its earlier version, or None."""
        for batch in in_batches(self._now):
            numbers = [self._find(case) for case in batch]
            wanted = sorted({number for number in numbers if number is not None})
            found = {number: self._was[number] for number in wanted}
            for number, case in zip(numbers, batch, strict=True):
                yield None if number is None else found[number], case

    def gone(self) -> Iterator[Case]:
        """Yield the cases that the newer version lacks, after all its cases were read."""
        for number, (key, row) in enumerate(zip(self._keys, self._rows, strict=True)):
            if not (self._met_keys[self._by_key[key]] or self._met_rows[self._by_row[row]]):
                yield self._was[number]

    def _find(self, case: Case) -> int | None:
        """Return the number of the earlier version of a case, and note the names of the case."""
        key, row = hash(case.key), hash(case.row)
        for digest in (key, row):
            if (number := self._by_key.get(digest)) is not None:
                self._met_keys[number] = 1
            if (number := self._by_row.get(digest)) is not None:
                self._met_rows[number] = 1
        return self._by_key.get(key, self._by_row.get(row))


def differ_pair(
    was: Case | None, now: Case, find: Find, name: Name, *, is_same_list: bool = False
) -> Iterator[Difference]:
    """Yield the differences between two versions of a case; `was` is None for a new case.

    With `is_same_list` the test file names the same prompt files in the same order.
    """
    if was is None:
        yield Difference(f"{_row_name(now)} is new")
    elif was != now:
        unknown = prompts_of_unknown_text(was.prompts, now.prompts) if is_same_list else ()
        yield from differ_cases(was, now, find, name, unknown)
        old, new = (", ".join(sorted({*case.tags} - {*SPECIAL_TAGS})) for case in (was, now))
        if old != new:
            yield Difference("tags", old or None, new or None)
        rows = [ROW_NUMBER.sub("", case.row) for case in (was, now)]
        if was.key == now.key and rows[0] != rows[1]:
            yield Difference("row renamed", *rows)


def _row_name(case: Case) -> str:
    """Return the name of a row; the only row of a file has no label."""
    return f"row {case.row}" if case.row else "the only row"


def differ_otherwise(was: CaseFile, now: CaseFile, gone: Iterable[Case]) -> Iterator[Difference]:
    """Yield the cases that are gone, and the differences in the settings of a test file."""
    for case in gone:
        yield Difference(f"{_row_name(case)} is gone")
    for setting in _SETTINGS:
        yield from _differ(setting, was, now)


def versions_compared(was: Case, now: Case) -> Iterator[tuple[str, str | None]]:
    """Yield the kinds and ids of the versions that `differ_cases` compares."""
    for kind, old, new in (
        ("test", was.tests, now.tests),
        ("evaluation", (was.evaluation,), (now.evaluation,)),
        ("prompt", was.prompts, now.prompts),
        ("prompt", was.judge_prompts, now.judge_prompts),
        ("model", (was.recorded,), (now.recorded,)),
    ):
        if old != new:
            yield from ((kind, id) for id in (*old, *new))


def differ_cases(
    was: Case, now: Case, find: Find, name: Name, unknown: Collection[str | None] = ()
) -> Iterator[Difference]:
    """Yield the differences between two versions of a case, except for labels and plain tags.

    Of the system prompts whose former text is `unknown` it is said that they changed.
    """
    if was.tests != now.tests:
        yield from differ_conversations(was.tests, now.tests, find, name)
    if set(was.tests) == set(now.tests):
        for option in _OPTIONS:
            yield from _differ(option, was, now)
    if was.evaluation != now.evaluation:
        yield from differ_evaluations(*_evaluations(was, now, find), find, name)
    yield from _differ_prompts("system prompt", was.prompts, now.prompts, find, name, unknown)
    yield from _differ_prompts("judge prompt", was.judge_prompts, now.judge_prompts, find, name)
    yield from _differ("judged by", was, now)
    if was.recorded != now.recorded:
        yield Difference(RECORDED_ANSWER, *(recorded_answer(case, find) for case in (was, now)))


def _evaluations(was: Case | Result, now: Case | Result, find: Find) -> tuple[Json, Json]:
    """Return the contents of two evaluation versions; empty where there is none."""
    ids = was.evaluation, now.evaluation
    old, new = (find("evaluation", id) or {} if id else {} for id in ids)
    return old, new


def judging_changed(was: Case, now: Case, find: Find) -> tuple[str, ...]:
    """Return which parts of how a case is judged differ: instructions, checks, judge prompt."""
    parts = evaluation_parts(*_evaluations(was, now, find))
    return (*parts, "judge prompt") if was.judge_prompts != now.judge_prompts else parts


def differ_results(was: Result, now: Result, find: Find, name: Name) -> Iterator[Difference]:
    """Yield the differences between the versions of a case that two results are about."""
    if was.tests != now.tests:
        yield from differ_conversations(was.tests, now.tests, find, name)
    if was.evaluation != now.evaluation:
        yield from differ_evaluations(*_evaluations(was, now, find), find, name)
    yield from _differ_prompts("system prompt", (was.prompt,), (now.prompt,), find, name)


def differ_conversations(
    was: Sequence[str], now: Sequence[str], find: Find, name: Name
) -> Iterator[Difference]:
    """Yield the differences between the conversations of a case, with their repetitions.

    `was` and `now` are the ids of the test versions; a repeated conversation has several entries.
    """
    if len(was) == len(now) == 1 and was != now:
        yield from differ_tests(find("test", was[0]) or {}, find("test", now[0]) or {}, find, name)
        return
    before, after = Counter(was), Counter(now)
    old = [id for id in before if id not in after]
    is_single = len(before) == len(after) == 1
    changed = dict(zip((id for id in after if id not in before), old, strict=False))
    for number, id in enumerate(after, 1):
        partner = id if id in before else changed.get(id)
        place = "" if is_single else f"conversation {number}, "
        if partner is None:
            yield Difference(f"conversation {number} is new")
            continue
        if partner != id:
            content = find("test", partner) or {}
            for difference in differ_tests(content, find("test", id) or {}, find, name):
                yield replace(difference, subject=place + difference.subject)
        if before[partner] != after[id]:
            yield Difference(f"{place}repetitions", str(before[partner]), str(after[id]))
    gone = set(old[len(changed) :])
    for number, id in enumerate(before, 1):
        if id in gone:
            yield Difference(f"conversation {number} is gone")
    if before == after and tuple(was) != tuple(now):
        yield Difference("order of the conversations")


def _differ_prompts(
    subject: str,
    was: tuple[str | None, ...],
    now: tuple[str | None, ...],
    find: Find,
    name: Name,
    unknown: Collection[str | None] = (),
) -> Iterator[Difference]:
    """Yield new and removed prompts; one in the place of another is an edit."""
    if was == now:
        return
    if {*was} == {*now}:
        yield Difference(f"{subject}s{EXCHANGED}")
    pairs = former_prompts(was, now)
    edited = [(before, id) for id in now if id and (before := pairs.get(id)) != id]
    followed = {pairs.get(id) for id in now if id}
    gone = [id for id in was if id and id not in followed]
    for before, after in [*edited, *((id, None) for id in gone)]:
        if before and after:
            texts = (find("prompt", id) or {} for id in (before, after))
            edits = [Difference("changed")] if after in unknown else differ_prompts(*texts)
            former, present = name("prompt", before), name("prompt", after)
            if former and present and former != present:
                yield in_place(subject, present, former)
                continue
            named = present or former
            start = f"{subject} {named}: " if named else f"{subject} "
            for edit in edits:
                yield replace(edit, subject=f"{start}{edit.subject}")
        else:
            id = after or before or ""
            shown = name("prompt", id) or id[:8]
            yield Difference(f"{subject} {shown} is {'new' if after else 'gone'}")
    if (None in was) != (None in now):
        yield Difference(f"case without {subject} is {'new' if None in now else 'gone'}")


def _differ(field: str, was: Case | CaseFile, now: Case | CaseFile) -> Iterator[Difference]:
    """Yield the difference in one field, if there is one."""
    old, new = (getattr(version, field.replace(" ", "_")) for version in (was, now))
    if old != new:
        yield Difference(field, _as_text(old), _as_text(new))


def _as_text(value: Json) -> str | None:
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return value if value is None or isinstance(value, str) else json.dumps(value)


def recorded_answer(case: Case, find: Find) -> str | None:
    """Return the recorded answers of a case, joined; None when it has none."""
    version = find("model", case.recorded) if case.recorded else None
    return recorded_text(version) if version else None


def prompts_compared(
    was: Case, now: Case
) -> Iterator[tuple[str, tuple[str | None, ...], tuple[str | None, ...]]]:
    """Yield the system prompts and the judge prompts of two versions of a case, with their kind."""
    yield "system prompt", was.prompts, now.prompts
    yield "judge prompt", was.judge_prompts, now.judge_prompts
