"""The arguments of the tools; their JSON schemas are what a client is shown.

An argument that a tool does not have is an error: a misspelt selection must not select everything.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from evalstore.planning.options import SelectionOptions

MOST_ITEMS = 100
MOST_CHARACTERS = 20_000
_MOST = 1_000_000_000
"""More than anything a store has, and within the integers of SQLite."""
_CHARACTERS = 2_000

Paths = Annotated[
    list[str],
    Field(
        description="Test files, folders, or cases as FILE::ROW, relative to the folder of the "
        "server. Empty: all."
    ),
]
Texts = Annotated[list[str], Field(description="Any of these.")]
Revision = Annotated[
    str, Field(description="@ is the newest run, @~1 the one before it; or the start of a run's id")
]
Name = Annotated[
    str | None,
    Field(description="Only cases whose FILE::ROW contains this; also with and, or, not"),
]
TextOffset = Annotated[
    int, Field(ge=0, le=_MOST, description="Where to begin in texts that were cut")
]
Model = Annotated[str | None, Field(description="The display id of a candidate")]


class Arguments(BaseModel):
    """Arguments that are checked by name and type."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TextArguments(Arguments):
    """The arguments of a tool that may return long texts."""

    max_text: int = Field(
        _CHARACTERS,
        ge=100,
        le=MOST_CHARACTERS,
        description="Characters of each text; longer ones are cut, and say so",
    )


class PageArguments(TextArguments):
    """The arguments of a tool that returns a list."""

    offset: int = Field(0, ge=0, le=_MOST, description="Items to skip: 'next' of the page before")
    limit: int = Field(20, ge=1, le=MOST_ITEMS, description="Items of a page, at most")


class SelectionArguments(TextArguments):
    """The arguments that choose cases, named as the options of `evalstore run`."""

    paths: Paths = []
    tags: Texts = Field([], description="Only tests with one of these tags")
    exclude_tags: Texts = Field([], description="No tests with one of these tags")
    name: Name = None
    models: Texts = Field([], description="Only these candidates, by display id")
    changed: bool = Field(False, description="Only cases that have changed since the newest run")
    last_failed: bool = Field(False, description="Only results that did not pass when last run")
    retry_errors: bool = Field(False, description="Only failed calls and undecided verdicts")
    max_cases: int | None = Field(None, ge=1, le=_MOST, description="The first cases only")

    @property
    def options(self) -> SelectionOptions:
        """Return the selection as an operation takes it."""
        return SelectionOptions(
            paths=tuple(self.paths),
            tags=tuple(self.tags),
            exclude_tags=tuple(self.exclude_tags),
            name=self.name,
            models=tuple(self.models),
            changed=self.changed,
            last_failed=self.last_failed,
            retry_errors=self.retry_errors,
            limit=self.max_cases,
        )


class StatusArguments(SelectionArguments, PageArguments):
    """The arguments of `status`."""


class RunArguments(SelectionArguments):
    """The arguments of `run`."""

    judge_only: bool = Field(False, description="Judge stored answers, and ask for none")
    max_cost: float | None = Field(
        None, ge=0, description="USD; this run stops before it costs more. The budget holds anyway"
    )
    message: str | None = Field(None, max_length=500, description="A note to store with the run")


class FileCheckArguments(PageArguments):
    """The arguments of `check`."""

    paths: Paths = []


Verdict = Literal["pass", "fail", "undecided", "error", "pending", "answered"]


class ResultsArguments(PageArguments):
    """The arguments of `list_results`."""

    run: Revision = "@"
    verdicts: list[Verdict] = Field(
        ["fail", "undecided", "error", "pending"],
        description="Only these; 'answered' is an answer that nothing judges",
    )
    file: str | None = Field(None, description="Only the results of this test file")
    model: Model = None
    tags: Texts = Field([], description="Only cases with one of these tags")
    name: Name = None
    grep: str = Field("", description="Only with these words in the answer, the test or feedback")
    broke: bool = Field(False, description="Only what broke and is not fixed")
    since: str | None = Field(None, description="With broke: what broke since this run or date")


class ExplainArguments(TextArguments):
    """The arguments of `explain_case`."""

    case: str = Field(
        description="FILE::ROW as in a result, FILE for a file with one case, REV:FILE::ROW for "
        "a run, @work:FILE::ROW for the workspace as it is",
        max_length=4_000,
    )
    model: Model = None
    prompt: str | None = Field(None, description="The name of a system prompt, of several")
    text_offset: TextOffset = 0


class ShowArguments(TextArguments):
    """The arguments of `show`."""

    id: str = Field(
        description="The start of the id of a run, answer, verdict, version or "
        "failed call; @ and @~1 for runs, REV:FILE for the cases of a file in a run, or @work",
        max_length=4_000,
    )
    text_offset: TextOffset = 0


Change = Literal["broke", "fixed", "changed", "new", "gone"]


class DiffArguments(PageArguments):
    """The arguments of `diff`."""

    before: str | None = Field(None, description="A run: @~1, an id. Default: the newest run")
    after: str | None = Field(None, description="A run. Default: the workspace as it is")
    model: Model = None
    versus: str | None = Field(
        None,
        description="With 'model': compare it with this candidate in 'before', or in the workspace",
    )
    changes: list[Change] = Field(["broke", "fixed"], description="The kinds of change to list")
    paths: Paths = []
    answers: bool = Field(False, description="Include a text diff of the answers")


class StatsArguments(TextArguments):
    """The arguments of `stats`."""

    run: Revision = Field("@work", description="A run, or @work: the workspace as it is now")
    by: list[Literal["model", "prompt", "tag", "file", "judge"]] = Field(
        ["model"],
        min_length=1,
        description="What the results are grouped by; 'judge' alone: how each judge agrees with "
        "people and with the other judges",
    )


class SearchArguments(PageArguments):
    """The arguments of `search`."""

    pattern: str = Field(
        description="Words that a text must contain; put a phrase in quotation marks",
        min_length=1,
        max_length=500,
    )
    within: Literal["answers", "feedback", "tests"] | None = Field(
        None, description="Only these texts"
    )
