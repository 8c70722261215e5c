"""One of the two sides that a comparison has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.comparison.placed_results import PlacedResults
from evalstore.planning.reasons.source_changes import compare_sources

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Set

    from evalstore.comparison.comparison import EqualPart
    from evalstore.core.results import Result
    from evalstore.core.runs import RunSources
    from evalstore.core.values import CaseFile
    from evalstore.planning.reasons.source_changes import SourceChanges
    from evalstore.results.prompt_names import PromptPlace

OTHER = "\0"
"""Suffix for a file that is gone while another file has its path; no real path contains it.

After a node, the file whose older cases stand in it follows.
"""


@dataclass
class EqualResults:
    """Results that both sides have, in the same places, which are counted and not read."""

    leaves: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Test file -> the nodes that have them."""
    parts: list[EqualPart] = field(default_factory=list)
    """Their sums."""
    prompts: list[PromptPlace] = field(default_factory=list)
    """The system prompts of files whose cases have several."""


@dataclass
class Side:
    """One of the two sides."""

    name: str
    """The id of a run, or `workspace`."""
    nodes: dict[str, str]
    """The snapshot: test file -> leaf."""
    files: dict[str, CaseFile]
    models: set[str] | None
    """The candidates; None when the run was restricted to some of them."""
    entries: Mapping[str, str] = field(default_factory=dict)
    """The results of a run: test file -> leaf."""
    results: PlacedResults = field(default_factory=PlacedResults)
    """The results, but for the equal ones."""
    equal: EqualResults = field(default_factory=EqualResults)
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
    sources: RunSources | None = None
    """The digests of its test files and of what they use."""
    former: Mapping[str, str] = field(default_factory=dict)
    """Its paths of test files whose path is another one now."""
    earlier_sources: Mapping[str, RunSources | None] = field(default_factory=dict)
    """Test files with versions of earlier runs -> the digests of the run with it."""

    @property
    def with_results(self) -> Set[str]:
        """Return the test files of which it has results."""
        return self.results.file_names.keys() | self.equal.leaves.keys()

    @property
    def count(self) -> int:
        """Return how many results it has."""
        return len(self.results) + sum(part.results for part in self.equal.parts)

    def compare_sources(self, now: Side, path: str) -> SourceChanges | None:
        """Return whose bytes differ in a newer version of a test file; None: it is not known."""
        if path not in self.earlier_sources:
            return compare_sources(self.sources, now.sources, path, self.former.get(path))
        sources = self.earlier_sources[path]
        is_known = sources is not None and path in sources.tests
        return compare_sources(sources if is_known else None, now.sources, path)
