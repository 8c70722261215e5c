"""The run of the browser, as screens know it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalstore.runs.interactive_run import PlanPreview, RunRequest


class RunControl(Protocol):
    """Starts runs, at most one at a time, and says what the screens show of it."""

    is_leaving: bool
    """Whether the browser ends as soon as the run has stopped."""

    @property
    def is_running(self) -> bool:
        """Return whether a run is in progress."""

    @property
    def progress_text(self) -> str:
        """Return the progress in few characters; empty without a run."""

    @property
    def texts(self) -> Sequence[str]:
        """Return what the run does in ever fewer words; empty without a run."""

    def show(self) -> None:
        """Show the progress on a screen of its own."""

    def refuse_second(self) -> bool:
        """Show a message if a run is in progress; returns whether there is one."""

    def begin(self, request: RunRequest, preview: PlanPreview) -> None:
        """Start what was planned, and show its progress."""

    def draw(self) -> None:
        """Draw what all screens show of the run, as it is at this moment."""

    def stay(self) -> None:
        """Keep the browser open when the run has stopped."""
