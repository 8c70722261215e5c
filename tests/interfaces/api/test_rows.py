"""Results as rows: plain values with the documented columns, for pandas, polars and Arrow."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from evalstore import EvalstoreError, Workspace, init
from evalstore.exchange.exports.formats import COLUMNS, NAMES
from evalstore.planning.options import Location
from tests.builders import tree

LIST = "list<item: string>"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = init(tmp_path_factory.mktemp("rows"))
    workspace.run()
    return workspace


def test_rows_are_plain_values_with_the_columns_of_an_export(workspace: Workspace) -> None:
    rows = workspace.to_rows()

    assert [(*row,) for row in rows] == [NAMES, NAMES]
    assert json.loads(json.dumps(rows)) == rows
    assert [(row["file"], row["row"], row["model"], row["verdict"]) for row in rows] == [
        ("tests/hello.md", "language=English", "scripted/parrot", "pass"),
        ("tests/hello.md", "language=French", "scripted/parrot", "fail"),
    ]


def test_rows_are_those_that_export_writes(workspace: Workspace, tmp_path: Path) -> None:
    from evalstore.exchange.export import write_exports

    write_exports(Location(Path(workspace.root)), "@", [tmp_path / "all.jsonl"])
    lines = (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()
    assert workspace.to_rows() == [json.loads(line) for line in lines]


def test_rows_of_a_run_or_of_the_workspace(workspace: Workspace) -> None:
    (run,) = workspace.runs()
    assert workspace.to_rows(run) == workspace.to_rows(run.id[:8]) == workspace.to_rows()
    assert {row["run"] for row in workspace.to_rows()} == {run.id}
    assert {row["run"] for row in workspace.to_rows(None)} == {"workspace"}
    listed = [workspace.to_rows(revision) for revision in ("@work", None)]
    for row in (row for rows in listed for row in rows):
        del row["started"]  # when it was read
    assert listed[0] == listed[1]


def test_rows_of_an_unknown_run_are_an_error(workspace: Workspace) -> None:
    with pytest.raises(EvalstoreError, match="unknown run '@~7'"):
        workspace.to_rows("@~7")


def test_rows_of_a_workspace_before_its_first_run(tmp_path: Path) -> None:
    rows = init(tmp_path).to_rows(None)
    assert [(row["verdict"], row["answer"], row["cost"]) for row in rows] == [
        ("pending", None, 0.0),
        ("pending", None, 0.0),
    ]


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_data_frame_takes_the_rows_as_they_are(workspace: Workspace, name: str) -> None:
    library: ModuleType = pytest.importorskip(name)
    frame = library.DataFrame(workspace.to_rows())

    assert tuple(frame.columns) == NAMES
    assert frame.shape == (2, len(NAMES))
    assert list(frame["verdict"]) == ["pass", "fail"]
    assert list(frame["tags"][0]) == ["greeting"]


def test_arrow_has_the_same_rows_with_types(workspace: Workspace) -> None:
    table = workspace.to_arrow()

    assert table.to_pylist() == workspace.to_rows()
    types = {"integer": "int64", "number": "double", "text": "string"}
    assert {str(table.schema.field(name).type) for name in ("tags", "sessions")} == {LIST}
    assert [str(field.type) for field in table.schema] == [
        types.get(column.type, LIST) for column in COLUMNS
    ]


def test_without_pyarrow_the_error_names_the_extra(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(EvalstoreError, match="an Arrow table needs pyarrow") as raised:
        workspace.to_arrow()
    assert raised.value.hint == "install the extra: pip install 'evalstore[parquet]'"


def test_texts_of_models_are_not_changed(tmp_path: Path) -> None:
    workspace = init(tmp_path)
    tree(workspace.root, {"models/parrot.yaml": HOSTILE})
    workspace.run()
    assert workspace.to_rows()[0]["answer"] == "=1+1<script>\u202e"


HOSTILE = """\
id: scripted/parrot
provider: scripted
responses: [{answer: "=1+1<script>\\u202E"}]
"""
