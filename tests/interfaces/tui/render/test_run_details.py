"""The details of a run beside the list of runs."""

from __future__ import annotations

from dataclasses import replace

from evalstore.interfaces.tui.render.run_details import run_lines
from evalstore.results.table.cases import RunLine
from tests.interfaces.tui.render.test_run_columns import line


def _text(runs: list[RunLine]) -> str:
    lines = run_lines(runs, 0, lambda _run: None, lambda text: text)
    return "\n".join("".join(span.text for span in each.spans) for each in lines)


def test_who_has_made_a_run_is_said_where_several_have_made_runs() -> None:
    own, other = (replace(line(), author=author) for author in ("Ann", "Bob"))
    assert "run by" not in _text([own, own])
    assert "run by Ann" in _text([own, other])
    assert "run by Bob" in _text([other, own])
