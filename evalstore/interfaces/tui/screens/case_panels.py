"""The parts of the page of cases: the case under the cursor in short, and the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias, cast

from evalstore.comparison.statistics import Rate
from evalstore.core.display import (
    BLANK,
    StyledLine,
    StyledSpan,
    case_name,
    columns_of,
    heading,
    one_line,
    plural,
    short_names,
    text_lines,
    verdict_counts,
    whole_percent,
)
from evalstore.core.values import Decision, Result
from evalstore.interfaces.tui.case_filter import (
    FilteredCases,
    Query,
    stem,
)
from evalstore.interfaces.tui.case_listing import CaseGroup, CaseListing
from evalstore.interfaces.tui.grid import Column, StyledCell
from evalstore.interfaces.tui.page_lines import READING, TitlePart
from evalstore.interfaces.tui.render.answer import (
    IMAGE_WIDTH,
    MISSING,
    attempt_of,
    block_lines,
    lack_lines,
    place_lines,
    reason_lines,
    render_images,
    verdict_lines,
)
from evalstore.interfaces.tui.render.charts import spark_spans, spark_words
from evalstore.interfaces.tui.render.verdicts import (
    MOST_OF_FEEDBACK,
    candidate_lines,
    history_spans,
    question_lines,
    result_cell,
    verdict_cell,
)
from evalstore.interfaces.tui.screens.base import Page
from evalstore.interfaces.tui.text_view import TextView
from evalstore.results.answer.answer import AnswerView
from evalstore.results.answer.answer_text import conversation
from evalstore.results.answer.judgements import failed_text
from evalstore.results.table.cases import CaseRow, Cases

_LINES, _CHARACTERS = 300, 10_000
"""How much of an answer is shown."""
_QUESTION_LINES = 3
"""Lines of the message that was answered."""


Lines: TypeAlias = "Sequence[StyledLine]"


def _exchange(
    page: Page, view: AnswerView, images: Mapping[str, Lines], *, rendered: bool
) -> Iterator[StyledLine]:
    """Yield the last message that was answered in short, and the beginning of the answer."""
    blocks = list(zip(conversation(view), view.conversation, strict=True))
    users = [block for block, turn in blocks if turn.role == "user" and turn.answer is None]
    for block in users[-1:]:
        yield from question_lines(block.text, _QUESTION_LINES)
        for line in (line for id in block.files for line in images.get(id, ())):
            yield line._replace(indent=2)
    for block, _ in (it for it in blocks[-1:] if it[1].answer):
        start = "\n".join(block.text[:_CHARACTERS].split("\n")[:_LINES])
        yield BLANK
        yield from block_lines(block._replace(text=start), images, rendered=rendered)
        if left := len(block.text) - len(start):
            words = f"… {plural(left, 'more character')}{page.with_keys(_CUT)}"
            yield from text_lines(words, "faint", 2)


# --- reads it while the cursor stays


_READING_PAUSE = 0.06
"""An answer is read when the cursor has stayed on its case for so long."""
_FEEDBACK = "feedback"
"""The id of the widget, and the group of its readings."""
_CUT = ": {list.open} shows all of it"


class CaseReader(TextView):
    """Reads an answer in a thread when the cursor stays; one that was left is not shown."""

    history: Callable[[Result], Sequence[str]]
    """Returns the last verdicts of a result."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._shown: tuple[str, str, str, int] | None = None
        """The case and the candidate that are shown."""
        self._show_again: Callable[[], None] = self.clear
        self._has_room: bool | None = None
        """Whether the answer was prepared for a pane in which images have room."""

    @property
    def _page(self) -> Page:
        return cast("Page", self.screen)

    def clear(self) -> None:
        """Show nothing."""
        self._page.end_pause(_FEEDBACK)
        self._has_room = None
        self._shown = None
        self.show(())

    def on_unmount(self) -> None:
        """Forget the case of a page that was left."""
        self._show_again = self.clear

    def show_case(self, cases: Cases | None, case: CaseRow | None, picked: int) -> None:
        """Show the answer of the picked candidate; until it is read, the verdicts on all."""
        if cases is None or case is None:
            self.clear()
            return
        place = case.file, case.row, case.prompt, picked
        stays = place == self._shown  # the same case was read again
        self._shown = place
        if not stays:
            self.show(self._verdict_lines(cases, case, range(len(case.results)), {}))
        self._page.end_pause(_FEEDBACK)
        self._show_again = partial(self.show_case, cases, case, picked)
        read = partial(self._read, cases, case, picked, stays=stays)
        self._page.pause(_FEEDBACK, _READING_PAUSE, read)

    def refresh_ages(self) -> None:
        """Show the answer again, where the reader is in it."""
        if self._has_room is not None and _FEEDBACK not in self._page.pauses:
            self._show_again()

    def on_resize(self) -> None:
        """Show the answer again if the new width of the pane has room for images, or none."""
        if self._has_room not in (None, self.text_width > IMAGE_WIDTH):
            self._show_again()

    def _verdict_lines(
        self,
        cases: Cases,
        case: CaseRow,
        candidates: Iterable[int],
        feedback: Mapping[Decision, str],
    ) -> Iterator[StyledLine]:
        """Yield the case, and the verdicts on some candidates with their reasons."""
        yield heading("  ".join((case_name(case.file, case.row, case.prompt), *case.tags)))
        for result in filter(None, (case.results[number] for number in candidates)):
            yield BLANK
            reasons, last = feedback.get(result.decision, ""), self.history(result)
            yield from candidate_lines(result, cases.labels, reasons, last)

    def _read(self, cases: Cases, case: CaseRow, picked: int, *, stays: bool) -> None:
        page, place = self._page, self._shown
        result = case.results[picked] if picked < len(case.results) else None
        others = [number for number in range(len(case.results)) if number != picked]
        self._has_room = self.text_width > IMAGE_WIDTH
        shows_images = not page.app.no_color and self._has_room

        def read() -> tuple[Lines, Lines]:
            source = page.source
            feedback = source.feedback(it.decision for n in others if (it := case.results[n]))
            name, *below = self._verdict_lines(cases, case, others, feedback)
            if result is None:
                return [name, *below], [name, *below]
            shown = result.sessions[cases.shown_attempt(result)] if result.sessions else None
            view = source.answer(result, shown, cases.run)
            images = render_images(view, source.files_of_test) if shows_images else {}
            mixed = cases.mixed.get(result.evaluations)
            head = [*place_lines(case, result, attempt_of(view, result), cases.labels, mixed)]
            head += reason_lines(view)  # the verdicts in full may not be seen below the answer
            verdicts = [
                *lack_lines(view, result, page.with_keys(MISSING)),
                *verdict_lines(view, MOST_OF_FEEDBACK),
                *[StyledLine(it) for it in [tuple(history_spans(self.history(result)))] if it],
            ]
            shown_as, written = (
                [*head, *_exchange(page, view, images, rendered=it), *verdicts, *below]
                for it in (True, False)
            )
            return shown_as, written

        def show(texts: tuple[Lines, Lines]) -> None:
            if place == self._shown:
                lines, written = texts
                self.show(lines, stay=stays, written=written)

        page.fetch(read, show, group=_FEEDBACK)


