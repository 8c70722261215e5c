"""One run as `log` lists it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.core.clock import iso
from evalstore.core.values import Json
from evalstore.files.json_output import to_json
from evalstore.planning.options import describe_selection

if TYPE_CHECKING:
    from evalstore.comparison.version_diff import Difference
    from evalstore.core.runs import Run
    from evalstore.planning.first_pushes import FirstPush
    from evalstore.results.flips.verdict_changes import ComparedPart, Outcome


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A run; with a file, one that changed the file or its verdicts."""

    run: Run
    verdicts: Mapping[str, int]
    """The counts of the verdicts of the run; with a file, those of its cells."""
    edits: tuple[Difference, ...] = ()
    """What was edited since the runs before: test files, system prompts, candidates and evaluators;
    with a file, its own edits in full and labels. An edit belongs to the first run that judged it,
    none to a run that only changed verdicts."""
    is_covered: bool = True
    """Whether the run has results of the file, or of the row."""
    no_edit: str = ""
    """With a file, why verdicts on it changed without an edit: `asked again`."""
    outcome: Outcome | None = None
    """How many results broke and were fixed since they were judged before; None: not computed."""
    push: FirstPush | None = None
    """Who pushed the run; None for a run of this machine."""
    names: tuple[str, ...] = ()
    """The names that `tag` gave the run."""
    part: ComparedPart | None = None
    """With a file, what of the run is compared with earlier runs."""

    @property
    def is_idle(self) -> bool:
        """Return whether nothing was asked, judged or changed, and the run has no name or note."""
        run = self.run
        work = (run.asked, run.recorded, run.judged, run.failed, run.message, self.names)
        return not any((*work, self.edits, self.push, *(self.outcome or ())))

    def document(self) -> Json:
        """Return the entry as JSON."""
        run, git = self.run, self.run.git
        return {
            "run": run.id,
            "started": iso(run.started),
            "ended": iso(run.ended),
            "message": run.message,
            "selection": describe_selection(run.selection) or None,
            "status": run.status,
            "asked": run.asked,
            "recorded": run.recorded,
            "judged": run.judged,
            "reused": run.reused,
            "verdicts": self.verdicts,
            "cost": run.cost,
            "gitCommit": git.commit if git else None,
            "gitDirty": git.dirty if git else None,
            **({"author": run.author} if run.author else {}),
            **({"cases": run.cases._asdict()} if run.cases else {}),
            **({"names": list(self.names)} if self.names else {}),
            **({"push": to_json(self.push)} if self.push else {}),
            **({"edits": to_json(self.edits)} if self.edits else {}),
            **(dict(zip(("broke", "fixed"), self.outcome, strict=False)) if self.outcome else {}),
        }
