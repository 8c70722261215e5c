"""The input and the result of the translation of a checker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.importers.errors import NotTakenError
from evalstore.importers.lve.format_strings import parse, template

if TYPE_CHECKING:
    from evalstore.importers.lve.definition import LveTest
    from evalstore.values import Json

ARGUMENTS = "checker_args"
"""The field of `test.json` that names the checker and what it is given."""


@dataclass
class LveJudging:
    """How a test is judged."""

    checks: list[Json] = field(default_factory=list)
    instructions: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    """Python files, by their path in the folder that is the test's own."""
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CheckerTest:
    """What the translation of a checker needs to know of its test."""

    definition: LveTest
    names: Mapping[str, str]
    """What the parameters are called."""
    turns: tuple[tuple[str, ...], ...]
    """For each conversation, also for each repetition, what LVE calls its answers."""
    rows: Sequence[Mapping[str, Json]]
    """The values of the parameters."""
    shown: frozenset[str]
    """The parameters that stand in the prompt."""
    custom: Mapping[str, bytes]
    """The Python files of the test, by their path."""

    def text(self, name: str, *, empty: bool = False) -> str:
        """An argument as a template; raises `NotTakenError`."""
        value = self.definition.arguments.get(name)
        if not isinstance(value, str) or not (value or empty):
            raise NotTakenError(f"the checker needs a text '{name}'", ARGUMENTS, name)
        pieces = parse(value, self.definition.columns, ARGUMENTS, name)
        return template(pieces, self.names)

    def flag(self, name: str, default: bool | None = None) -> bool:
        """An argument that is true or false."""
        value = self.definition.arguments.get(name, default)
        if not isinstance(value, bool):
            raise NotTakenError(f"the checker needs '{name}': true or false", ARGUMENTS, name)
        return value

    def number(self, name: str) -> float:
        """An argument that is a number."""
        value = self.definition.arguments.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise NotTakenError(f"the checker needs a number '{name}'", ARGUMENTS, name)
        return value

    def only(self, *known: str) -> None:
        """Raise for an argument that the checker does not take."""
        for name in self.definition.arguments:
            if name not in known:
                checker = self.definition.checker
                raise NotTakenError(f"'{checker}' takes no '{name}'", ARGUMENTS, name)