# --- the table: its title, its columns, and the cells of a line


_LAST_VERDICTS = 9
"""The width of the last verdicts."""
_VERDICT, _MARKED = 6, 11
"""The least width of a candidate's column; that with a short name, or signs behind verdicts."""


def case_title(
    revision: str | None, listing: CaseListing, query: Query, progress: str
) -> Iterator[TitlePart]:
    """Yield the parts of the title: the run, how many cases are listed, and how.

    In a narrow terminal, verdicts are signs alone, and a run has no id beside its name.
    """
    name, run = f"run {revision[:8]}" if revision else "workspace", None
    if revision and listing.cases and not (listing.cases.run or revision).startswith(revision):
        run = listing.cases.run
    yield (f"run {run[:8]} ({revision})", name) if run else name
    yield "" if listing.grouping == "file" else listing.only_file
    if listing.cases is None or listing.filtered is None:
        yield READING
        return
    is_filtered = len(listing.matching) < len(listing.cases.rows) or listing.is_limited
    part = f"{listing.case_count:,} of " if is_filtered else ""
    if listing.cases.is_cut:
        part = "the first " + (part.replace("of", "that match, of") if query.conditions else part)
    count = f"{part}{plural(listing.total, 'case')}"
    lines = len(listing.matching)
    yield (f"{count}, {plural(lines, 'line')}" if lines != listing.case_count else count), count
    yield progress
    yield from (message for message, _ in listing.filtered.complaints(query))
    of = _of_candidates(listing, listing.cases.models, query)
    yield verdict_counts(listing.verdicts) + of, verdict_counts(listing.verdicts, words=False) + of
    yield "" if listing.order == "file" else f"by {listing.order}"


def _of_candidates(listing: CaseListing, models: Sequence[str], query: Query) -> str:
    """Return whose verdicts are counted, when the filter is not about all that have a column."""
    meant = listing.candidates(query)
    shown = range(len(models)) if listing.answered is None else listing.answered
    if not listing.verdicts or not set(shown) - set(meant):
        return ""
    names = short_names(models)
    return f" of {names[meant[0]]}" if len(meant) == 1 else f" of {len(meant)} candidates"


