"""An item of a plan, as commands print it: what is asked or judged, how often, and why."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PlanItem:
    """An item of a plan, as commands print it."""

    JSON_FIELDS = (
        *("kind", "file", "row", "prompt", "prompt_name", "model", "evaluator", "count"),
        *("reason", "was", "now", "also"),
    )
    kind: str
    """`ask`, `record` (take an answer from a test file) or `judge`"""
    file: str
    row: str
    prompt: str | None
    model: str
    evaluator: str | None
    count: int
    reason: str
    was: str | None
    now: str | None
    prompt_name: str | None = field(default=None, metadata={"json_optional": True})
    """The name of the system prompt; None without one."""
    of: str = ""
    """What was edited, if no test file was: `candidate openai/gpt-5.4-mini`, `attempts`."""
    also: tuple[str, ...] = field(default=(), metadata={"json_optional": True})
    """The parts of the case that were edited as well, such as `checks`."""
