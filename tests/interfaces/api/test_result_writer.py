"""Reports and exports through the library."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evalstore import EvalstoreError, RevisionError, Workspace


@pytest.fixture
def after_runs(workspace: Workspace) -> Workspace:
    """The workspace after two runs."""
    workspace.run()
    workspace.run()
    return workspace


def test_a_report_is_written_relative_to_the_current_folder(
    after_runs: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = after_runs.runs()[1]
    written = after_runs.report("first.html", run)
    assert (written.run, written.bytes) == (run.id, Path("first.html").stat().st_size)
    assert ">no earlier run to compare with</span>" in Path("first.html").read_text(
        encoding="utf-8"
    )
    after_runs.report("first.html", compare=run)
    assert f"compared with run {run.id[:8]}" in Path("first.html").read_text(encoding="utf-8")
    assert after_runs.report("now.html", None).run == "workspace"
    Path("mine.html").write_text("mine", encoding="utf-8")
    with pytest.raises(EvalstoreError, match="is not a report"):
        after_runs.report("mine.html")
    for name in ("mine.pdf", "mine.md"):
        with pytest.raises(EvalstoreError, match="is not the name of an HTML file"):
            after_runs.report(name)
        assert not Path(name).exists()


def test_a_comment_is_returned(after_runs: Workspace) -> None:
    newest, first = after_runs.runs()
    text = after_runs.report_markdown(compare=first)
    assert text.startswith("### evalstore: Nothing broke or was fixed. ")
    assert f"`{newest.id[:8]}`" in text
    with pytest.raises(RevisionError):
        after_runs.report_markdown("@~7")


def _untimed(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows without the time, which is that of the call for the workspace."""
    return [{name: value for name, value in row.items() if name != "started"} for row in rows]


def test_rows_are_those_of_an_export(after_runs: Workspace, tmp_path: Path) -> None:
    rows = after_runs.to_rows()
    after_runs.export(tmp_path / "results.jsonl")
    lines = (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == rows
    assert [row["model"] for row in rows] == [result.model for result in after_runs.results()]
    assert after_runs.to_rows(None)[0]["run"] == "workspace"
    after_runs.export(tmp_path / "now.jsonl", None)
    lines = (tmp_path / "now.jsonl").read_text(encoding="utf-8").splitlines()
    assert _untimed([json.loads(line) for line in lines]) == _untimed(after_runs.to_rows(None))
    after_runs.export(tmp_path / "results", format="csv")
    assert (tmp_path / "results").read_text(encoding="utf-8").startswith("schemaVersion,run,")
    with pytest.raises(EvalstoreError, match="names no format"):
        after_runs.export(tmp_path / "results.doc")
