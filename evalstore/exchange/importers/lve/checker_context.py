"""The input and the result of translating a checker."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.exchange.importers.errors import NotTakenError
from evalstore.exchange.importers.lve.format_strings import Piece, parse, template

if TYPE_CHECKING:
    from evalstore.core.values import Json
    from evalstore.exchange.importers.lve.definition import LveTest

ARGUMENTS = "checker_args"
"""The field of `test.json` with the checker's name and arguments."""


@dataclass
class LveJudging:
    """The checks, instructions and files that replace a checker."""

    checks: list[Json] = field(default_factory=list)
    instructions: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    """Python files by their path in the test's folder."""
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CheckerTest:
    """The parts of a test that the translation of its checker uses."""

    definition: LveTest
    names: Mapping[str, str]
    """Maps parameters to their names in templates."""
    turns: tuple[tuple[str, ...], ...]
    """LVE's names of the answers of each conversation, including repetitions."""
    rows: Sequence[Mapping[str, Json]]
    """The values of the parameters in each row."""
    shown: frozenset[str]
    """The parameters that the prompt contains."""
    custom: Mapping[str, bytes]
    """The Python files of the test by their path."""

    def text(self, name: str, *, empty: bool = False) -> str:
        """Return a text argument as a template; raises `NotTakenError`."""
        value = self.definition.arguments.get(name)
        if not isinstance(value, str) or not (value or empty):
            raise NotTakenError(f"the checker needs a text '{name}'", ARGUMENTS, name)
        return self.fill(parse(value, self.definition.columns, ARGUMENTS, name), {str})

    def fill(self, pieces: list[Piece], plain: Collection[type]) -> str:
        """Return a template; values of other types than `plain` are formatted as Python does."""
        columns = self.definition.columns
        others = [n for n in columns if any(type(row.get(n)) not in plain for row in self.rows)]
        return template(pieces, self.names, others)

    def flag(self, name: str, default: bool | None = None) -> bool:
        """Return a boolean argument; raises `NotTakenError`."""
        value = self.definition.arguments.get(name, default)
        if not isinstance(value, bool):
            raise NotTakenError(f"the checker needs '{name}': true or false", ARGUMENTS, name)
        return value

    def number(self, name: str) -> float:
        """Return a numeric argument; raises `NotTakenError`."""
        value = self.definition.arguments.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise NotTakenError(f"the checker needs a number '{name}'", ARGUMENTS, name)
        return value

    def only(self, *known: str) -> None:
        """Raise `NotTakenError` if there are other arguments."""
        for name in self.definition.arguments:
            if name not in known:
                checker = self.definition.checker
                raise NotTakenError(f"'{checker}' takes no '{name}'", ARGUMENTS, name)
