"""A run from the browser: the pending work, its plan and price, its progress, its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from evalstore.core.display import (
    StyledLine,
    StyledSpan,
    heading,
    planned_judgements,
    plural,
    safe,
    short_names,
    status_word,
    text_lines,
    widest,
)
from evalstore.core.errors import EvalstoreError, Problem, WorkspaceError
from evalstore.interfaces.tui.data_source import BackgroundRun
from evalstore.interfaces.tui.grid import Column, Grid, StyledCell, only_file
from evalstore.interfaces.tui.page_lines import READING, FooterHint
from evalstore.interfaces.tui.render.run import (
    left_lines,
    plan_lines,
    progress_lines,
    records_only,
    result_lines,
)
from evalstore.interfaces.tui.screens.actions import (
    ActionsPage,
    CaseActionsPage,
    OtherRuns,
    edit_place,
)
from evalstore.interfaces.tui.screens.base import Page
from evalstore.interfaces.tui.screens.dialogs import Dialog
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

if TYPE_CHECKING:
    from evalstore.runs.run import PlanPreview, RunRequest


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


_OF_FILE = (
    "This is a partial run (~): the trend of the runs leaves it out. "
    "{page.run} plans all pending work."
)


class PlanPage(Dialog):
    """What would be done, why and at which price; Enter does it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "do", "Run", id="plan.do"),
        Binding("escape,backspace", "back", "Cancel", id="page.back"),
        Binding("e", "edit", "Edit the file", id="plan.edit"),
        Binding("R", "run", "Run pending work", id="page.run"),
        Binding("w", "status", "Pending work", show=False, id="history.status"),
    ]
    TITLE = "Plan of a run"
    WAY = "{page.run} where something is missing, {case.judge} on an answer"
    HELP = """\
What a run would do, why, and at which price. Nothing is called before {plan.do}. It is planned
again when a file changes. After an edit it is about the edited file only: a partial run, which the
trend leaves out. {page.run} plans all pending work, and {history.status} lists it."""

    def __init__(
        self, read: Callable[[], RunRequest], *, edit: Callable[[int | None], None] | None = None
    ) -> None:
        """`read` makes the request; `edit` opens the file that was edited, at a line."""
        super().__init__()
        self._read = read
        self._edit = edit
        self._request: RunRequest | None = None
        self._preview: PlanPreview | None = None
        self._line: int | None = None
        self._problem: EditPlace | None = None
        """The first problem that prevents a plan, if it is in a file."""
        self.is_planning = True

    def on_mount(self) -> None:
        """Plan."""
        self.set_title("plan", READING)
        self.body.focus()
        self.reload()

    def reload(self) -> None:
        """Plan again."""
        self.is_planning = True

        def show(text: str) -> None:
            if self._preview is None:  # else a plan is shown already
                self.set_title("plan", text)

        def plan() -> tuple[RunRequest, PlanPreview]:
            request = self._read()
            with self.telling(show):
                return request, self.source.plan(request)

        self.fetch(plan, self._show)

    def _end_planning(self) -> None:
        self.is_planning = False
        below = self.browser.shown_page
        if isinstance(below, ActionsPage):
            below.go_on_reading()

    def _show(self, plan: tuple[RunRequest, PlanPreview]) -> None:
        (self._request, self._preview), self._problem = plan, None
        self._end_planning()
        self.set_title(self._request.title)
        note = self.with_keys(_OF_FILE) if self._request.is_of_file else ""
        width = self.body.text_width
        list_key = self.browser.key_of("history.status")
        self.body.show(plan_lines(self._request, self._preview, width, note, list_key))
        self.refresh_bindings()

    def show_problem(self, problem: EvalstoreError) -> None:
        """Show the problem; nothing can be done then."""
        self._preview, self._problem = None, None
        self._end_planning()
        self.body.show(())
        self.set_title("plan", "nothing, until this is fixed")
        if isinstance(problem, WorkspaceError):
            self._line = next((entry.line for entry in problem.problems if entry.line), None)
            first = problem.problems[0]
            self._problem = EditPlace(first.file, first.line or 1)
        super().show_problem(problem)
        self.refresh_bindings()

    @property
    def can_do(self) -> bool:
        """Return whether there is something to do, and its price can be seen."""
        if self._preview is None or self._request is None or self.is_small:
            return False
        status = self._preview.status
        return status.is_any or records_only(self._request, status)

    @property
    def _waits_for_price(self) -> bool:
        """Return whether the first plan is still being read; its key then says so."""
        return self.is_planning and self._preview is None and not self.is_small

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action makes sense in this state of the plan."""
        if action == "do":
            return self.can_do or self._waits_for_price
        if action == "run":
            return self._request is not None and self._request.is_of_file
        if action == "edit":
            return self._edit is not None or self._problem is not None
        return True

    def action_do(self) -> None:
        """Begin the run, unless its price is not known yet."""
        if self._waits_for_price:
            text = "still reading: press {plan.do} again when the plan and its price are shown"
            self.notify(self.with_keys(text), markup=False)
        elif self._request is not None and self._preview is not None and self.can_do:
            self.app.pop_screen()
            self.browser.runs.begin(self._request, self._preview)

    def action_run(self) -> None:
        """Plan all pending work instead of that of one file."""
        self._read = self.source.missing
        self.reload()

    def action_status(self) -> None:
        """Show all pending work, each item with its reason, in place of the plan."""
        self.app.pop_screen()
        self.browser.open("pending")

    def action_edit(self) -> None:
        """Open the file that was edited, or the one with the problem, where that is."""
        below, place = self.app.screen_stack[-2], self._problem
        self.app.pop_screen()
        if self._edit is not None:
            self._edit(self._line)
        elif place is not None and isinstance(below, Page):
            edit_place(below, place)


# --- a run that the browser has started: its progress, then how it ended


class RunPage(Dialog):
    """How far the run is, then how it ended; below it the cases go on changing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "cases", "Show cases", id="run.cases"),
        Binding("escape,backspace", "hide", "Continue browsing", id="run.hide"),
        Binding("c", "stop", "Cancel the run", id="run.stop"),
        Binding("escape,backspace", "back", "Close", id="page.back"),
        Binding("d", "compare", "Compare", id="run.compare"),
    ]
    TITLE = "Run in progress"
    WAY = "{plan.do} on the plan of a run; {page.run} during a run"
    HELP = """\
The progress of the run. It continues while you browse: the right end of each title shows the
progress, and {page.run} leads back here. What is finished is stored, also when you cancel or quit.
At its end it shows what broke or was fixed since the previous run; {run.compare} compares them."""
    run_progress = ""

    DEFAULT_CSS = """
    RunPage.-going > #box { height: 10; }
    """

    runner: BackgroundRun

    def __init__(self, runner: BackgroundRun) -> None:
        super().__init__(classes="-going")
        self.runner = runner

    def on_mount(self) -> None:
        """Show the progress; from now on it is drawn with that of all other screens."""
        self.body.focus()
        if self.runner.is_over:
            self.show_end()
        self.show_progress()

    def on_resize(self) -> None:
        """Draw bars of another width once the text has its new one; Textual calls this, too."""
        self.call_after_refresh(self.show_progress)

    def reload(self) -> None:
        """Draw the progress again."""
        self.browser.runs.draw()

    def show_progress(self) -> None:
        """Show the progress."""
        if self.runner.is_over:
            return
        progress = self.runner.shown
        self.set_title(self.runner.request.title, "stopping …" if progress.stops else "")
        self.body.show(progress_lines(progress, max(10, self.body.size.width - 40)), stay=True)

    def refresh_ages(self) -> None:
        """Draw the end of the run again, which says how long ago the run before it was."""
        if self.runner.end is not None:
            self.body.show(result_lines(self.runner.end), stay=True)

    def show_end(self) -> bool:
        """Show how the run ended."""
        self.remove_class("-going")
        runner = self.runner
        if runner.problem is not None:
            self.set_title(runner.request.title, "failed")
            self.show_problem(runner.problem)
            self.body.show(())
        if runner.end is not None:
            self.set_title(runner.request.title, status_word(runner.end.report.status))
            self.body.show(result_lines(runner.end))
        self.refresh_bindings()
        return True

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action is available: `stop` during the run, its cases afterwards."""
        if action in ("stop", "hide"):
            return not self.runner.is_over
        if action == "cases":
            return self.runner.end is not None
        if action == "compare":
            return bool(self.runner.end and self.runner.end.report.changes)
        return action != "back" or self.runner.is_over

    def action_stop(self) -> None:
        """Stop the run; a second time, at once."""
        self.runner.interrupt()
        self.browser.runs.draw()

    def action_hide(self) -> None:
        """Leave the run to itself."""
        self.app.pop_screen()
        key = self.browser.key_of("page.run")
        self.notify(f"The run continues; {key} leads back to it.", markup=False)

    def action_cases(self) -> None:
        """Show the cases of the run."""
        if self.runner.end is not None:
            self.app.pop_screen()
            self.browser.show_new_run(self.runner.end.report.run)

    def action_back(self) -> None:
        """Leave; from the cases of an older run, to those of the new run if it had all cases."""
        from evalstore.runs.run import ALL

        is_whole = self.runner.end is not None and self.runner.request == ALL
        if is_whole and self.browser.is_above_run(self):
            self.action_cases()
        else:
            super().action_back()

    def action_compare(self) -> None:
        """Show what broke and what was fixed."""
        end = self.runner.end
        if end and (changes := end.report.changes):
            self.app.pop_screen()
            self.browser.open("compare", changes.since, end.report.run)