def case_columns(
    listing: CaseListing,
    picked: int = 0,
    rates: Sequence[Rate] = (),
    whole: Sequence[Rate] = (),
    with_history: bool = False,
) -> list[Column]:
    """Return the file, the row, a column for each candidate, and perhaps the last verdicts.

    `rates` are the pass rates of the candidates, for the line at the top; if verdicts or words have
    chosen the cases, `whole` are those in all cases. The last verdicts are those on the `picked`
    candidate.
    """
    cases, filtered = listing.cases, listing.filtered
    if cases is None or filtered is None:
        return []
    sizes, by_file = filtered.sizes, listing.by_file
    short = [one_line(name) for name in short_names(cases.models)]
    figures = _figures(rates, whole) if len(rates) == len(short) else [""] * len(short)
    heads = [f"{name}\n{text}".rstrip() for name, text in zip(short, figures, strict=True)]
    models = [
        replace(
            _model_column(cases, filtered, number, head),
            is_empty=listing.answered is not None and number not in listing.answered,
        )
        for number, head in enumerate(heads)
    ]
    unnamed = sizes.unnamed & {listing.only_file} if listing.only_file else sizes.unnamed
    return [
        Column("file", 0 if by_file else sizes.file, least=9, is_name=True),
        Column(
            "row",
            max(sizes.row, sizes.stem * by_file),
            least=8,
            is_name=True,
            head="case" if by_file and unnamed else "",
        ),
        *models,
        Column(
            "last runs",
            _LAST_VERDICTS * with_history,
            rank=1,
            is_saved=False,
            head=f"last runs\n{short[picked]}" if 1 < len(short) > picked else "",
        ),
    ]


def _model_column(cases: Cases, filtered: FilteredCases, number: int, head: str) -> Column:
    """Return the column of a candidate; narrow, it has room for its verdicts and its pass rate."""
    model = cases.models[number]
    verdict = max([_VERDICT, *(columns_of(verdict_cell(it).text) for it in filtered.words[number])])
    # With room for the sign of a person, and for a number of attempts:
    marked = verdict + 3 * (model in cases.labelled) + 4 * (model in cases.mixed_models)
    name, *figures = head.split("\n")
    named = columns_of(name) if columns_of(name) <= _MARKED else 0
    least = max([verdict, named, min(marked, _MARKED), *map(columns_of, figures)])
    width = max(least, marked, columns_of(name))
    return Column(model, width, picks=True, least=least, head=head)


def _figures(rates: Sequence[Rate], whole: Sequence[Rate]) -> list[str]:
    """Return for each candidate its pass rate with its interval in percent: `64% 50-80`.

    A `~` is in front of that of a candidate with fewer verdicts than another. If verdicts or words
    have chosen the cases, it is how many of them pass, and the rate in all: `10 of 50 (64%)`.
    """
    if len(whole) == len(rates):
        shares = ("" if it.rate is None else f" ({whole_percent(it.rate)})" for it in whole)
        counts = (f"{it.passed:,} of {it.judged:,}" if it.judged else "" for it in rates)
        return [f"{count}{share}".strip() for count, share in zip(counts, shares, strict=True)]
    most, figures = max((rate.judged for rate in rates), default=0), []
    for rate in rates:
        text = "" if rate.rate is None else f"{rate.passed:,} of {rate.judged:,}"
        if rate.rate is not None and rate.interval is not None:
            low, high = rate.interval
            partial = "~" if rate.judged < most else ""
            text = f"{partial}{whole_percent(rate.rate)} {100 * low:.0f}-{100 * high:.0f}"
        figures.append(text)
    return figures


def case_cells(
    cases: Cases,
    line: CaseRow | CaseGroup,
    width: int,
    history: Sequence[str] = (),
    *,
    by_file: bool = False,
) -> Sequence[StyledCell]:
    """Return a cell for each column; of a group, one cell as wide as the table.

    `history` are the last verdicts of the case. Below the name of its file (`by_file`), a case
    without a name has that of the file.
    """
    if isinstance(line, CaseGroup):
        return (StyledCell(line.text(width - 1), "group"),)
    label = line.label
    if by_file and not label:
        name = StyledCell("", parts=(StyledSpan(stem(line.file), "faint"),))
    else:
        name = StyledCell(label)
    return (
        StyledCell(line.file),
        name,
        *(
            StyledCell("") if result is None else _result_cell(cases, result)
            for result in line.results
        ),
        StyledCell(spark_words(history), parts=spark_spans(history)),
    )


def _result_cell(cases: Cases, result: Result) -> StyledCell:
    """Return the verdict, with the sign of a person who decided it or labelled it after the run.

    Of attempts that differ, the number of those that have this verdict is behind it.
    """
    mixed = cases.mixed.get(result.evaluations)
    if not mixed:
        return result_cell(result, cases.labels)
    alike = mixed.passed if result.verdict == "pass" else mixed.total - mixed.passed
    failing = failed_text(mixed.total - mixed.passed, mixed.total)
    cell = result_cell(result, cases.labels, f" {alike}/{mixed.total}")
    word = result.word or "answered"
    return cell._replace(plain=f"{word}, {failing}{(cell.plain or word).removeprefix(word)}")
