"""What `status` says of cases whose answers are those of another case, or of an earlier version."""

from __future__ import annotations

from pathlib import Path

from tests.builders import tree
from tests.interfaces.cli.conftest import Echo, Evalstore
from tests.interfaces.cli.run.test_run import edit


def test_a_question_that_becomes_that_of_another_file_was_edited_and_not_judged_otherwise(
    workspace: Path, evalstore: Evalstore
) -> None:
    full = "# User\n\nHow long?\n\n---\n\nBe very polite.\n\n~~~checks\n- contains: old\n~~~\n"
    brief = "# User\n\nIn short: how long?\n\n---\n\nBe polite.\n"
    tree(workspace, {"tests/brief.md": brief, "tests/full.md": full})
    evalstore("run", "-q")
    edited = "test changed: message 1, line 1: In short: how long? -> How long?"
    for before, after, expected in (
        ("In short: how", "How", f"1 case judged again: {edited}; the answer is stored"),
        (
            "Be polite",
            "Be kind",
            f"1 case judged again: {edited}; the answer is stored; also changed: instructions",
        ),
    ):
        edit(workspace / "tests/brief.md", before, after)
        assert f"  M.  tests/brief.md  {expected}\n" in evalstore("status").stdout
    assert f"by scripted/judge  {edited}; the" in evalstore("status", "--explain").stdout
    tree(workspace, {"tests/brief.md": full})
    settled = "  =   tests/brief.md  answered and judged already\n"
    assert settled in evalstore("status").stdout
    # Of two files that ask the same for the first time, one has the question in the plan.
    tree(workspace, {"tests/brief.md": full.replace("long?", "wide?")})
    edit(workspace / "tests/full.md", "long?", "wide?")
    reason = "1 case asked again: asked in tests/brief.md"
    assert f"  M.  tests/full.md   {reason}\n" in evalstore("status").stdout
    edit(workspace / "tests/full.md", "very polite", "short")
    reason = "test changed: message 1, line 1: How long? -> How wide?; asked in tests/brief.md"
    shown = evalstore("status").stdout
    assert f"full.md   1 case asked again: {reason}; also changed: instructions\n" in shown


def test_a_row_that_an_undone_edit_brings_back_is_counted_and_says_that_it_fails(
    echo: Echo, evalstore: Evalstore
) -> None:
    text = (
        "---\ndataset: d.csv\nrowId: n\n---\n\n# User\n\n{{q}}\n\n---\n\n"
        "~~~checks\n- contains: warm\n~~~\n"
    )
    tree(Path(), {"tests/t.md": text, "tests/d.csv": "n,q\n1,warm\n2,cold\n"})
    evalstore("run", "-q")
    tree(Path(), {"tests/d.csv": "n,q\n1,warm\n2,very warm\n"})
    evalstore("run", "-q")
    tree(Path(), {"tests/d.csv": "n,q\n1,so warm\n2,cold\n"})
    reverted = "reverted to a stored version"
    shown = (
        f"1 case asked again, 1 {reverted}: test changed: message 1, line 1: warm -> so warm "
        "(rows of tests/d.csv)\n"
    )
    for _ in range(2):  # the second time from the cache
        assert f"  M.  tests/t.md  {shown}" in evalstore("status").stdout
    tree(Path(), {"tests/d.csv": "n,q\n1,warm\n2,cold\n"})
    shown = evalstore("status").stdout
    assert f"  =   tests/t.md  rows of tests/d.csv {reverted}\n" in shown
    assert "Since the last run, without new calls: 1 result broke" in shown
