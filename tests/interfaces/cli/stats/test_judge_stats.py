"""`stats --by judge` tells which judge is too lenient: by labels of people, and by other judges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore

JUDGE = """\
id: scripted/{name}
provider: scripted
responses:
  - {{when: '{fails}', answer: {{pass: false, feedback: No.}}}}
  - {{when: 'city 9', answer: Perhaps.}}
  - {{answer: {{pass: true, feedback: Yes.}}}}
"""
FILES = {
    "evalstore.yaml": "candidates: [one]\nevaluators: [scripted/strict, scripted/lenient]\n",
    "models/one.yaml": "id: one\nprovider: scripted\n"
    "responses: [{when: 'city 9', answer: In city 9.}, {answer: Here.}]\n",
    "models/strict.yaml": JUDGE.format(name="strict", fails="city [123]"),
    "models/lenient.yaml": JUDGE.format(name="lenient", fails="city 1"),
    "tests/t.md": "---\nreplacements: {n: [1, 2, 3, 4]}\n---\n\n# 👤\n\nWhere is it?\n\n---\n\n"
    "It is about city {{n}}.\n\n~~~checks\n- contains: e\n~~~\n",
}


@pytest.fixture
def judged(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    evalstore: Evalstore,
    store_url: str | None,
) -> Path:
    """Four cases, of which one judge fails three and another one, in either database."""
    del store_url  # commands take it from the environment
    monkeypatch.chdir(tree(tmp_path / "w", FILES))
    evalstore("run", "-q")
    return Path.cwd()


def test_judges_are_compared_with_each_other(judged: Path, documents: Any) -> None:
    for revision in ("@work", "@"):
        lenient, strict = documents("stats", revision, "--by", "judge")["groups"]
        assert (lenient["evaluator"], lenient["judgements"], lenient["passed"]) == (
            *("scripted/lenient", 4, 3),
        )
        assert (strict["evaluator"], strict["failed"]) == ("scripted/strict", 3)
        assert lenient["evaluators"] == {
            "agreed": 2,
            "compared": 4,
            "passedAlone": 2,
            "failedAlone": 0,
        }
        assert strict["evaluators"]["failedAlone"] == 2
        assert strict["people"]["compared"] == 0


def test_judges_are_compared_with_people(
    judged: Path, evalstore: Evalstore, documents: Any
) -> None:
    for row, verdict in ((1, "fail"), (2, "fail"), (3, "pass"), (4, "pass")):
        evalstore("label", f"tests/t.md::n={row}", verdict, "--as", "Ada")
    lenient, strict = documents("stats", "--by", "evaluator")["groups"]
    assert lenient["people"] == {"agreed": 3, "compared": 4, "falsePasses": 1, "falseFails": 0}
    assert strict["people"] == {"agreed": 3, "compared": 4, "falsePasses": 0, "falseFails": 1}
    shown = evalstore("stats", "--by", "judge").stdout.splitlines()
    assert shown[0] == "workspace, judges"
    assert shown[1].startswith("JUDGE             JUDGED  PASSED  UNDECIDED  AGREES WITH PEOPLE")
    assert " ".join(shown[2].split()) == (
        "scripted/lenient 4 75.0% 0 75.0% of 4 1 0 50.0% of 4 2 0"
    )


def test_labels_of_earlier_answers_count_against_the_verdicts_on_them(
    judged: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("label", "tests/t.md::n=1", "pass", "--as", "Ada")
    evalstore("label", "tests/t.md::n=2", "pass", "--as", "Ada")
    evalstore("label", "tests/t.md::n=2", "none", "--as", "Ada")
    tree(judged, {"models/one.yaml": FILES["models/one.yaml"].replace("Here.", "There.")})
    evalstore("run", "-q", "--refresh")
    for revision in ("@work", "@"):
        lenient, _ = documents("stats", revision, "--by", "judge")["groups"]
        assert lenient["people"] == {"agreed": 0, "compared": 1, "falsePasses": 0, "falseFails": 1}


def test_without_labels_the_table_says_how_to_make_some(judged: Path, evalstore: Evalstore) -> None:
    assert evalstore("stats", "--by", "judge").stderr.startswith(
        "(no judge has decided an answer with a label: 'evalstore label' gives"
    )


def test_without_judges_it_says_so(tmp_path: Path, evalstore: Evalstore) -> None:
    files = {**FILES, "evalstore.yaml": "candidates: [one]\n"}
    files["tests/t.md"] = "# 👤\n\nHi\n\n---\n\n~~~checks\n- contains: e\n~~~\n"
    folder = str(tree(tmp_path / "x", files))
    evalstore("-C", folder, "run", "-q")
    shown = evalstore("-C", folder, "stats", "--by", "judge")
    assert shown.stderr == "error: no judge has judged an answer of the workspace\n"
