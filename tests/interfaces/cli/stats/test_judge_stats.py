"""`stats --by judge` tells which judge is too lenient: by labels of people, and by other judges."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from evalstore.results.stats.stats import JudgeStats, rank_judges
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
        "scripted/lenient 4 75.0% 0 75.0% of 4 1 of 2 (50%) 0 of 2 (0%) 50.0% of 4 2 0"
    )


def test_several_labels_on_an_answer_count_once_and_a_tie_does_not(
    judged: Path, evalstore: Evalstore, documents: Any
) -> None:
    """The lenient judge passes cities 2 and 3; people disagree about city 2."""
    for person, verdict in (("Ada", "fail"), ("Bo", "pass"), ("Cy", "fail")):
        evalstore("label", "tests/t.md::n=2", verdict, "--as", person)
    lenient, _ = documents("stats", "--by", "judge")["groups"]
    once = {"agreed": 0, "compared": 1, "falsePasses": 1, "falseFails": 0}
    assert lenient["people"] == once
    for person, verdict in (("Ada", "fail"), ("Bo", "pass")):
        evalstore("label", "tests/t.md::n=3", verdict, "--as", person)
    for revision in ("@work", "@"):
        table = documents("stats", revision, "--by", "judge")
        assert (table["groups"][0]["people"], table["ties"]) == (once, 1)
    assert evalstore("stats", "--by", "judge").stderr == (
        "(labels on answers that were replaced are included)\n"
        "(scripted/lenient: 3 of 5 labels compared; 2 tied)\n"
        "(scripted/strict: 3 of 5 labels compared; 2 tied)\n"
    )


def test_a_label_is_not_compared_while_a_verdict_of_a_judge_is_missing(
    judged: Path, evalstore: Evalstore, documents: Any
) -> None:
    """A label decides, so the changed judge is not asked about the answer."""
    evalstore("label", "tests/t.md::n=1", "fail", "--as", "Ada")
    assert [row["judged"] for row in documents("ls", "labels")["labels"]] == ["fail"]
    edited = FILES["models/lenient.yaml"] + "code: second\n"
    tree(judged, {"models/lenient.yaml": edited})
    evalstore("run", "-q")
    (row,) = documents("ls", "labels")["labels"]
    assert (row["judged"], row["agrees"]) == (None, None)
    assert evalstore("ls", "labels").stderr == (
        "no labelled answer has been judged completely by checks and judges.\n"
    )


def test_the_most_lenient_judge_is_first_and_named_with_what_shows_it(
    judged: Path, evalstore: Evalstore
) -> None:
    def listed() -> tuple[str, str]:
        lines = evalstore("stats", "--by", "judge").stdout.splitlines()
        return lines[2].split()[0], " ".join(lines[4:])

    few = " (to count false passes, each judge needs 5 answers that people failed)"
    by_judges = (
        "most lenient: scripted/lenient passed 75.0% of the answers it judged; "
        "other judges passed 25.0% of them"
    )
    for row in (1, 2, 3):
        assert listed() == ("scripted/lenient", by_judges + few)
        evalstore("label", f"tests/t.md::n={row}", "fail", "--as", "Ada")
    tree(judged, {"tests/t.md": FILES["tests/t.md"].replace("3, 4]", "3, 4, 5, 6, 7]")})
    evalstore("run", "-q")
    for row in (4, 5, 6, 7):
        evalstore("label", f"tests/t.md::n={row}", "fail", "--as", "Ada")
    by_people = "most lenient: scripted/lenient passed 6 of 7 answers that people failed"
    assert listed() == ("scripted/lenient", by_people)


def test_of_equal_judges_none_is_the_most_lenient(judged: Path, evalstore: Evalstore) -> None:
    strict = JUDGE.format(name="lenient", fails="city [123]") + "code: second\n"
    tree(judged, {"models/lenient.yaml": strict})
    evalstore("run", "-q")
    lines = evalstore("stats", "--by", "judge").stdout.splitlines()
    assert lines[4].startswith("no judge is more lenient than all others (to count false ")
    tree(judged, {"evalstore.yaml": "candidates: [one]\nevaluators: [scripted/lenient]\n"})
    evalstore("run", "-q")
    assert len(evalstore("stats", "@", "--by", "judge").stdout.splitlines()) == 3


def test_alone_is_who_decided_otherwise_than_all_others(
    judged: Path, evalstore: Evalstore, documents: Any
) -> None:
    """City 1 fails for the first two, cities 2 and 3 for all but the lenient one."""
    third = JUDGE.format(name="third", fails="city [23]")
    settings = FILES["evalstore.yaml"].replace("lenient]", "lenient, scripted/third]")
    tree(judged, {"evalstore.yaml": settings, "models/third.yaml": third})
    evalstore("run", "-q")
    groups = documents("stats", "--by", "judge")["groups"]
    alone = {
        each["evaluator"]: (each["evaluators"]["passedAlone"], each["evaluators"]["failedAlone"])
        for each in groups
    }
    assert alone == {
        "scripted/lenient": (2, 0),
        "scripted/strict": (0, 0),
        "scripted/third": (1, 0),
    }
    assert groups[0]["evaluators"]["compared"] == 8, "two others for each answer"


@pytest.mark.parametrize("options", [("judge,model",), ("model", "--by", "judge")])
def test_judges_are_the_only_group(
    judged: Path, evalstore: Evalstore, options: tuple[str, ...]
) -> None:
    assert evalstore("stats", "--by", *options).stderr == (
        "error: results cannot be grouped by 'judge'\n"
        "hint: 'evalstore stats --by judge' takes no other group, query or currency\n"
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


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("models/one.yaml", "provider: scripted", "provider: scripted\nextraIdentifier: v2"),
        ("evalstore.yaml", "[one]", "[{id: one, temperature: 1}]"),
    ],
)
def test_the_reason_why_a_label_no_longer_counts_is_listed(
    judged: Path, evalstore: Evalstore, path: str, old: str, new: str
) -> None:
    evalstore("label", "tests/t.md::n=1", "pass", "--as", "Ada")
    tree(judged, {path: FILES[path].replace(old, new)})
    assert evalstore("ls", "labels", "-v").stdout.endswith("  Ada  its answer does not count now\n")


def test_labels_on_replaced_answers_are_compared_and_not_listed(
    judged: Path, evalstore: Evalstore
) -> None:
    evalstore("label", "tests/t.md::n=1", "pass", "--as", "Ada")
    tree(judged, {"tests/t.md": FILES["tests/t.md"].replace("Where is it?", "Where?")})
    evalstore("run", "-q")
    note = "(left out: 1 label that no longer counts; -v lists them)\n"
    assert evalstore("ls", "labels").stderr == (f"No labels that count in the workspace.\n{note}")
    evalstore("label", "tests/t.md::n=4", "pass", "--as", "Ada")
    assert evalstore("ls", "labels").stderr == (
        f"1 of 1 label agrees with checks and judges (100.0%).\n{note}"
    )
    assert "n=4" not in evalstore("ls", "labels", "tests/t.md::n=1").stdout
    listed = evalstore("ls", "labels", "-v").stdout
    assert [line.split("  ")[-1].strip() for line in listed.splitlines()] == [
        *("JUDGED", "pass", "1 label no longer counts:", "REASON", "its answer does not count now"),
    ]
    shown = evalstore("stats", "--by", "judge")
    assert "50.0% of 2" in shown.stdout
    assert shown.stderr == "(labels on answers that were replaced are included)\n"


def test_verdicts_of_other_versions_of_a_judge_are_not_compared(
    judged: Path, evalstore: Evalstore, documents: Any
) -> None:
    """A lenient judge that fails everything after an edit has no false passes."""
    for row in (2, 3):
        evalstore("label", f"tests/t.md::n={row}", "fail", "--as", "Ada")
    lenient, _ = documents("stats", "--by", "judge")["groups"]
    assert (lenient["people"]["compared"], lenient["people"]["falsePasses"]) == (2, 2)
    harsh = JUDGE.format(name="lenient", fails="city") + "code: second\n"
    tree(judged, {"models/lenient.yaml": harsh})
    note = "(scripted/lenient: 0 of 2 labels compared; 2 judged by other versions alone)"
    for _ in ("before a run", "after it"):
        lenient, strict = documents("stats", "--by", "judge")["groups"]
        assert lenient["people"]["compared"] == lenient["people"]["falsePasses"] == 0
        assert strict["people"]["compared"] == 2
        assert note in " ".join(evalstore("stats", "--by", "judge").stderr.split())
        evalstore("run", "-q")
    lenient, _ = documents("stats", "@~2", "--by", "judge")["groups"]
    assert lenient["people"]["falsePasses"] == 2, "the judge of that run"
    evalstore("label", "tests/t.md::n=4", "fail", "--as", "Ada")
    assert "1 of 3 labels compared" in evalstore("stats", "--by", "judge").stderr


_OTHER = "(scripted/lenient: 0 of 1 label compared; 1 for other instructions or checks)"


def test_verdicts_with_other_instructions_are_not_compared(
    judged: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("label", "tests/t.md::n=2", "fail", "--as", "Ada")
    tree(judged, {"tests/t.md": FILES["tests/t.md"].replace("It is about", "It tells of")})
    evalstore("run", "-q")
    lenient, _ = documents("stats", "--by", "judge")["groups"]
    assert lenient["people"]["compared"] == 0
    assert _OTHER in " ".join(evalstore("stats", "--by", "judge").stderr.split())
    for person, verdict in (("Ada", "fail"), ("Bo", "pass")):
        evalstore("label", "tests/t.md::n=2", verdict, "--as", person)
        lenient, _ = documents("stats", "--by", "judge")["groups"]
        assert lenient["people"]["falsePasses"] == (person == "Ada"), "of the present instructions"
    tie = "0 of 3 labels compared; 1 for other instructions or checks, 2 tied)"
    assert tie in " ".join(evalstore("stats", "--by", "judge").stderr.split())
    lenient, _ = documents("stats", "@~1", "--by", "judge")["groups"]
    assert lenient["people"]["falsePasses"] == 1


def test_of_each_judge_it_says_how_many_labels_have_no_verdict_to_compare(
    judged: Path, evalstore: Evalstore
) -> None:
    """The third judge came after the label on city 1, and leaves city 9 undecided."""
    evalstore("label", "tests/t.md::n=1", "fail", "--as", "Ada")
    settings = FILES["evalstore.yaml"].replace("lenient]", "lenient, scripted/third]")
    third = JUDGE.format(name="third", fails="city [23]")
    rows = FILES["tests/t.md"].replace("3, 4]", "3, 4, 9]")
    tree(judged, {"evalstore.yaml": settings, "models/third.yaml": third, "tests/t.md": rows})
    evalstore("run", "-q")
    evalstore("label", "tests/t.md::n=2", "fail", "--as", "Ada")
    evalstore("label", "tests/t.md::n=9", "fail", "--as", "Ada")
    notes = evalstore("stats", "--by", "judge").stderr
    assert "(scripted/lenient: 2 of 3 labels compared; 1 undecided by the judge)\n" in notes
    third = "1 of 3 labels compared; 1 not judged, 1 undecided by the judge)"
    assert f"(scripted/third: {third}" in " ".join(notes.split())


def test_labels_on_an_answer_of_two_files_are_counted_as_labels(
    judged: Path, evalstore: Evalstore
) -> None:
    """Two files ask the same question; the judges have a verdict on the answer in one of them."""
    twin = FILES["tests/t.md"].replace("It is about", "It tells of")
    tree(judged, {"tests/twin.md": twin})
    for name in ("t", "twin"):
        evalstore("run", "-q", f"tests/{name}.md")
    for name in ("t", "twin"):
        evalstore("label", f"tests/{name}.md::n=4", "pass", "--as", "Ada")
    evalstore("label", "tests/twin.md::n=4", "fail", "--as", "Bo")
    shown = evalstore("stats", "--by", "judge")
    tie = "(scripted/lenient: 1 of 3 labels compared; 2 tied)"
    assert tie in " ".join(shown.stderr.split())
    assert "labelled answer" not in shown.stderr


def test_without_labels_the_table_says_how_to_make_some(judged: Path, evalstore: Evalstore) -> None:
    assert evalstore("stats", "--by", "judge").stderr.startswith(
        "(no judge has a verdict on a labelled answer: 'evalstore label' gives"
    )


def test_without_judges_it_says_so(tmp_path: Path, evalstore: Evalstore) -> None:
    files = {**FILES, "evalstore.yaml": "candidates: [one]\n"}
    files["tests/t.md"] = "# 👤\n\nHi\n\n---\n\n~~~checks\n- contains: e\n~~~\n"
    folder = str(tree(tmp_path / "x", files))
    evalstore("-C", folder, "run", "-q")
    shown = evalstore("-C", folder, "stats", "--by", "judge")
    assert shown.stderr == "error: no judge has judged an answer of the workspace\n"


def test_a_judge_that_passes_less_than_the_others_is_not_called_lenient() -> None:
    few = Counter({"pass": 1, "fail": 4})
    judges = [
        JudgeStats(
            "a", failed=few, shared=Counter({"pass": 6, "fail": 4}), others_passed=Fraction(7)
        ),
        JudgeStats(
            "b", failed=few, shared=Counter({"pass": 6, "fail": 5}), others_passed=Fraction(8)
        ),
        JudgeStats(
            "c", failed=Counter({"fail": 5}), shared=Counter({"pass": 9}), others_passed=Fraction(2)
        ),
    ]
    ranked, text = rank_judges(judges)
    assert [judge.judge for judge in ranked] == ["a", "b", "c"]
    assert text == "no judge is more lenient than all others"


def test_an_answer_counts_once_for_the_most_lenient_however_often_it_was_judged(
    judged: Path, evalstore: Evalstore
) -> None:
    third = JUDGE.format(name="third", fails="city [123]")
    settings = FILES["evalstore.yaml"].replace("lenient]", "lenient, scripted/third]")
    tree(
        judged,
        {
            "evalstore.yaml": settings + "evaluationsPerEvaluator: 2\n",
            "models/third.yaml": third,
            "tests/t.md": FILES["tests/t.md"].replace("3, 4]", "3, 4, 5, 6]"),
        },
    )
    evalstore("run", "-q")
    by_judges = (
        "most lenient: scripted/lenient passed 83.3% of the answers it judged; "
        "other judges passed 50.0% of them"
    )
    assert by_judges in " ".join(evalstore("stats", "--by", "judge").stdout.split())
    for row in range(2, 7):
        evalstore("label", f"tests/t.md::n={row}", "fail", "--as", "Ada")
    by_people = "most lenient: scripted/lenient passed 5 of 5 answers that people failed"
    assert by_people in " ".join(evalstore("stats", "--by", "judge").stdout.split())
