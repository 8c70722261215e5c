"""The pending work: changes since the last run, what a run would do, why, and its price."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple, TypeAlias

from textual import on
from textual.app import ComposeResult

from evalstore.core.display import (
    StyledLine,
    StyledSpan,
    heading,
    planned_judgements,
    plural,
    safe,
    short_names,
    text_lines,
    widest,
)
from evalstore.core.errors import Problem, WorkspaceError
from evalstore.interfaces.tui.grid import Column, Grid, StyledCell, only_file
from evalstore.interfaces.tui.page_lines import READING, FooterHint
from evalstore.interfaces.tui.render.run import left_lines
from evalstore.interfaces.tui.screens.actions import CaseActionsPage, OtherRuns
from evalstore.interfaces.tui.text_view import TextView
from evalstore.planning.plan import PlanItem, SummedItems
from evalstore.planning.status_report import FileChange, Status
from evalstore.results.names import EditPlace
from evalstore.runs.status.status_text import (
    ROW_ID_HINT,
    change_text,
    edit_text,
    labels_text,
    left_text,
    nothing_text,
    outcome_text,
    pending_text,
    reason_text,
    unrecorded_text,
)

_MOST = 5_000
"""Lines of each kind that are listed."""
_KINDS = ("ask", "ask"), ("record", "take"), ("judge", "judge")
"""The kinds of items in their order, with the first word of their titles."""


class Title(NamedTuple):
    """A line above those that belong together."""

    text: str
    is_undone: bool = False
    """Whether no run does what it says."""


_WARNINGS = Title("warnings", is_undone=True)
PendingLine: TypeAlias = "Title | FileChange | PlanItem | Problem"


def pending_lines(status: Status) -> tuple[list[PendingLine], set[str]]:
    """Return the lines of a status, of many items the first, and the files that all are of."""
    lines: list[PendingLine] = []
    files: set[str] = set()
    if (status.changes or status.edits) and status.last_run:
        lines += [Title(f"changed since run {status.last_run[:8]}"), *status.changes]
        lines += (
            Title(f"{edit.code} {edit.of}  {edit_text(status, edit)}") for edit in status.edits
        )
        files.update(change.file for change in status.changes)
    may_be_less = status.may_judge_less
    for kind, name in _KINDS if status.items else ():
        if of_kind := SummedItems(status.items, kind):
            count = plural(of_kind.total, "recorded answer" if kind == "record" else "answer")
            if kind == "judge":
                by_checks = of_kind.by_checks if may_be_less else 0
                count = planned_judgements(of_kind.total, by_checks, may_be_less=may_be_less)
            lines += [Title(f"{name} {count}"), *of_kind[:_MOST]]
            files |= of_kind.files.keys()
            if (more := len(of_kind) - _MOST) > 0:
                lines.append(Title(f"… {more:,} more lines: 'evalstore status --json' has all"))
    return [*lines, *_other_lines(status)], files


def _other_lines(status: Status) -> Iterator[Title]:
    """Yield what a run would record, what it leaves undone, and warnings."""
    if outcome := outcome_text(status):
        yield Title(f"record {outcome}")
    if status.labels:
        yield Title(f"record {labels_text(status)}")
    rest = [line.spans[0].text for line in left_lines(status) if line.spans]
    if rest:
        is_left = left_text(status) or status.untrusted or status.skipped
        yield Title("left undone", is_undone=True) if is_left else _WARNINGS
        for text in rest:
            yield Title(text, is_undone=True)


# --- the columns of the pending work, and the texts of its lines


_TITLES = ("what", "file", "row", "candidate", "by", "why")
_LEAST = (0, 13, 25, 9, 9, 10)
"""How narrow each column may become."""


class LineTexts:
    """The texts of lines, with short names of the candidates and evaluators."""

    def __init__(
        self,
        lines: Sequence[PendingLine],
        files: Iterable[str],
        prompts: Mapping[str, Mapping[str | None, str]],
    ) -> None:
        """`prompts` has for test files with several system prompts what to call each."""
        items = [line for line in lines if isinstance(line, PlanItem)]
        judges = (item.evaluator for item in items if item.evaluator)
        names = list(dict.fromkeys(["", *(item.model for item in items), *judges]))
        self._models = dict(zip(names, short_names(names), strict=True))
        self._prompts = prompts
        self.file = only_file(files)
        """The file that all lines are of, if there is only one."""
        texts = [self.of(line) for line in lines if not isinstance(line, Title)]
        self.columns = _columns(texts, bool(self.file))

    def of(self, item: FileChange | PlanItem | Problem) -> tuple[str, ...]:
        """Return the texts of a line, one for each column."""
        if isinstance(item, Problem):
            place = "" if item.line is None else f"line {item.line}"
            return item.severity, item.file, place, "", "", item.message
        if isinstance(item, FileChange):
            return item.letters, item.file, "", "", "", change_text(item)
        count = f" ({item.count}x)" if item.count > 1 else ""
        return (
            *(item.kind, item.file, self.row_of(item), self._models[item.model]),
            *(self._models[item.evaluator or ""], reason_text(item) + count),
        )

    def row_of(self, item: PlanItem) -> str:
        """Return the row, and the system prompt where the file has several."""
        prompt = self._prompts.get(item.file, {}).get(item.prompt)
        return f"{item.row} ({prompt})".lstrip() if prompt else item.row


def _columns(texts: Sequence[Sequence[str]], has_one_file: bool) -> list[Column]:
    """Return the columns; there is none without a text, and none for a file that is the only one.

    That of who judges is left out first.
    """
    widths = [widest(column) for column in zip(*texts, strict=True)] or [0] * len(_TITLES)
    widths[1] *= not has_one_file  # the title names it
    return [
        Column(
            title,
            width and max(width, len(title)),
            least=least,
            rank=int(title == "by"),
            is_name=title in ("file", "row", "candidate"),
        )
        for title, width, least in zip(_TITLES, widths, _LEAST, strict=True)
    ]


# --- the page of the pending work


class StatusPage(CaseActionsPage):
    """Each thing a run would do, with its reason; or what is wrong with the files."""

    FOOTER = (
        FooterHint("Run", ("page.run",)),
        "list.open",
        FooterHint("Edit", ("case.edit",)),
        *("page.copy", "page.save"),
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
        self._lines: list[PendingLine] = []
        self._status: Status | None = None
        self._texts = LineTexts((), (), {})

    def compose_above(self) -> ComposeResult:
        """Lay out the runs of other programs, too."""
        yield from super().compose_above()
        yield OtherRuns(self.source.other_runs)

    def on_mount(self) -> None:
        """Read the workspace."""
        self.grid.opens = lambda row: not isinstance(self._lines[row], Title)
        self.set_title("pending work", READING)
        self.grid.focus()
        self.reload()

    def reload(self) -> None:
        """Read the workspace again."""

        def show(text: str) -> None:
            if not self._lines:
                self.set_title("pending work", text)

        def read() -> tuple[Status | None, list[PendingLine], LineTexts]:
            try:
                with self.telling(show):
                    status = self.source.status()
                    lines, files = pending_lines(status)
            except WorkspaceError as error:
                problems = sorted(error.problems, key=lambda problem: problem.severity != "error")
                title = Title(f"{plural(len(problems), 'problem')} in the files")
                named = (problem.file for problem in problems)
                return None, [title, *problems], LineTexts(problems, named, {})
            return status, lines, LineTexts(lines, files, status.prompts)

        self.fetch(read, lambda found: self._show(*found))

    def _show(self, status: Status | None, lines: list[PendingLine], texts: LineTexts) -> None:
        """Show lines, without a status problems; the cursor stays at its line if it is there."""
        before = self._highlighted
        self._status, self._lines, self._texts = status, lines, texts
        if status is None:
            self.set_title("pending work", texts.file, "nothing, until the files are fixed")
            self.set_empty("")
        else:
            summary = "nothing"
            if status.is_any or status.untrusted:
                summary = pending_text(status)
            elif status.labels:
                summary = unrecorded_text(status)
            reused = f"{status.reuse:,} reused" if status.reuse else ""
            self.set_title("pending work", summary, texts.file, (reused, ""))
            self.set_empty("" if lines else nothing_text(status) + self.with_keys(_EDIT_HINT))
        place = lines.index(before) if before in lines else 1
        self.grid.show(texts.columns, len(lines), self._cells, cursor=place)
        if lines and self.focused is None:  # there was nothing to be focused
            self.grid.focus()
        self.refresh_bindings()

    @property
    def _highlighted(self) -> PendingLine | None:
        return self.grid.at_cursor(self._lines)

    def _cells(self, row: int) -> Sequence[StyledCell]:
        item = self._lines[row]
        if isinstance(item, Title):
            return (StyledCell(item.text, "group"),)
        kind = ""
        if isinstance(item, Problem):
            kind = "error" if item.severity == "error" else "pending"
        colours = (kind, "", "", "faint", "faint", "")
        cells = [StyledCell(*cell) for cell in zip(self._texts.of(item), colours, strict=True)]
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
        is_idle = is_read and next(iter(self._lines), _WARNINGS) == _WARNINGS
        if action == "run" and is_idle and not self.browser.runs.is_running:
            return False
        return action not in _ON_ANSWERS and super().check_action(action, parameters)

    @on(Grid.Moved, "#items")
    def follow_cursor(self) -> None:
        """Show the details of the highlighted line."""
        self.query_one("#details", TextView).show(self._detail_lines())

    def _detail_lines(self) -> Iterator[StyledLine]:
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
            if not line.is_undone:
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
        """Return the case of the highlighted line, or the line of a problem."""
        line = self._highlighted
        if line is None or isinstance(line, Title):
            return None
        if isinstance(line, Problem):
            return EditPlace(line.file, line.line or 1)
        return EditPlace(line.file, prompt=getattr(line, "prompt", None))

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


_ON_ANSWERS = ("label", "unlabel", "judge_again", "copy_answer")
"""Actions on answers, which the lines of this page do not have."""


_EDIT_HINT = "\n\n{case.edit} in the cases edits a test; {history.status} then shows what it means."
