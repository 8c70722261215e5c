"""What every importer gives back: files to write, history to record, and what it could not take.

An importer is a function from paths to an `Imported`. It only reads: it runs no code,
writes nothing and asks no questions. Its result depends only on what it reads, so importing
twice is importing once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from evalstore.values import Json, Reply, Role, ToolVersion, Usage, Verdict

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class SkippedItem:
    """Something that is not imported, with its place and the reason."""

    JSON_FIELDS = ("file", "line", "column", "reason")

    file: str
    reason: str
    line: int | None = None
    column: int | None = None


class ShownMessage(NamedTuple):
    """A message that a model was shown elsewhere."""

    role: Role
    text: str | None
    """None: the model has filled this turn."""
    image: str | None = None
    """The address of a picture."""


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """An answer that was given elsewhere, with the verdict it got there."""

    file: str
    """The test file that is written for it, as in `Imported.files`."""
    values: dict[str, Json]
    """The values of its row, by name."""
    model: str
    """A display id, such as `openai/gpt-4`."""
    answers: tuple[str, ...]
    """One text for each turn that the candidate fills."""
    started: int
    """Microseconds since 1970."""
    run: int = 0
    """Which of the conversations of the row."""
    verdict: Verdict | None = None
    feedback: str = ""
    temperature: float | None = None
    judge: str = ""
    """What gave the verdict there, such as `RefuseChecker`."""
    source: str = ""
    """The file it stands in; entries with one place are the answers to one row at one time."""
    line: int | None = None
    messages: tuple[ShownMessage, ...] | None = None
    """What the model was shown then, without the last answer; None: what the test says now."""


@dataclass(frozen=True, slots=True)
class RecordedModel:
    """The model of an answer or of a verdict, as another system knew it."""

    provider: str
    code: str
    """The provider's name for it."""
    options: Json = None
    """Other parameters of the call; None if they were not recorded."""
    extra_identifier: str | None = None
    """What distinguishes it from others with the same code; None if it was not recorded."""
    current: bool = True
    """Whether it is still what its file says."""


@dataclass(frozen=True, slots=True)
class RecordedVerdict:
    """What a model said of an answer, elsewhere."""

    by: RecordedModel
    temperature: float
    prompt: str
    """The evaluator prompt, with its runtime names still in it."""
    tags: tuple[str, ...]
    """Special tags of the prompt."""
    instructions: str
    verdict: Verdict
    feedback: str
    reasoning: str
    started: int
    usage: Usage = Usage()
    latency: float = 0.0


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """An answer that was given elsewhere, with everything that the model was shown."""

    by: RecordedModel
    temperature: float
    prompt: str
    """The system prompt."""
    messages: tuple[tuple[Role, str], ...]
    reply: Reply
    started: int
    """Microseconds since 1970."""
    place: str
    """Where it stands, in words."""
    special_tags: tuple[str, ...] = ()
    tools: tuple[ToolVersion, ...] = ()
    schema: Json = None
    rulings: tuple[RecordedVerdict, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the user asks of an importer."""

    name: str
    """The folder below `tests`, `prompts` and so on that the files will get: ids begin with it."""
    sessions: bool = False
    """Whether answers and verdicts that were recorded elsewhere are to come along."""
    temperature: float = 0.0
    """What a candidate of the workspace is asked at unless it says otherwise."""


@dataclass
class Imported:
    """What an importer made of its sources."""

    files: dict[str, bytes] = field(default_factory=dict)
    """By path with forward slashes. The first part is the kind of folder (`tests`, `prompts`,
    `schemas`, …); the user's folder comes between it and the rest."""
    rows: int = 0
    """How many rows the tests have."""
    settings: dict[str, Json] = field(default_factory=dict)
    """Fields for `evalstore.yaml`, such as `thresholds`."""
    left: list[SkippedItem] = field(default_factory=list)
    warnings: list[SkippedItem] = field(default_factory=list)
    """Items that are imported with a difference."""
    recorded: list[JudgedAnswer] = field(default_factory=list)
    """Answers to the tests that are written."""
    conversed: list[RecordedAnswer] = field(default_factory=list)
    """Answers that bring along what they answer."""


class Importer(Protocol):
    """Reads somebody's files; raises `FileProblem` or `EvalstoreError` when nothing can be read."""

    def __call__(self, paths: list[Path], options: ImportOptions) -> Imported:
        """Read these files, or the folders with them."""
        ...
