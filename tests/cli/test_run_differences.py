"""How many results of a run have another verdict than in an earlier one, through renames."""

from __future__ import annotations

from pathlib import Path

from evalstore.operations.diff import diff
from evalstore.operations.views.run_differences import RunDifferences, read_run_differences
from evalstore.planning.open_project import open_store
from evalstore.planning.options import Location
from tests.builders import tree
from tests.cli.conftest import Echo, Evalstore

TEST = "{id}# 👤\n\nHello {name}\n\n---\n\n```checks\n- contains: Hello\n```\n"
WITH_ID = "---\nid: x\n---\n"


def test_a_file_whose_path_was_taken_by_another_one_is_gone(
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
    assert read_run_differences(location, [(now, before)]) == {
        (now, before): RunDifferences(new=1, gone=1)
    }
    compared = diff(location, before, now)
    assert (len(compared.new), len(compared.gone)) == (1, 1)
    assert compared.causes[0].files == ("tests/b.md",)
