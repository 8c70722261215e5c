"""What `run` prints of many regressions, which are in files, is what it prints of few."""

from __future__ import annotations

import gc
import json
import re
import tracemalloc
from pathlib import Path

import pytest

from evalstore.core import batches
from evalstore.planning.open_project import open_catalogue
from evalstore.planning.options import Location
from evalstore.results.flips.regressions import find_regressions
from evalstore.store import results
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.long_files import keep_in_files, treat_as_long

TEST = (
    "---\ndataset: {0}.jsonl\n---\n\n# 👤\n\nWhere is {{{{city}}}}?\n\n---\n\n"
    "~~~checks\n- contains: Oslo\n~~~\n"
)
GATE = ("run", "--yes", "--fail-on", "regression")
FORMS = (GATE, (*GATE, "--all"), (*GATE, "--json"), (*GATE, "-v"), (*GATE, "--baseline", "@~5"))


def _model(right: str) -> str:
    return (
        f"id: one\nprovider: scripted\nextraIdentifier: '{right}'\n"
        f"responses: [{{when: '{right}[?]', answer: Oslo}}, {{answer: Rome}}]\n"
    )


def _rows(count: int, edition: str = "") -> str:
    rows = ({"city": f"{edition}city {number}"} for number in range(count))
    return "".join(json.dumps(row) + "\n" for row in rows)


def _break(root: Path, evalstore: Evalstore, count: int) -> None:
    """Make runs in which all rows pass, then odd ones, then none; two rows were edited between."""
    tree(root, {"evalstore.yaml": "candidates: [one]\n"})
    for name in ("a", "b"):
        tree(root, {f"tests/{name}.md": TEST.format(name), f"tests/{name}.jsonl": _rows(count)})
    for number, right in enumerate(("[0-9]", "[13579]", "[159]", "none")):
        tree(root, {"models/one.yaml": _model(right)})
        if number == 2:
            tree(root, {"tests/b.jsonl": _rows(2, "old ") + _rows(count)})
        assert "complete" in evalstore("run", "--fail-on", "none", "--yes").stdout


def _plain(text: str) -> str:
    """Return what was printed without ids and times."""
    text = re.sub(r'"seconds": [0-9.]+', '"seconds": 0', text)
    ids, minute = r"[0-9a-f]{32}|run `[0-9a-f]{8}`", r"\d{4}-\d\d-\d\d \d\d:\d\d"
    return re.sub(f"{ids}|{minute}", "…", text)


def test_regressions_in_files_are_printed_like_those_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalstore: Evalstore
) -> None:
    printed: list[list[str]] = []
    for name in ("few", "many"):
        root = tmp_path / name
        root.mkdir()
        monkeypatch.chdir(root)
        _break(root, evalstore, 40)
        if name == "many":
            keep_in_files(monkeypatch)
            treat_as_long(monkeypatch)
            monkeypatch.setattr(batches, "SIZE", 7)
        forms = [_plain(evalstore(*form).stdout) for form in FORMS]
        printed.append([*forms, _plain(evalstore("report", "--markdown").stdout)])
    assert printed[0] == printed[1]
    gate, every, document, *_ = printed[0]
    assert "gate failed: 81 regressions (passed in runs <short>" in gate
    assert every.count("(regression: passed in ") == 81
    assert len(json.loads(document)["regressions"]) == 81
    assert "81 results still broken" in printed[0][-1]


@pytest.mark.extended
def test_regressions_need_little_memory_for_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalstore: Evalstore
) -> None:
    treat_as_long(monkeypatch)
    keep_in_files(monkeypatch)
    for module, name, number in (
        (batches, "SIZE", 20),
        (batches, "SMALL_SIZE", 4),
        (results, "_MOST_KEPT", 20),
    ):
        monkeypatch.setattr(module, name, number)
    peaks: list[int] = []
    for place, count in enumerate((40, 60, 180)):
        root = tmp_path / str(place)
        root.mkdir()
        monkeypatch.chdir(root)
        _break(root, evalstore, count)
        with open_catalogue(Location(root)) as project:
            (run,) = project.store.find_runs(limit=1)
            gc.collect()
            tracemalloc.start()
            found = find_regressions(project, run)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert len(found) == 2 * count + 1
    assert (peaks[2] - peaks[1]) / 240 < 1_400, peaks
