"""One of the two sides that a comparison has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.planning.settled_parts import SettledParts

if TYPE_CHECKING:
    from evalstore.results import Result
    from evalstore.values import CaseFile


@dataclass
class Side:
    """One of the two sides."""

    name: str
    """The id of a run, or `workspace`."""
    results: list[Result]
    nodes: dict[str, str]
    """The snapshot: test file -> leaf."""
    files: dict[str, CaseFile]
    models: set[str] | None
    """The candidates; None when the run was restricted to some of them."""
    selection: str = ""
    """The selection of a run of some of the cases; else empty."""
    rule: str = ""
    """The rule by which several votes make a verdict."""
    left_out: frozenset[str] = frozenset()
    """Candidates of the settings that lack what all of the cases need."""
    named: frozenset[str] = frozenset()
    """Candidates of a run that only `-m` named."""
    earlier: dict[Result, str] = field(default_factory=dict)
    """Results of earlier runs that are filled in -> the id of the run."""
    equal: SettledParts = field(default_factory=SettledParts)
    """The parts that are equal on both sides; their results are left out."""
