"""The cases of the browser with the results of all candidates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalstore.core.results import Result


@dataclass(frozen=True, slots=True, eq=False)
class CaseRow:
    """A case with one system prompt, and the results of all candidates.

    Rows are compared by identity, because there may be many; results by their values.
    """

    file: str
    row: str
    prompt: str
    """The name of the system prompt if the file has several; else empty."""
    tags: tuple[str, ...]
    results: tuple[Result | None, ...]
    """The results in the order of the candidates in `Cases.models`."""
    words: tuple[str | None, ...] = field(init=False)
    """What each result says, a word of `URGENCY`; None: that candidate has none."""

    folded: str = field(init=False)
    """The file and the name, as words are looked for in them."""

    def __post_init__(self) -> None:
        """Note what is looked at with every key."""
        words = tuple(result and (result.word or "answered") for result in self.results)
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "folded", f"{self.file}\n{self.label}".casefold())

    @property
    def label(self) -> str:
        """Return the row, with the system prompt where the file has several."""
        return f"{self.row} ({self.prompt})".lstrip() if self.prompt else self.row

    @property
    def prompt_id(self) -> str | None:
        """Return the id of the system prompt."""
        return next(result.prompt for result in self.results if result)

    @property
    def sessions(self) -> list[str]:
        """Return the sessions of all results."""
        return [id for result in self.results if result for id in result.sessions]


def in_order(results: Sequence[Result | None], order: Sequence[int]) -> tuple[Result | None, ...]:
    """Return the results in another order of the candidates; those past the end are None."""
    return tuple(results[at] if at < len(results) else None for at in order)
