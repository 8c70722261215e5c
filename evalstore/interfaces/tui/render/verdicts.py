"""Verdicts and judgements as text, small pictures of numbers, and pairs of results in detail.

What is drawn can be told apart without colours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from evalstore.comparison.comparison import Pair
from evalstore.comparison.statistics import Rate
from evalstore.comparison.version_diff import Difference
from evalstore.comparison.word_diff import Stretch, compare_words
from evalstore.core.display import (
    BADGE,
    BLANK,
    StyledLine,
    StyledSpan,
    ago,
    case_name,
    clip,
    columns_of,
    heading,
    marked_spans,
    plural,
    safe,
    spread,
    text_lines,
    verdict_span,
)
from evalstore.core.errors import EvalstoreError, WorkspaceError
from evalstore.core.results import Decision, Result
from evalstore.interfaces.tui.grid_columns import StyledCell
from evalstore.results.compare.diff_result import pair_line, side_lines
from evalstore.results.labels import LabelIndex, PersonLabel
from evalstore.results.table.cases import CaseRow, Cases
from evalstore.results.verdict_order import PERSON, SIGNS
from evalstore.runs.status.status_text import edit_lines

if TYPE_CHECKING:
    from evalstore.results.compare.diff_result import Diff

_BLOCKS = " ▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_BRAILLE = 0x2800
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""The bits of a braille character, by column and row of its dots."""
_CELLS = {"pass": "█", "fail": "░"}
"""The verdicts whose cells are blocks; the others are their signs."""
LAST_RUNS = "last runs, with reuse"
"""The name of the last verdicts in texts: a run that reuses answers has one, too."""
_COLOURS = {"no reply": "error", "answered": "faint"}
"""Words of results that have no colour of their own."""


class Series(NamedTuple):
    """Shares in the order of time, the oldest first, with the texts of both ends, and the times."""

    values: Sequence[float]
    first: str
    last: str
    times: Sequence[str] = ()


