"""The mark on the pass rate of a candidate of whose results only a part is judged."""

from __future__ import annotations

import re
from pathlib import Path

from tests.html_report.pages import call, make_workspace, report


def test_the_rate_of_a_candidate_that_is_partly_judged_is_marked(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "desk", {})
    assert call(root, "run", "--fail-on", "none") == 0
    test = root / "tests/again.md"
    test.write_text("# 👤\n\nAgain?\n\n---\n\n~~~checks\n- contains: a\n~~~\n", encoding="utf-8")
    note = "~ marks a pass rate of a part of the results: fewer are judged than of another."
    assert call(root, "run", "-m", "first", "--fail-on", "none") == 0
    text = report(root, "@work").read_text(encoding="utf-8")
    assert f'<p class="note">{note}</p>' in text
    assert re.search(r'<td class="number">~[\d.]+%</td>', text)
    assert call(root, "run", "--fail-on", "none") == 0
    text = report(root, "@work").read_text(encoding="utf-8")
    assert note not in text
    assert '<td class="number">~' not in text
