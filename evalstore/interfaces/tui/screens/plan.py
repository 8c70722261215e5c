"""The plan of a run from the browser: what would be done, why, and its price."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from evalstore.core.errors import EvalstoreError, WorkspaceError
from evalstore.interfaces.tui.render.documents.reading import READING, reading_text
from evalstore.interfaces.tui.render.run import plan_lines, records_only
from evalstore.interfaces.tui.screens.actions import ActionsPage
from evalstore.interfaces.tui.screens.base import Page
from evalstore.interfaces.tui.screens.dialogs.dialogs import Dialog
from evalstore.interfaces.tui.screens.dialogs.editing import edit_place
from evalstore.interfaces.tui.screens.reading_news import news_to
from evalstore.results.table.editable_files import EditPlace
from evalstore.store.wanted import telling

if TYPE_CHECKING:
    from evalstore.runs.interactive_run import PlanPreview, RunRequest


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
        self._is_planning = True

    def on_mount(self) -> None:
        """Plan."""
        self.set_title("plan", READING)
        self.body.focus()
        self.reload()

    def reload(self, *, stay: bool = True) -> None:
        """Plan again."""
        self._is_planning = True
        self.fetch(self._plan, self._show)

    @property
    def is_planning(self) -> bool:
        """Return whether the plan is still being made."""
        return self._is_planning

    def _end_planning(self) -> None:
        self._is_planning = False
        below = self.browser.shown_page
        if isinstance(below, ActionsPage):
            below.go_on_reading()

    def _plan(self) -> tuple[RunRequest, PlanPreview]:
        request = self._read()
        with telling(news_to(self, reading_text, self._show_reading)):
            return request, self.source.plan(request)

    def _show_reading(self, text: str) -> None:
        """Show how far the reading has come, unless a plan is shown already."""
        if self._preview is None:
            self.set_title("plan", text)

    def _show(self, plan: tuple[RunRequest, PlanPreview]) -> None:
        (self._request, self._preview), self._problem = plan, None
        self._end_planning()
        self.set_title(self._request.title)
        width = self.body.text_width
        list_key = self.browser.key_of("history.status")
        self.body.show(plan_lines(self._request, self._preview, width, self._note, list_key))
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
    def _note(self) -> str:
        """Return what differs in a run of one file; empty for others."""
        is_of_file = self._request is not None and self._request.is_of_file
        return self.with_keys(_OF_FILE) if is_of_file else ""

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
        return self._is_planning and self._preview is None and not self.is_small

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
        self.browser.show_status()

    def action_edit(self) -> None:
        """Open the file that was edited, or the one with the problem, where that is."""
        below, place = self.app.screen_stack[-2], self._problem
        self.app.pop_screen()
        if self._edit is not None:
            self._edit(self._line)
        elif place is not None and isinstance(below, Page):
            edit_place(below, place)
