"""The verdicts of a run by file: which files there is room for."""

from __future__ import annotations

import pytest

from evalstore.interfaces.tui.render.run_details import file_lines
from evalstore.runs.status.dashboard import FileVerdicts, RunFiles

FILES = tuple(
    FileVerdicts(f"tests/a-topic-{number:02}.md", {"pass": 3, "fail": number % 2}, number == 0)
    for number in range(40)
)


def texts(width: int, height: int, run: RunFiles) -> list[str]:
    return [line.text for line in file_lines(run, width, height)]


@pytest.mark.parametrize("width", [50, 78, 200])
@pytest.mark.parametrize("height", [8, 12])
def test_as_many_files_are_listed_as_fit_and_the_others_are_counted(
    width: int, height: int
) -> None:
    lines = texts(width, height, RunFiles(FILES, 100))
    listed = sum("/" in line for line in lines)
    assert len(lines) == height
    assert listed == height - 3
    assert lines[-1] == f"and {140 - listed} more"
    assert max(map(len, lines)) <= width


def test_when_all_fit_none_is_counted() -> None:
    *_, last = lines = texts(78, 42, RunFiles(FILES))
    assert len(lines) == 42
    assert last.split() == ["tests/a-topic-39.md", "███░", "3/4"]


def test_new_failures_are_marked_and_a_short_panel_lists_some_files() -> None:
    lines = texts(78, 0, RunFiles(FILES))
    assert lines[:2] == ["", "verdicts by file"]
    assert lines[2].split() == ["tests/a-topic-00.md", "███", "3/3", "1", "new", "failure"]
    assert len(lines) == 6


def test_a_file_whose_results_are_all_pending_has_no_rate() -> None:
    run = RunFiles((FileVerdicts("tests/a.md", {"pending": 2}),))
    assert texts(78, 9, run)[2].split() == ["tests/a.md", "……", "-"]
    assert texts(78, 9, RunFiles()) == []
