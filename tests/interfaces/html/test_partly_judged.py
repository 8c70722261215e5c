"""The mark on the pass rate of a candidate of whose results only a part is judged."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evalstore.results.stats.groups import PARTLY_TEXT
from tests.interfaces.html.pages import TEST, call, make_workspace, report, scripted


def test_the_rate_of_a_candidate_that_is_partly_judged_is_marked(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "desk", {})
    assert call(root, "run", "--fail-on", "none") == 0
    test = root / "tests/again.md"
    test.write_text("# 👤\n\nAgain?\n\n---\n\n~~~checks\n- contains: a\n~~~\n", encoding="utf-8")
    note = "~ marks a group with fewer verdicts than others."
    assert call(root, "run", "-m", "first", "--fail-on", "none") == 0
    text = report(root, "@work").read_text(encoding="utf-8")
    assert text.count(note.rstrip(".")) > text.count(note) > 0  # in the grey line, too
    assert re.search(r'<span class="big">~[\d.]+%</span>', text)
    assert call(root, "run", "--fail-on", "none") == 0
    text = report(root, "@work").read_text(encoding="utf-8")
    assert note not in text
    assert '<span class="big">~' not in text


def test_it_is_marked_in_markdown_as_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = scripted("second", {"when": "Bye", "error": 500}, {"answer": "Good morning!"})
    files = {"tests/bye.md": TEST.replace("Hello", "Bye"), "models/second.yaml": failing}
    root = make_workspace(tmp_path / "desk", files)
    assert call(root, "run", "--retries", "0", "--fail-on", "none") == 3
    capsys.readouterr()
    assert call(root, "report", "--markdown") == 0
    lines = capsys.readouterr().out.splitlines()
    rates = {
        line.split(" | ")[0]: line.split(" | ")[1]
        for line in lines
        if line[:1] == "|" and "%" in line
    }
    assert rates["| `second`"] == "~100.0%"
    assert not any(rate.startswith("~") for name, rate in rates.items() if name != "| `second`")
    assert f"{PARTLY_TEXT}." in lines
    lead = "; its lead over second may be chance. So far: 1 result is pending."
    best = "Best: `first`, 100%" + lead.replace("second", "`second`")
    assert any(best in line for line in lines)
    assert f"Best: first, 100%{lead}" in report(root, "@").read_text(encoding="utf-8")
    label = ("label", "tests/hello.md", "--model", "first", "--as", "Ada")
    assert call(root, *label, "fail") == 0
    told = "People's labels changed 1 result: 1 broke, none fixed."
    assert told in report(root, "@work").read_text(encoding="utf-8").replace("&#39;", "'")
    assert call(root, *label, "--remove") == 0
    (root / "models/first.yaml").write_text(scripted("first", {"answer": "Go away."}))
    assert call(root, "run", "--refresh", "--retries", "0", "--fail-on", "none") == 3
    capsys.readouterr()
    assert call(root, "report", "--markdown") == 0
    text = capsys.readouterr().out
    assert "~100.0%" in text
    assert "`first` got worse, 100% to 0%" in text  # it has all its verdicts
    assert "Best: " not in text  # what is not judged says nothing for another candidate
    root = make_workspace(tmp_path / "whole", {})
    call(root, "run", "--fail-on", "none")
    capsys.readouterr()
    assert call(root, "report", "--markdown") == 0
    assert "~" not in capsys.readouterr().out


def test_new_results_that_are_pending_are_not_among_those_of_which_some_fail(
    tmp_path: Path,
) -> None:
    root = make_workspace(tmp_path / "desk", {})
    call(root, "run", "--fail-on", "none")
    good = {"answer": "Good morning!"}
    (root / "tests/bye.md").write_text(TEST.replace("Hello", "Bye"), encoding="utf-8")
    model = root / "models/first.yaml"
    model.write_text(scripted("first", {"when": "Bye", "error": 500}, good), encoding="utf-8")
    assert call(root, "run", "--retries", "0", "--fail-on", "none") == 3
    assert "; 1 of 1 judged new result fails" in report(root, "@").read_text(encoding="utf-8")
    model.write_text(scripted("first", good), encoding="utf-8")
    call(root, "run", "--fail-on", "none")
    text = report(root, "@work").read_text(encoding="utf-8")
    assert "judged new result" not in text
