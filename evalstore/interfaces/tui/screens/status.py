"""The pending work: changes since the last run, what a run would do, why, and its price."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.containers import Container

from evalstore.core.display import StyledLine, StyledSpan, heading, plural, safe, text_lines
from evalstore.core.errors import EvalstoreError, Problem, WorkspaceError
from evalstore.interfaces.tui.render.documents.reading import READING, reading_text
from evalstore.interfaces.tui.render.pending_lines import (
    LEFT,
    WARNINGS,
    LineTexts,
    PendingLine,
    PendingLines,
    Title,
    pending_lines,
)
from evalstore.interfaces.tui.screens.actions import CaseActionsPage
from evalstore.interfaces.tui.screens.other_runs import OtherRuns
from evalstore.interfaces.tui.screens.reading_news import news_to
from evalstore.interfaces.tui.widgets.footer import FooterHint, KeyFooter
from evalstore.interfaces.tui.widgets.grid import Grid
from evalstore.interfaces.tui.widgets.grid_lines import StyledCell
from evalstore.interfaces.tui.widgets.text_view import TextView
from evalstore.planning.status.status_report import Status
from evalstore.results.compare.diff_text import ROW_ID_HINT
from evalstore.results.table.editable_files import EditPlace
from evalstore.runs.status.status_text import nothing_text, pending_text, unrecorded_text
from evalstore.store.wanted import telling

_UNDONE = LEFT, WARNINGS
"""The sections that no run does."""
_MOST_SAVED = 100_000


class StatusPage(CaseActionsPage):
    """Each thing a run would do, with its reason; or what is wrong with the files."""

    FOOTER = (
        FooterHint("Run", "page.run"),
        FooterHint("", "list.open"),
        FooterHint("Edit", "case.edit"),
        FooterHint("", "page.copy"),
        FooterHint("", "page.save"),
    )
    TITLE = "Pending work"
    WAY = "{history.status} on the runs, the cases or an answer"
    HELP = """\
