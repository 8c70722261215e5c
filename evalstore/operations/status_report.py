"""What `status` answers. Light: imports nothing slow."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from evalstore.operations.json_output import FILES, PATHS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalstore.errors import Problem
    from evalstore.planning.code_trust import Untrusted
    from evalstore.planning.plan import PlanItem


@dataclass(frozen=True, slots=True)
class FileChange:
    """A test file that is not what it was in the last run."""

    JSON_FIELDS = ("code", "file", "asked", "judged", "reason")

    code: str
    """git's two letters: what happened to the tests, and to the evaluation."""
    file: str
    asked: int
    """Cases that are asked again, or are new; or whose recorded answer is another."""
    judged: int
    """Cases whose stored answers are judged again."""
    gone: int
    reason: str
    new: int = 0
    """Cases of rows that were not there; not among those asked again."""
    was: str | None = None
    now: str | None = None
    """Of the first thing that differs."""


@dataclass
class Status:
    """The answer of `status`."""

    JSON_FIELDS = (
        *("ask", "record", "judge", "reuse", "skipped", "left", "left_out", "untrusted"),
        *("cost", "last_run", "changes", "items"),
    )
    items: list[PlanItem]
    """What would be done, one by one; it may be missing when only the numbers were wanted."""
    ask: int
    record: int
    """Answers that files bring themselves and that are not stored."""
    judge: int
    reuse: int
    skipped: list[tuple[str, str, str, str]] = field(metadata={"json_as": len})
    """File, row, model, what it lacks."""
    cost: float | None
    models: int
    cells: int
    guess: int | None = None
    """Tokens that new answers are guessed to have, when the cost comes from such a guess."""
    changes: list[FileChange] = field(default_factory=list)
    last_run: str | None = field(default=None, metadata={"json_name": "run"})
    last_started: int | None = None
    warnings: list[str] = field(default_factory=list)
    prompts: dict[str, dict[str | None, str]] = field(default_factory=dict)
    """Test files with several system prompts -> what to call each."""
    left_asks: int = 0
    """Answers that are missing and would stay so, as they need the network."""
    left_judgements: int = 0
    untrusted: list[Untrusted] = field(default_factory=list, metadata=PATHS)
    """Python files that checks wait for."""
    waiting: int = 0
    """Judgements that wait for them."""
    refused: list[str] = field(default_factory=list)
    """Keys that a run would refuse to send, in words."""
    left_out: list[Problem] = field(default_factory=list, metadata=FILES)
    """Errors of test files that are left out."""
    stands_until: float = math.inf
    """Microseconds since 1970: an answer becomes too old then."""

    @property
    def is_any(self) -> bool:
        """Whether a run would do anything."""
        return bool(self.ask or self.record or self.judge)

    @property
    def left(self) -> dict[str, int]:
        """Answers and judgements that are missing and would stay so."""
        return {"ask": self.left_asks, "judge": self.left_judgements}


def summed(items: Iterable[PlanItem]) -> list[PlanItem]:
    """The items; those that read the same are one, such as the rows of a group."""
    counts: Counter[PlanItem] = Counter()
    for item in items:
        counts[replace(item, count=1)] += item.count
    return [replace(item, count=count) for item, count in counts.items()]
