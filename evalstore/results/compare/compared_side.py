"""One of the two sides that a comparison has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.planning.cells.settled_parts import SettledParts
from evalstore.planning.reasons.source_changes import compare_sources

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalstore.comparison.placed_results import PlacedResults
    from evalstore.core.results import Result
    from evalstore.core.runs import RunSources
    from evalstore.core.values import CaseFile
    from evalstore.planning.reasons.source_changes import SourceChanges

OTHER = "\0"
"""Suffix for a file that is gone while another file has its path; no real path contains it.

After a node, the file whose older cases stand in it follows.
"""


@dataclass
class Side:
    """One of the two sides."""

    name: str
    """The id of a run, or `workspace`."""
    results: PlacedResults
    nodes: dict[str, str]
    """The snapshot: test file -> leaf."""
    files: dict[str, CaseFile]
    models: set[str] | None
    """The candidates; None when the run was restricted to some of them."""
    selection: str = ""
    """The selection of a run of some of the cases; else empty."""
    by_verdict: bool = False
    """Whether a run has chosen its cases by their verdicts."""
    rule: str = ""
    """The rule by which several votes make a verdict."""
    left_out: frozenset[str] = frozenset()
    """Candidates of the settings that lack what all of the cases need."""
    named: frozenset[str] = frozenset()
    """Candidates of a run that only `-m` named."""
    earlier: Mapping[Result, str] = field(default_factory=dict)
    """Results of earlier runs that are filled in -> the id of the run."""
    equal: SettledParts = field(default_factory=SettledParts)
    """The parts that are equal on both sides; their results are left out."""
    sources: RunSources | None = None
    """The digests of its test files and of what they use."""
    former: Mapping[str, str] = field(default_factory=dict)
    """Its paths of test files whose path is another one now."""
    earlier_sources: Mapping[str, RunSources | None] = field(default_factory=dict)
    """Test files with versions of earlier runs -> the digests of the run with it."""

    def compare_sources(self, now: Side, path: str) -> SourceChanges | None:
        """Return whose bytes differ in a newer version of a test file; None: it is not known."""
        if path not in self.earlier_sources:
            return compare_sources(self.sources, now.sources, path, self.former.get(path))
        sources = self.earlier_sources[path]
        is_known = sources is not None and path in sources.tests
        return compare_sources(sources if is_known else None, now.sources, path)
