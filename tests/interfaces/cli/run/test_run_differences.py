"""How many results of a run have another verdict than before: one way of counting, everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstore.planning.open_project import open_store
from evalstore.planning.options import Location
from evalstore.results.compare.diff import diff
from evalstore.results.flips.verdict_changes import (
    Outcome,
    RunDifferences,
    read_run_differences,
)
from evalstore.results.log.log import log
from evalstore.results.table.cases import find_broken_results
from tests.builders import tree
from tests.interfaces.cli.conftest import Echo, Evalstore

TEST = "{id}# 👤\n\nHello {name}\n\n---\n\n```checks\n- contains: Hello\n```\n"
WITH_ID = "---\nid: x\n---\n"


def differences_of(location: Location, *, number: int = 0) -> RunDifferences:
    """Those of a run; 0 is the newest."""
    with open_store(location) as store:
        run = store.find_runs()[number].id
    return read_run_differences(location, [run])[run]


def test_results_of_a_file_whose_path_was_taken_by_another_one_are_no_flips(
    echo: Echo, tmp_path: Path, evalstore: Evalstore
) -> None:
    """The file b has the id of a now, and the results it had: a is at its path, and b is gone."""
    folder, location = tmp_path / "echo", Location(tmp_path / "echo")
    files = {f"tests/{name}.md": TEST.format(id="", name=name) for name in "bc"}
    tree(folder, files | {"tests/a.md": TEST.format(id=WITH_ID, name="a")})
    evalstore("run", "-q")
    (folder / "tests/a.md").unlink()
    tree(
        folder,
        {
            "tests/b.md": TEST.format(id=WITH_ID, name="b"),
            "tests/d.md": TEST.format(id="", name="d"),
        },
    )
    evalstore("run", "-q")
    with open_store(location) as store:
        now, before = (run.id for run in store.find_runs(limit=2))
    found = differences_of(location)
    assert (found.broke, found.fixed, found.others) == (0, 0, 0)
    assert differences_of(location, number=1) == RunDifferences(is_first=True)
    compared = diff(location, before, now)
    assert (len(compared.new), len(compared.gone)) == (1, 1)
    assert compared.causes[0].files == ("tests/b.md",)


@pytest.mark.parametrize("was_fixed_meanwhile", [False, True])
def test_a_run_of_all_behind_a_partial_one_counts_since_the_last_verdict_of_each_case(
    echo: Echo, tmp_path: Path, evalstore: Evalstore, was_fixed_meanwhile: bool
) -> None:
    folder, location = tmp_path / "echo", Location(tmp_path / "echo")
    tree(folder, {f"tests/{name}.md": TEST.format(id="", name=name) for name in "ab"})
    evalstore("run", "-q")
    broken = TEST.replace("contains: Hello", "contains: Bye")
    tree(folder, {"tests/a.md": broken.format(id="", name="a")})
    evalstore("run", "-q", "tests/a.md")
    again = broken if not was_fixed_meanwhile else TEST
    tree(folder, {"tests/a.md": again.format(id="", name="a")})
    evalstore("run", "-q")
    with open_store(location) as store:
        runs = [run.id for run in store.find_runs()]
    expected = [Outcome(0, int(was_fixed_meanwhile), ()), Outcome(1, 0, ())]
    entries = log(location).entries
    for number, counts in enumerate(expected):
        found = differences_of(location, number=number)
        assert (found.broke, found.fixed) == counts[:2]
        assert entries[number].outcome == counts
        listed = find_broken_results(location, runs[number])
        assert listed is not None
        assert len(listed) == found.broke
    partial, whole = differences_of(location, number=1), differences_of(location)
    assert partial.line is not None
    assert partial.line.text == "since the run before: 1 broke"
    assert [change for change, _ in partial.names] == ["broke"]
    line = "since the last verdict on each case: 1 fixed" if was_fixed_meanwhile else None
    assert (whole.line.text if whole.line else None) == line