Each question that a run would ask and each verdict that it would get, with the reason and the
price; or what is wrong with the files. Details of the line under the cursor are below, or at the
right in a wide terminal. A line below the title (▶) names each run that another program carries
out; what it has not done yet is also listed here."""
    PANELS: ClassVar[Mapping[str, str]] = {"items": "Items", "details": "Details"}
    DEFAULT_CSS = """
    StatusPage {
        & > #panels > #items { height: 2fr; }
        &.-broad > #panels > #items { height: 1fr; }
    }
    """
    export_name = "status"

    def __init__(self) -> None:
        super().__init__()
        self._lines = PendingLines()
        self._status: Status | None = None
        self._texts = LineTexts(self._lines, {})

    def compose(self) -> ComposeResult:
        """Lay out the list above what the highlighted line is about."""
        yield self.title_line()
        yield self.problem_line()
        yield OtherRuns(self.source.store.other_runs)
        yield self.empty_state()
        with Container(id="panels"):
            yield Grid(id="items")
            yield TextView(id="details").add_class("detail")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Read the workspace."""
        self.query_one(Grid).opens = lambda row: not isinstance(self._lines[row], Title)
        self.set_title("pending work", READING)
        self.query_one(Grid).focus()
        self.reload(stay=False)

    def reload(self, *, stay: bool = True) -> None:
        """Read the workspace again."""
        highlighted = self._highlighted

        def read() -> _Read:
            with telling(news_to(self, reading_text, self._show_reading)):
                status, lines = self._read()
            texts = LineTexts(lines, status.prompts if status else {})
            return _Read(status, lines, texts, highlighted, lines.place_of(highlighted))

        self.fetch(read, self._show)

    def _show_reading(self, text: str) -> None:
        """Show how far the first reading has come."""
        if not self._lines:
            self.set_title("pending work", text)

    def _read(self) -> tuple[Status | None, PendingLines]:
        """Return the status with its lines; without one, the problems of the files."""
        try:
            status = self.source.status()
        except WorkspaceError as error:
            problems = sorted(error.problems, key=lambda problem: problem.severity != "error")
            title = Title(plural(len(problems), "problem"), "in the files")
            return None, PendingLines([title, *problems])
        return status, pending_lines(status)

    def _show(self, read: _Read) -> None:
        cursor, before = read.cursor, self._highlighted
        status, self._status, self._lines, self._texts = read.status, *read[:3]
        if before != read.highlighted:  # the cursor was moved meanwhile
            cursor = self._lines.place_of(before)
        if status is None:
            self.set_title("pending work", self._texts.file, "nothing, until the files are fixed")
            self.set_empty("")
        else:
            summary = _summary(status)
            reused = f"{status.reuse:,} reused" if status.reuse else ""
            self.set_title("pending work", summary, self._texts.file, (reused, ""))
            self.set_empty("" if self._lines else nothing_text(status) + self.with_keys(_EDIT_HINT))
        self._show_lines(cursor)
        if self._lines and self.focused is None:  # there was nothing to be focused
            self.query_one(Grid).focus()
        self.refresh_bindings()

    def _show_lines(self, cursor: int | None) -> None:
        grid = self.query_one(Grid)
        self.query_one("#panels").display = bool(self._lines)
        grid.fit_height(len(self._lines))
        place = 1 if cursor is None else cursor
        grid.show(self._texts.columns, len(self._lines), self._cells, cursor=place)

    def refresh_ages(self) -> None:
        """Draw the list again: its first line says how long ago the last run was."""
        if self._status is not None:
            self._lines = self._lines.renewed(self._status)
            self.query_one(Grid).refresh()
            self.query_one("#details", TextView).show(self._detail_lines(), stay=True)

    @property
    def _highlighted(self) -> PendingLine | None:
        number = self.query_one(Grid).cursor
        return self._lines[number] if number < len(self._lines) else None

    def _cells(self, row: int) -> Sequence[StyledCell]:
        item = self._lines[row]
        if isinstance(item, Title):
            return (StyledCell(item.text, "group"),)
        kind = ""
        if isinstance(item, Problem):
            kind = "error" if item.severity == "error" else "pending"
        colours = (kind, "", "", "faint", "faint", "")
        cells = [StyledCell(*cell) for cell in zip(self._texts.of(item), colours, strict=True)]
        cells[2] = cells[2]._replace(group=item.file)
        cells[3] = cells[3]._replace(plain=getattr(item, "model", ""))
        cells[4] = cells[4]._replace(plain=getattr(item, "evaluator", "") or "")
        return cells

    # --- the highlighted line

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether the action is available; those on answers are not, as there are none.

        Without pending work there is nothing to run, and without a file nothing to edit.
        """
        is_read = self._status is not None
        if action == "edit" and is_read and all(isinstance(line, Title) for line in self._lines):
            return False
        is_idle = is_read and self._lines[:1] in ([], [Title(WARNINGS)])
        if action == "run" and is_idle and not self.browser.runs.is_running:
            return False
        return action not in _ON_ANSWERS and super().check_action(action, parameters)

    @on(Grid.Moved, "#items")
    def follow_cursor(self) -> None:
        """Show the details of the highlighted line."""
        self.query_one("#details", TextView).show(self._detail_lines())

    def action_save(self) -> None:
        """Ask for a name, and write the list into a new file, unless it is very long."""
        count = len(self._lines)
        if count > _MOST_SAVED:
            hint = "'evalstore status --json' writes all of them"
            self.warn(EvalstoreError(f"{count:,} lines are too many to be saved here", hint=hint))
        else:
            super().action_save()

    def _detail_lines(self) -> Iterator[StyledLine]:
        from evalstore.planning.status.status_report import FileChange

        line = self._highlighted
        if isinstance(line, Problem):
            yield heading(line.place)
            yield from text_lines(line.message, "error")
            if line.excerpt is not None:
                yield from text_lines(line.excerpt, "faint", 4)
            if line.hint:
                yield from text_lines(f"hint: {line.hint}")
            yield from text_lines(self.with_keys("{case.edit} opens the file here."), "faint")
        elif isinstance(line, Title):
            yield heading(line.text)
            if self._lines.section_of(self.query_one(Grid).cursor) not in _UNDONE:
                does = "{page.run} does it, after it has shown the price."
                yield from text_lines(self.with_keys(does), "faint")
        elif line is not None:
            row = "" if isinstance(line, FileChange) else self._texts.row_of(line)
            yield heading(f"{line.file} {row}".rstrip())
            models = (getattr(line, name, None) for name in ("model", "evaluator"))
            names = " by ".join(name for name in models if name)
            if names:
                yield from text_lines(names, "faint")
            yield from text_lines(self._texts.of(line)[-1])
            if isinstance(line, FileChange) and line.may_be_edited_rows:
                yield from text_lines(f"({ROW_ID_HINT})", "faint")
            for name, text, colour in (("was", line.was, "old"), ("now", line.now, "new")):
                if text is not None:
                    spans = StyledSpan(f"{name}  ", "faint"), StyledSpan(safe(text), colour)
                    yield StyledLine(spans, hang=len(name) + 2)

    @on(Grid.Chosen, "#items")
    def open_line(self) -> None:
        """Open a file of the line."""
        self.action_edit()

    @property
    def edited_place(self) -> EditPlace | None:
        """Return the case of the highlighted line, with the reason, or the line of a problem."""
        line = self._highlighted
        if line is None or isinstance(line, Title):
            return None
        if isinstance(line, Problem):
            return EditPlace(line.file, line.line or 1)
        row, prompt = getattr(line, "row", ""), getattr(line, "prompt", None)
        return EditPlace(line.file, None, row, prompt, line.reason)

    @property
    def copy_text(self) -> tuple[str, str]:
        """Return the place of the highlighted line, as a command line names it."""
        line = self._highlighted
        if line is None or isinstance(line, Title):
            return "", ""
        if isinstance(line, Problem):
            return line.place, "the place"
        row = getattr(line, "row", "")
        return f"{line.file}::{row}" if row else line.file, "the case"


class _Read(NamedTuple):
    """What was read."""

    status: Status | None
    """None: the files have problems."""
    lines: PendingLines
    texts: LineTexts
    highlighted: PendingLine | None
    """The line that had the cursor when the reading began."""
    cursor: int | None
    """Where that line is now; None if it is gone."""


def _summary(status: Status) -> str:
    """Return what a run would do in few words."""
    if status.is_any or status.untrusted:
        return pending_text(status, brief=True)
    return unrecorded_text(status) if status.labels else "nothing"


_ON_ANSWERS = ("label", "unlabel", "judge_again", "copy_answer")
"""Actions on answers, which the lines of this page do not have."""


_EDIT_HINT = "\n\n{case.edit} in the cases edits a test; {history.status} then shows what it means."
