"""Tools that return a page of a very long list make JSON of that page alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalstore import Workspace
from evalstore.core.values import Failure
from evalstore.files import json_output
from evalstore.interfaces.mcp import read_tools
from evalstore.interfaces.mcp.read_tools import READ_TOOLS
from evalstore.planning.options import Location
from evalstore.planning.plan import PlanItem
from evalstore.results.compare.diff_result import Diff
from evalstore.results.grep import SearchHit
from tests.builders import tree
from tests.interfaces.cli.long_files import CHECK, CHECKED, ONE, ROWS, TWO, treat_as_long

pytestmark = pytest.mark.extended
_ROWS = 75


@pytest.fixture
def location(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Location:
    """A workspace of one long file, two candidates and no run."""
    treat_as_long(monkeypatch)
    files = {
        "evalstore.yaml": "candidates: [one, two]\nretries: 0\n",
        "models/one.yaml": ONE,
        "models/two.yaml": TWO,
        "tests/data.jsonl": ROWS,
        "tests/rows.md": CHECKED + CHECK,
    }
    return Location(tree(folder, files))


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Everything of which `to_json` made JSON."""
    made: list[object] = []
    real = json_output.to_json

    def to_json(value: Any) -> Any:
        made.append(value)
        return real(value)

    monkeypatch.setattr(read_tools, "to_json", to_json)
    return made


def _call(location: Location, name: str, **values: object) -> dict[str, Any]:
    tool = next(tool for tool in READ_TOOLS if tool.name == name)
    return tool.read(location, tool.arguments.model_validate(values))


def test_a_page_of_the_status_reads_its_items_alone(
    location: Location, described: list[object]
) -> None:
    for start, kinds in ((0, {"ask"}), (149, {"ask", "judge"}), (298, {"judge"}), (300, set())):
        document = _call(location, "status", offset=start, limit=2)
        assert {item["kind"] for item in document["items"]} == kinds
        assert document["page"]["total"] == 4 * _ROWS
    listed = [value for value in described if isinstance(value, PlanItem)]
    assert len(listed) == 6


def test_a_page_of_a_comparison_describes_its_pairs_alone(
    location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace.at(location)
    workspace.run(models=["one"])
    text = CHECKED.replace("Where", "So where") + CHECK
    tree(location.directory, {"tests/rows.md": text})
    workspace.run(models=["one"])
    made: list[object] = []
    real = Diff.pair_document

    def describe(compared: Diff, pair: Any) -> Any:
        made.append(pair)
        return real(compared, pair)

    monkeypatch.setattr(Diff, "pair_document", describe)
    runs = {"before": "@~1", "after": "@", "changes": ["changed"]}
    document = _call(location, "diff", **runs, offset=5, limit=3)
    assert document["counts"]["changed"] == document["page"]["total"] > 50
    assert [change["change"] for change in document["changes"]] == ["changed"] * 3
    assert len(made) == 3


def test_a_search_lists_the_newest_of_very_many_texts(
    location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    Workspace.at(location).run(models=["one"])
    arguments = {"pattern": "oslo", "within": "answers", "limit": 4}
    whole = _call(location, "search", **arguments)
    assert whole["page"]["total"] > 50
    assert "leftOut" not in whole
    made: list[SearchHit] = []
    real = SearchHit.document

    def describe(hit: SearchHit) -> Any:
        made.append(hit)
        return real(hit)

    monkeypatch.setattr(SearchHit, "document", describe)
    monkeypatch.setattr(read_tools, "MOST_FOUND", 10)
    document = _call(location, "search", **arguments)
    assert (document["page"]["total"], document["leftOut"]) == (10, whole["page"]["total"] - 10)
    assert {hit["in"] for hit in document["hits"]} == {"answers"}
    assert len(made) == len(document["hits"]) == 4


def test_a_page_of_failed_calls_reads_no_others(
    location: Location, described: list[object]
) -> None:
    Workspace.at(location).run(models=["two"])
    document = _call(location, "list_failed_calls", offset=2, limit=3)
    assert document["page"] == {"offset": 2, "total": 12, "next": 5}
    assert len(document["failures"]) == len(described) == 3
    assert not any(isinstance(value, Failure) for value in described)