def bar(share: float, width: int) -> str:
    """Draw a share as a bar of up to `width` characters."""
    eighths = round(share * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def verdict_strip(verdicts: Mapping[str, int], width: int) -> tuple[StyledSpan, ...]:
    """Draw the shares of verdicts as cells: one for each result, or `width` in proportion.

    Shares are rounded to the nearest cell, but each verdict that occurs has at least one.
    """
    counts = {word: count for word, count in verdicts.items() if count}
    total = sum(counts.values())
    if not 0 < len(counts) <= width:
        return ()
    cells = counts
    if total > width:
        exact = {word: width * count / total for word, count in counts.items()}
        cells = {word: max(1, int(share)) for word, share in exact.items()}
        while (missing := width - sum(cells.values())) > 0:
            cells[max(exact, key=lambda word: (exact[word] - cells[word], word != "pass"))] += 1
        for _ in range(-missing):  # those with a cell for a small share take it from the others
            cells[max(exact, key=lambda word: (cells[word] > 1, cells[word] - exact[word]))] -= 1
    return tuple(
        StyledSpan(_CELLS.get(word, SIGNS.get(word, "?")) * count, _COLOURS.get(word, word))
        for word, count in cells.items()
    )


def spark_spans(words: Sequence[str]) -> tuple[StyledSpan, ...]:
    """Return the signs of verdicts, the oldest first: `✓✓✗`."""
    return tuple(StyledSpan(SIGNS.get(word, "?"), _COLOURS.get(word, word)) for word in words)


def spark_words(words: Sequence[str]) -> str:
    """Return verdicts in words, the oldest first: `2 pass, then 1 fail`."""
    return ", then ".join(f"{len(list(group))} {word}" for word, group in groupby(words))


class PlottedPoint(NamedTuple):
    """A number of a run, from 0 to 1."""

    run: int
    share: float
    is_hollow: bool = False
    """Whether it is drawn hollow, and no line joins it."""


class PlottedLine(NamedTuple):
    """The numbers of one name, the oldest first."""

    name: str
    points: Sequence[PlottedPoint]
    end: str
    """The text of the newest number, beside the name."""


_SCALE = {0.0: "  0%", 0.5: " 50%", 1.0: "100%"}
_AXIS = 6
"""Columns of the numbers at the left, and of their axis."""
_LINE_COLOURS = ("heading", "", "code", "code-string", "faint")
"""The colours of lines; green and red are those of verdicts."""
_MOST_NAME = 24


def plot_lines(
    lines: Sequence[PlottedLine], dates: Sequence[str], width: int, height: int
) -> Iterator[StyledLine]:
    """Yield a line through the numbers of each name, which stands at its end, and the dates.

    `height` counts all lines; `dates` has a text for each run.
    """
    names = [f"{clip(line.name, _MOST_NAME)} {line.end}".rstrip() for line in lines]
    right = max(map(columns_of, names), default=0) + 1
    room, rows = max(2, width - _AXIS - right - 1), max(2, height - 1)
    canvas = _Canvas(room, rows, len(dates))
    for number, line in enumerate(lines):
        canvas.draw(line, _LINE_COLOURS[number % len(_LINE_COLOURS)])
    places = spread([canvas.row(line.points[-1].share) for line in lines], 1, rows - 1)
    scale = {canvas.row(share): text for share, text in _SCALE.items() if share != 0.5 or rows > 4}
    for row in range(rows):
        named = [number for number, place in enumerate(places) if place == row]
        ends = (StyledSpan(f" {names[n]}", _LINE_COLOURS[n % len(_LINE_COLOURS)]) for n in named)
        axis = f"{scale.get(row, ''):>4} {'┤' if row in scale else '│'}"
        yield StyledLine((StyledSpan(axis, "faint"), *canvas.spans(row), *ends))
    yield StyledLine((StyledSpan(f"{'':{_AXIS}}{canvas.dates(dates)}", "faint"),))


class _Canvas:
    """Draws lines as braille dots with a point for each number, in rows of characters."""

    def __init__(self, width: int, rows: int, runs: int) -> None:
        self._width, self._rows, self._runs = width, rows, runs
        self._bits = [[0] * width for _ in range(rows)]
        self._colours = [[""] * width for _ in range(rows)]
        self._points: dict[tuple[int, int], StyledSpan] = {}

    def column(self, run: int) -> int:
        """Return the column of a run."""
        return round((self._width - 1) * run / (self._runs - 1)) if self._runs > 1 else 0

    def row(self, share: float) -> int:
        """Return the row of a number, 0 at the top."""
        return self._dot(share) // 4

    def _dot(self, share: float) -> int:
        """Return the row of dots of a number: four are a row of characters."""
        return round(4 * (1 - share) * (self._rows - 1)) + 1

    def draw(self, line: PlottedLine, colour: str) -> None:
        """Draw a line; what was drawn before at the same place is covered."""
        before: tuple[int, int] | None = None
        for run, share, is_hollow in line.points:
            x, y = self.column(run), self.row(share)
            if not is_hollow:
                dot = 2 * x, self._dot(share)
                for across, down in _between(before or dot, dot):
                    self._bits[down // 4][across // 2] |= _DOTS[across % 2][down % 4]
                    self._colours[down // 4][across // 2] = colour
                before = dot
            self._points[y, x] = StyledSpan("○" if is_hollow else "●", colour)

    def spans(self, row: int) -> Iterator[StyledSpan]:
        """Yield the characters of a row."""
        for column, bits in enumerate(self._bits[row]):
            drawn = StyledSpan(chr(_BRAILLE + bits) if bits else " ", self._colours[row][column])
            yield self._points.get((row, column), drawn)

    def dates(self, texts: Sequence[str]) -> str:
        """Return the dates below their runs, each once: the newest, the oldest, then others."""
        line = [" "] * self._width
        shown: set[str] = set()
        for run in [len(texts) - 1, 0, *range(len(texts) - 2, 0, -1)]:
            start = max(0, min(self.column(run), self._width - len(texts[run])))
            end = start + len(texts[run])
            is_free = all(mark == " " for mark in line[max(0, start - 2) : end + 2])
            if texts[run] not in shown and is_free and end <= self._width:
                line[start:end] = texts[run]
                shown.add(texts[run])
        return "".join(line)


def _between(start: tuple[int, int], end: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Yield the dots of a straight line, without a gap."""
    (left, top), (right, bottom) = start, end
    steps = max(right - left, abs(bottom - top), 1)
    for number in range(steps + 1):
        part = number / steps
        yield left + round(part * (right - left)), top + round(part * (bottom - top))


def series_line(series: Series, width: int) -> StyledLine:
    """Draw the numbers as bars between the oldest and the newest: `50% ▄▅▇ 83% (0% to 100%)`."""
    first, last = safe(series.first), safe(series.last)
    scale = "(0% to 100%)"
    fixed = columns_of(first) + columns_of(last) + columns_of(scale) + 6
    shown = series.values[-max(2, width - fixed) :]
    bars = "".join(_BLOCKS[1 + round(share * 7)] for share in shown)
    if len(series.values) < 2:
        return StyledLine((StyledSpan(clip(last, max(1, width))),))
    return StyledLine((StyledSpan(f"{first} {bars} {last}"), StyledSpan(f"  {scale}", "faint")))


def beside(
    left: Sequence[StyledLine], right: Sequence[StyledLine], width: int
) -> Iterator[StyledLine]:
    """Yield lines side by side; those at the left are as wide as `width` at most."""
    for number in range(max(len(left), len(right))):
        spans = left[number].spans if number < len(left) else ()
        other = right[number].spans if number < len(right) else ()
        used = columns_of("".join(span.text for span in spans))
        yield StyledLine((*spans, StyledSpan(" " * max(0, width - used)), *other))


_BADGES = frozenset({"pass", "fail", "error", "undecided"})


def verdict_cell(word: str | None) -> StyledCell:
    """Return a verdict as a cell: its sign, its word and its colour."""
    word = word or "answered"
    span = verdict_span(word, SIGNS)
    return StyledCell(span.text, span.colour, word)


def result_cell(result: Result, labels: LabelIndex, text: str = "") -> StyledCell:
    """Return the verdict, with the sign of a person who decided it or labelled it after the run.

    `text` is added to the verdict.
    """
    cell = verdict_cell(result.word)
    text = f"{cell.text}{text}"
    signs = labels.signs(result)
    if not signs:
        return cell._replace(text=text)
    plain = " ".join([f"{cell.plain}, labelled", *filter(None, (labels.word(result),))])
    return StyledCell(f"{text} {signs}", cell.colour, plain)


def badge_spans(line: StyledLine) -> StyledLine:
    """Return a line with the verdicts in it as badges: filled with their colours."""
    return line._replace(
        spans=tuple(
            span._replace(colour=f"{BADGE}{span.colour}") if span.colour in _BADGES else span
            for span in line.spans
        )
    )


def rate_text(rate: Rate) -> str:
    """Return `94.1% of 55 (95% interval 90.1 to 96.6%)`; without an interval the counts."""
    if rate.interval is None:
        return f"{rate.passed:,} of {rate.judged:,} passed" if rate.judged else "nothing judged"
    low, high = rate.interval
    return f"{rate.text} of {rate.judged:,} (95% interval {100 * low:.1f} to {100 * high:.1f}%)"


def when(microseconds: int) -> str:
    """Describe how long ago a time was."""
    return ago(microseconds, time.time_ns() // 1000)


# --- the texts of a page that is being read, and of a problem


READING = "reading …"
"""A part of the title while the page is being read."""
_LISTED = 5
"""Problems of a workspace that are listed."""


def problem_text(problem: EvalstoreError) -> str:
    """Return a problem as the command line shows it."""
    if isinstance(problem, WorkspaceError):
        problems = sorted(problem.problems, key=lambda item: item.severity != "error")
        lines = [
            f"{entry.severity}: {entry.place}: {entry.message}" for entry in problems[:_LISTED]
        ]
        hints = [f"hint: {entry.hint}" for entry in problems[:1] if entry.hint]
        more = len(problems) - _LISTED
        return "\n".join([*lines, *([f"… {more} more"] if more > 0 else []), *hints])
    hint = f"\nhint: {problem.hint}" if problem.hint else ""
    return f"error: {problem}{hint}"


# --- the judgements on a case: the feedback of judges and the labels of people, by candidate


MOST_OF_FEEDBACK = 160
"""Columns of the feedback on an answer that is one of several, where room is scarce."""
ROOMY_FEEDBACK = 2_000
"""Columns of it where there is room; on the page of the answer there is all."""


def case_judgement_lines(
    cases: Cases,
    case: CaseRow,
    picked: int,
    feedback: Mapping[Decision, str],
    history: Callable[[Result], Sequence[str]] = lambda _result: (),
) -> Iterator[StyledLine]:
    """Yield the judgements on a case, first on the picked candidate.

    `feedback` has the reasons for verdicts; `history` returns the last verdicts of a result.
    """
    yield heading("  ".join((case_name(case.file, case.row, case.prompt), *case.tags)))
    for number in sorted(range(len(case.results)), key=lambda number: number != picked):
        yield from candidate_lines(cases, case, number, feedback, history)


def candidate_lines(
    cases: Cases,
    case: CaseRow,
    number: int,
    feedback: Mapping[Decision, str],
    history: Callable[[Result], Sequence[str]] = lambda _result: (),
    most: int = MOST_OF_FEEDBACK,
) -> Iterator[StyledLine]:
    """Yield the verdict on one candidate with its reasons; nothing when it lacks the case.

    The reasons have at most so many columns. Labels have lines of their own.
    """
    result = case.results[number]
    if result is None:
        return
    cell = result_cell(result, cases.labels)
    yield StyledLine(
        (
            StyledSpan(f"{cell.text}  ", cell.colour),
            StyledSpan(safe(cases.models[number])),
            *history_spans(history(result)),
        )
    )
    labels = cases.labels.of(result)
    is_labelled = any(label.id in result.evaluations for label in labels)
    if not is_labelled and (reasons := feedback.get(result.decision)):
        yield from text_lines(clip(reasons, most), indent=2)
    yield from _label_lines(labels, result)


def history_spans(words: Sequence[str]) -> Iterator[StyledSpan]:
    """Yield the last verdicts as signs and in words, when there are several."""
    if len(words) > 1:
        yield StyledSpan(f"  {LAST_RUNS}: ", "faint")
        yield from spark_spans(words)
        yield StyledSpan(f" {spark_words(words)}", "faint")


def _label_lines(labels: Sequence[PersonLabel], result: Result) -> Iterator[StyledLine]:
    """Yield the labels of people; the same label of several answers once."""
    alike: dict[tuple[str, str, str, bool], list[PersonLabel]] = {}
    for label in labels:
        is_later = label.id not in result.evaluations
        alike.setdefault((label.person, label.verdict, label.note, is_later), []).append(label)
    for (person, word, note, is_later), group in alike.items():
        count = sum(len(label.sessions) for label in group)
        facts = [
            f"label removed by {person}" if word == "none" else f"{word}  by {person}",
            when(max(label.at for label in group)),
            *(["after this run"] if is_later else []),
            *([plural(count, "answer")] if count > 1 else []),
        ]
        text = f"{PERSON} {', '.join(facts)}" + (f": {note}" if note else "")
        yield from text_lines(text, "faint" if word == "none" else word, 2)


_USER = "user  "
_EDITS = 4
"""Edits of the case that are shown."""
_WIDTH = 160
"""Characters of a text of an edit."""
MIN_SHARED = 0.3
"""The share of the longer answer that both must have to be shown as one text."""


def pair_lines(
    diff: Diff,
    pair: Pair,
    feedback: Mapping[Decision, str],
    answers: Mapping[str, str] | None = None,
    question: str = "",
    *,
    edits: Sequence[Difference] = (),
    history: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[StyledLine]:
    """Yield a pair in detail: the feedback, the question and the answers when they are known.

    Below them are the `edits` of the case, and `history`, the last verdicts on its candidates.
    """
    yield badge_spans(pair_line(diff, pair, signs=SIGNS))
    yield from side_lines(diff, pair, feedback)
    yield from question_lines(question)
    if answers is not None:
        yield from _answers(diff, pair, answers)
    last: list[StyledLine] = []
    for model, words in (history or {}).items():
        last += history_lines(model if diff.models else "", words)
    edited = [heading("edits")] if edits else []
    for edit in edits[:_EDITS]:
        edited += edit_lines(edit, width=_WIDTH, indent=2)
    if len(edits) > _EDITS:
        edited += text_lines(f"… {len(edits) - _EDITS} more", "faint", indent=2)
    for part in (edited, last):
        if part and answers is not None:
            yield BLANK
        yield from part


def history_lines(candidate: str, words: Sequence[str]) -> Iterator[StyledLine]:
    """Yield the last verdicts on a candidate as signs and in words, when there are several."""
    if len(words) > 1:
        head, *signs = history_spans(words)
        name = f"{safe(candidate)}{head.text}" if candidate else head.text.lstrip()
        yield StyledLine((head._replace(text=name), *signs))


def question_lines(question: str, most: int = 1, title: str = _USER) -> Iterator[StyledLine]:
    """Yield a question behind its title as one line, if there is one, or as at most so many."""
    if not question:
        return
    texts = [question]
    if most > 1:
        texts = [line for line in question[: 4 * most * _WIDTH].split("\n") if line.strip()]
    for number, text in enumerate(texts[:most]):
        line = clip(" ".join(text[: 4 * _WIDTH].split()), _WIDTH)
        cut = " …" if number + 1 == most < len(texts) else ""
        role = StyledSpan("" if number else title, "faint")
        indent = len(title) if number else 0
        yield StyledLine((role, StyledSpan(safe(line)), StyledSpan(cut, "faint")), indent)


def _answers(diff: Diff, pair: Pair, answers: Mapping[str, str]) -> Iterator[StyledLine]:
    """Yield both answers; when they have enough in common, as one text with the differences."""
    models, (was, now) = diff.models, diff.shown_sessions(pair)
    old = answers.get(was) if was else None
    new = answers.get(now) if now else None
    numbers = [_number(pair.was, was), _number(pair.now, now)]
    if old is None and new is None:
        yield from text_lines("no answer", "faint")
    elif old is None or new is None or old == new:
        whose = models[old is None] if models else ""
        title = "the same answer" if old == new else f"answer of {whose}" if whose else "answer"
        yield heading(f"{title}{_numbers(numbers)}")
        yield from text_lines(old or new or "")
    else:
        stretches = compare_words(old, new)
        alike = sum(len(stretch.text) for stretch in stretches if stretch.kind == "same")
        if alike >= MIN_SHARED * max(len(old), len(new)):
            legend = zip(models, ("old", "new"), strict=True) if models else ()
            marks = (span for name, sign in legend for span in marked_spans(safe(name), sign))
            title = f"how the answers differ{_numbers(numbers)}{': ' if models else ''}"
            yield StyledLine((StyledSpan(title, "heading"), *marks))
            yield from stretch_lines(stretches)
        else:
            sides = [f"of {safe(name)}" for name in models] if models else ["before", "after"]
            for side, text, colour, number in zip(
                sides, (old, new), ("old", "new"), numbers, strict=True
            ):
                title = f"answer {side}{_numbers([number])}"
                yield StyledLine((StyledSpan(title, colour),))
                yield from text_lines(text)


def _number(result: Result | None, session: str | None) -> str:
    """Return which of several answers is shown: `2 of 5`; empty when there is one."""
    if result is None or len(result.sessions) < 2 or session not in result.sessions:
        return ""
    return f"{result.sessions.index(session) + 1} of {len(result.sessions)}"


def _numbers(numbers: Iterable[str]) -> str:
    """Return the numbers of the answers of both sides in brackets."""
    known = dict.fromkeys(number for number in numbers if number)
    return f" ({' -> '.join(known)})" if known else ""


def stretch_lines(stretches: Iterable[Stretch]) -> Iterator[StyledLine]:
    """Yield two texts as one, with removed and new words in their signs."""
    spans: list[StyledSpan] = []
    for kind, text in stretches:
        for number, part in enumerate(safe(text, lines=True).expandtabs(4).split("\n")):
            if number:
                yield StyledLine(tuple(spans))
                spans = []
            spans += [StyledSpan(part)] if kind == "same" else marked_spans(part, kind)
    yield StyledLine(tuple(spans))
