"""The parts of the page of cases: the typed filter, the case under the cursor, the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from textual.widgets import Input

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
from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Decision, Result
from evalstore.interfaces.tui.case_filter import (
    NO_MATCH,
    FilteredCases,
    LookedUp,
    Query,
    StoreLookup,
    read_query,
    stem,
)
from evalstore.interfaces.tui.case_listing import CaseGroup, CaseListing
from evalstore.interfaces.tui.grid import Column, Grid, StyledCell
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
from evalstore.results.answer.answer_text import conversation
from evalstore.results.answer.judgements import failed_text
from evalstore.results.table.cases import CaseRow, Cases, CaseWindow
from evalstore.store.revisions import WORK

if TYPE_CHECKING:
    from evalstore.results.answer.answer import AnswerView
    from evalstore.results.flips.verdict_changes import BrokenResults


_SEARCH = "search"
_PAUSE_SECONDS = 0.15
"""A search begins when nothing has been typed for so long."""
_LONG_PAUSE_SECONDS = 0.4
"""The same, where many cases are looked at."""
_LOOKING = "looking at all cases …"
_INDEXING = "searching … {}% of the index is made"
_SINCE = "\nA case broke if its last verdict before, also in a partial run, was a pass."
_ELSEWHERE = "\n{page.search} searches the texts of all runs."


class ReadCases(NamedTuple):
    """Cases that were read, with what was found for a filter."""

    cases: Cases
    filtered: FilteredCases
    query: Query
    matches: LookedUp | None
    """What was looked up; None when that failed."""


class TextFilter:
    """The filter that is typed, and its matches.

    Names are filtered at once. Texts are searched in a thread after a pause in typing; until
    they are found `progress` says so.
    """

    def __init__(
        self,
        page: Page,
        listing: CaseListing,
        *,
        show_matches: Callable[[], None],
        show_progress: Callable[[], None],
    ) -> None:
        """`show_matches` is called when the filter or what it finds has changed."""
        self._page = page
        self._listing = listing
        self._show_matches = show_matches
        self._show_progress = show_progress
        self.query = read_query("")
        self.matches = LookedUp()
        """What was looked up for the filter."""
        self.run: str | None = None
        """The run whose cases are filtered; None: the workspace."""
        self.came_with = ""
        """The filter that the page was opened with."""
        self.is_changed = False
        """Whether it was changed, and no candidate that matches it was selected since."""
        self.progress = ""
        """A text while texts are searched."""

    @property
    def _line(self) -> Input:
        return self._page.query_one("#filter", Input)

    # --- typing

    def open(self) -> None:
        """Show the line, and give it the focus."""
        line = self._line
        line.display = True
        self._page.set_focus(line)  # at once: what is typed next belongs to it

    @property
    def typed(self) -> str:
        """Return the filter as it was typed; empty without one."""
        return self._line.value.strip() if self.query.conditions else ""

    def set(self, typed: str) -> None:
        """Filter as if this had been typed."""
        line = self._line
        line.value = typed
        line.display = bool(typed)

    def change(self, typed: str) -> None:
        """Filter by this, as it is typed."""
        self.query, self.is_changed = read_query(typed), True
        words = (f'"{word}"' if " " in word else word for word in self.query.words)
        self._page.search_words = " ".join(words)
        if self._listing.is_limited:  # those that match are read
            self._stop_search()
            self._page.workers.cancel_group(self._page, "read")  # for what was typed before
            self.progress = _LOOKING
            self._page.pause(_SEARCH, _LONG_PAUSE_SECONDS, self._page.reload)
        else:
            self.search()
        self._show_matches()

    def leave_line(self) -> None:
        """Go back to the table, which stays filtered."""
        self._page.query_one(Grid).focus()
        self._line.display = bool(self.query.conditions)

    @property
    def goes_first(self) -> bool:
        """Return whether the key that leaves the page removes the filter first.

        A filter that the page was opened with goes with the page, unless it is being typed.
        """
        line = self._line
        is_there = line.display or bool(self.query.conditions)
        return line.has_focus or (is_there and line.value != self.came_with)

    def remove(self) -> None:
        """Remove the filter, and close its line."""
        line = self._line
        line.value = ""
        line.display = False
        self._page.query_one(Grid).focus()

    def show_table(self, *, is_shown: bool) -> None:
        """Show the table or hide it; shown again it has the focus, unless the filter is typed."""
        panels = self._page.query_one("#panels")
        is_back = is_shown and not panels.display
        panels.display = is_shown
        if is_back and not self._line.has_focus:  # hidden, it had lost it to another panel
            self._page.query_one(Grid).focus()

    def why_empty(self, filtered: FilteredCases) -> str:
        """Return why no case matches, and where else there may be texts with the words."""
        is_searching = bool(self.progress)
        reason = filtered.why_empty(self.query, is_searching=is_searching)
        if reason == NO_MATCH:
            reason += _SINCE if self.query.is_about_broken else ""
            does = "removes the filter" if "page.back" in self._page.footer_words else "leads back"
            reason += f"\nEscape {does}."
        if self.query.words and not is_searching:
            reason += self._page.with_keys(_ELSEWHERE)
        return reason

    # --- searching

    def read(self, query: Query) -> ReadCases:
        """Read the cases, of many those that a query wants, in this thread."""
        store = self._store(self._reporter(query, _INDEXING))
        report = self._reporter(query, f"{_LOOKING} {{}}%")

        def wants(cases: Cases) -> Sequence[CaseRow]:
            filtered = FilteredCases(cases)
            return filtered.select(query, "file", filtered.look_up(query, store))

        window = CaseWindow(wants, report) if query.conditions else CaseWindow(report=report)
        cases = self._page.source.cases(self.run, window)
        filtered = FilteredCases(cases)
        _ = filtered.sizes  # in this thread
        matches: LookedUp | None = None
        with suppress(EvalstoreError):  # it is searched again, and shown then
            matches = filtered.look_up(query, store)
        return ReadCases(cases, filtered, query, matches)

    def _reporter(self, query: Query, words: str) -> Callable[[int, int], bool]:
        """Return what shows the progress of this thread while the query is the filter."""

        def show(text: str) -> None:
            if self.progress and query is self.query:
                self.progress = text
                self._show_progress()

        return self._page.reporter(words, show)

    def _store(self, report: Callable[[int, int], bool]) -> StoreLookup:
        """Return what looks everything up once for the cases, while `report` returns True."""
        source, run = self._page.source, self.run or WORK

        def broken() -> BrokenResults:
            from evalstore.results.table.cases import find_broken_results

            return find_broken_results(source.location, run)

        return StoreLookup(
            cache(lambda words, alone: source.search(words, report, in_answers=alone)),
            cache(broken),
        )

    def load(self, read: ReadCases) -> None:
        """Take what was found for cases that are listed now, unless something else was typed."""
        is_same = read.query is self.query
        if is_same and read.matches is not None:
            self._stop_search()
            self.progress, self.matches = "", read.matches
        elif is_same or not self._listing.is_limited:
            self.search()
        if typed := self._listing.filter_for_start():
            self.set(typed)

    def search(self) -> None:
        """Search the words in answers, feedback and tests; the last request wins."""
        if self._listing.filtered is None:
            return
        self._stop_search()
        query = self.query
        is_by_words = any(it.field in ("text", "answer") for it in query.conditions)
        self.progress = "searching …" if is_by_words or query.is_about_broken else ""
        if self.progress:
            self._page.pause(_SEARCH, _PAUSE_SECONDS, lambda: self._search(query))

    def _stop_search(self) -> None:
        self._page.end_pause(_SEARCH)
        self._page.workers.cancel_group(self._page, _SEARCH)

    def _search(self, query: Query) -> None:
        filtered = self._listing.filtered
        assert filtered is not None

        def read() -> LookedUp:
            return filtered.look_up(query, self._store(self._reporter(query, _INDEXING)))

        def show(matches: LookedUp) -> None:
            if query is self.query:
                self.progress, self.matches = "", matches
                self._show_matches()

        self._page.fetch(read, show, group=_SEARCH)

    def stop(self) -> None:
        """Show that nothing is searched any more, because it failed."""
        self.progress = ""
        self._show_progress()


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
