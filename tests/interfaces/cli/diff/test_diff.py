"""`diff --model X --vs Y`: whole outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.builders import tree
from tests.interfaces.cli.conftest import ONE, Evalstore, Ran
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.cli.test_documents import schema_of

STRICT = """\
---
id: strict
tags: [_evaluator]
---

Judge strictly. {{_evaluationInstructions}}

# 👤

{{_actualResponse}}
"""
BOTH = "[scripted/one, scripted/two]"


@pytest.fixture
def two(workspace: Path) -> Path:
    """The workspace with a second candidate, which passes Oslo, too."""
    script = ONE.replace("scripted/one", "scripted/two").replace("Cold.", "Not warm.")
    tree(workspace, {"models/two.yaml": script})
    edit(workspace / "evalstore.yaml", "[scripted/one]", f"{BOTH}\nconfirmAbove: 1000")
    return workspace


def test_answers_of_equal_results_are_compared_on_request(two: Path, evalstore: Evalstore) -> None:
    edit(two / "models/two.yaml", "answer: Warm.", "answer: Very warm.")
    evalstore("run", "tests/weather.md::city=Rome")
    value = ("--model", "scripted/one", "--vs", "scripted/two")
    assert "Equal" not in evalstore("diff", "@", *value).stdout
    compared = evalstore("diff", "@", *value, "--answers")
    assert compared.stdout.partition("\n")[2].startswith(
        "scripted/one -> scripted/two in run <short>\n"
        "scripted/two: 1 equal\n"
        "pass rate 100.0% -> 100.0% (1 result in 1 file, judged on both sides)\n"
        "Equal (1):\n"
        "    tests/weather.md [city=Rome]  pass  <short> -> <short>\n"
        "        --- scripted/one\n        +++ scripted/two\n        @@ -1 +1 @@\n"
        "        -Warm.\n        +Very warm.\n"
    )
    assert "side by side" not in compared.stderr
    assert "-Warm." not in evalstore("diff", "@", *value, "--answers", "--stat").stdout


def test_cases_and_results_are_counted_apart_where_they_differ(
    two: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q")
    for model in ("one", "two"):
        edit(two / f"models/{model}.yaml", "answer: Warm.", "answer: Cold.")
    evalstore("run", "-q", "--refresh")
    shown = evalstore("diff", "@~1", "@").stdout
    assert "\n2 results broke (1 case), 2 unchanged\n" in shown
    assert "\nBroke (1 case, 2 results):\n" in shown
    report = evalstore("report", "@", "--markdown").stdout
    assert "; 2 results broke, none fixed. Best: " in report
    assert "\n#### Broke (1 case, 2 results)\n" in report
    evalstore("report", "@", "-o", "r.html")
    page = Path("r.html").read_text(encoding="utf-8")
    assert "; 2 results broke, none fixed. " in page
    assert ">Broke (1 case, 2 results)</h2>" in page


def test_the_first_line_names_both_sides(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run", "-q")
    evalstore("run", "-q", "--message", "a longer\nnote " + "x" * 60)
    (first, *_) = evalstore("diff").stdout.splitlines()
    note = f'"a longer note {"x" * 45}…"'
    assert first == f"run <short> (<when>, {note}) -> the workspace"
    (first, *_) = evalstore("diff", "@~1", "@").stdout.splitlines()
    assert first == f"run <short> (<when>) -> run <short> (<when>, {note})"


def test_two_candidates_of_the_last_run_are_compared(two: Path, evalstore: Evalstore) -> None:
    assert evalstore("run").exit_code == 1
    expected = (
        "scripted/one -> scripted/two in run <short>\n"
        "scripted/two: 1 better, 1 equal\n"
        "pass rate 50.0% -> 100.0% (2 results in 1 file, judged on both sides)\n"
        "scripted/two against scripted/one: +50.0 points (no interval: too wide with 2 rows); "
        "the pass rate of one row changed: too few rows to test significance\n"
        "\nBetter (1):\n"
        "    tests/weather.md [city=Oslo]  fail -> pass  <short> -> <short>\n"
        "        scripted/one: It is cold there.\n"
    )
    value = ("--model", "scripted/one", "--vs", "scripted/two")
    hint = '(use "evalstore show ID" to read an answer)\n'
    assert evalstore("diff", "@", *value) == Ran(0, expected, hint)
    assert evalstore("diff", "@", *value, "--", "tests/weather.md").stdout == expected
    other = evalstore(
        "diff", "@", "--model", "scripted/two", "--vs", "scripted/one", "--answers"
    ).stdout
    assert "Worse (1):\n" in other
    assert "scripted/one: 1 worse, 1 equal\n" in other
    assert "        --- scripted/two\n        +++ scripted/one\n" in other
    assert "        -Not warm.\n        +Cold.\n" in other
    assert evalstore("diff", "@", *value, "--exit-code").exit_code == 1


def test_equal_candidates_are_told_where_both_answers_are(two: Path, evalstore: Evalstore) -> None:
    evalstore("run", "tests/weather.md::city=Rome")
    value = ("--model", "scripted/one", "--vs", "scripted/two")
    for revision, named in (("@", "<short>"), ("@work", "@work")):
        compared = evalstore("diff", revision, *value, "--", "tests/weather.md::city=Rome")
        hint = f'(use "evalstore show {named}:tests/weather.md" to find both answers of a case, '
        assert f'{hint}"evalstore view" to read them side by side)\n' in compared.stderr
    assert "side by side" not in evalstore("diff", "@", *value, "--stat").stderr
    listed = evalstore("show", "@work:tests/weather.md").stdout
    assert "scripted/one" in listed
    assert "scripted/two" in listed


def test_a_comparison_in_a_partial_run_names_the_workspace(two: Path, evalstore: Evalstore) -> None:
    evalstore("run", "tests/weather.md::city=Oslo")
    value = ("--model", "scripted/one", "--vs", "scripted/two")
    compared = evalstore("diff", "@", *value)
    assert compared.stdout.startswith(
        "note: run <short> is partial: tests/weather.md::city=Oslo (2 results); "
        "only those are compared\n"
    )
    assert compared.stderr.startswith(
        '(use "evalstore diff @work --model scripted/one --vs scripted/two" to compare all cases)\n'
    )
    whole = evalstore("diff", "@work", *value, "--stat")
    assert whole == Ran(
        0,
        "scripted/one -> scripted/two in the workspace\n"
        "scripted/two: 1 better, 0 equal\n"
        "1 result is pending for both candidates\n"
        "pass rate 0.0% -> 100.0% (1 result in 1 file, judged on both sides)\n"
        "scripted/two against scripted/one: +100.0 points; "
        "the pass rate of one file changed: too few files to test significance\n",
        "",
    )


def test_results_that_wait_for_one_candidate_are_told_from_others(
    two: Path, evalstore: Evalstore
) -> None:
    failing = "responses:\n  - {when: Rome, error: 400}\n"
    edit(two / "models/two.yaml", "responses:\n", failing)
    evalstore("run")
    value = ("--model", "scripted/one", "--vs", "scripted/two", "--stat")
    waits = "1 result of scripted/two is pending and not in the pass rates\n"
    assert evalstore("diff", "@", *value).stdout == (
        "scripted/one -> scripted/two in run <short>\n"
        "scripted/two: 1 better, 1 different, 0 equal\n"
        f"{waits}"
        "pass rate 0.0% -> 100.0% (1 result in 1 file, judged on both sides)\n"
        "scripted/two against scripted/one: +100.0 points; "
        "the pass rate of one file changed: too few files to test significance\n"
    )
    value = ("--model", "scripted/two", "--vs", "scripted/one", "--stat")
    assert waits in evalstore("diff", "@", *value).stdout


def test_a_run_of_both_candidates_is_not_partial(two: Path, evalstore: Evalstore) -> None:
    evalstore("run", "-m", "scripted/one", "-m", "scripted/two")
    compared = evalstore("diff", "@", "--model", "scripted/one", "--vs", "scripted/two", "--stat")
    assert compared.stderr == ""
    assert compared.stdout.startswith("scripted/one -> scripted/two in run <short>\n")


def test_the_document_names_both(two: Path, documents: Any) -> None:
    run = documents("run")["run"]
    document = documents("diff", "@", "--model", "scripted/one", "--vs", "scripted/two")
    jsonschema.Draft202012Validator(schema_of(["diff"])).validate(document)
    assert (document["from"], document["to"]) == (run, run)
    assert document["models"] == ["scripted/one", "scripted/two"]
    assert [item["row"] for item in document["fixed"]] == ["city=Oslo"]


def test_a_candidate_that_only_one_of_them_was_asked_is_new_or_gone(
    two: Path, documents: Any, evalstore: Evalstore
) -> None:
    batch = "[scripted/one, {id: scripted/two, prohibitedTags: [weather]}]"
    edit(two / "evalstore.yaml", BOTH, batch)
    tree(two, {"tests/other.md": "# 👤\n\nHello.\n\n---\n\nAnything.\n"})
    documents("run")
    document = documents("diff", "@", "--model", "scripted/one", "--vs", "scripted/two")
    assert [item["file"] for item in document["gone"]] == ["tests/weather.md"] * 2
    assert (document["new"], document["unchanged"]) == ([], 1)
    shown = evalstore("diff", "@", "--model", "scripted/one", "--vs", "scripted/two").stdout
    assert shown.splitlines()[1] == "scripted/two: 2 only scripted/one, 1 equal"
    assert "\nOnly scripted/one (2):\n" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--vs", "b"], "'--vs' needs one '--model'"),
        (["--model", "a", "--model", "c", "--vs", "b"], "'--vs' needs one '--model'"),
        (
            ["@", "@", "--model", "a", "--vs", "b"],
            "'--vs' compares two candidates, or system prompts, of one run",
        ),
        (["@", "--model", "a", "--vs", "scripted/two"], "'a' is not a candidate of run <short>"),
        (["@", "--model", "scripted/one", "--vs", "b"], "'b' is not a candidate of run <short>"),
    ],
)
def test_what_cannot_be_compared_is_reported(
    two: Path, evalstore: Evalstore, arguments: list[str], message: str
) -> None:
    assert evalstore("run").exit_code == 1
    output = evalstore("diff", *arguments)
    assert output.exit_code == 2
    assert output.stderr.startswith(f"error: {message}\nhint: ")


# --- two stored runs


@pytest.fixture
def twice(two: Path, evalstore: Evalstore) -> Path:
    """A workspace with two runs that differ."""
    tree(two, {"tests/other.md": "# 👤\n\nHello.\n\n---\n\nAnything.\n"})
    evalstore("run")
    edit(two / "tests/weather.md", "How is", "Really, how is")
    evalstore("run")
    return two


STORED = [
    ("diff", "@~1", "@"),
    ("diff", "@~1", "@", "--", "tests/weather.md"),
    ("diff", "@~1", "@", "--", "tests"),
    ("diff", "@", "--model", "scripted/one", "--vs", "scripted/two"),
    ("diff", "@", "--model", "scripted/one", "--vs", "scripted/two", "--", "tests/weather.md"),
]


@pytest.mark.parametrize("command", STORED, ids=" ".join)
def test_stored_runs_are_compared_whatever_the_files_have_become(
    twice: Path, evalstore: Evalstore, command: tuple[str, ...]
) -> None:
    before = evalstore(*command)
    assert before.exit_code == 0
    (twice / "tests/weather.md").write_text("# 👤\n\n{{nobody}}\n\n---\n\nE\n")
    assert evalstore("diff").exit_code == 2
    assert evalstore(*command) == before
    (twice / "tests/weather.md").unlink()
    assert evalstore(*command) == before


@pytest.mark.parametrize("command", [*STORED, ("ls", "runs")], ids=" ".join)
def test_no_test_file_is_read_for_stored_runs(
    twice: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.delattr("evalstore.workspace.reader._Reader.read_tests")
    assert evalstore(*command).exit_code == 0


def test_a_path_that_neither_run_knows_is_an_error(twice: Path, evalstore: Evalstore) -> None:
    tree(twice, {"tests/later.md": "# 👤\n\nHello.\n\n---\n\nAnything.\n"})
    output = evalstore("diff", "@~1", "@", "--", "tests/later.md")
    assert output.exit_code == 2
    assert output.stderr.startswith("error: test file 'tests/later.md' not found\n")


def test_answers_are_shown_as_in_the_browser(workspace: Path, evalstore: Evalstore) -> None:
    answer = "{answer: '{\"t\": 1}', finishReason: length"
    edit(workspace / "models/one.yaml", "{answer: Warm.", answer)
    evalstore("run", "--fail-on", "none")
    edit(workspace / "models/one.yaml", '"t": 1', '"t": 2')
    evalstore("run", "--fail-on", "none", "--refresh")
    shown = evalstore("diff", "@~1", "@", "--answers").stdout
    assert '         {\n        -  "t": 1\n        +  "t": 2\n         }\n' in shown


def test_feedback_that_is_the_same_on_both_sides_is_printed_once(
    workspace: Path, evalstore: Evalstore
) -> None:
    test = "# 👤\n\n{}\n\n---\n\n~~~checks\n- contains: zebra\n~~~\n"
    for question in ("How is it?", "How was it?"):
        (workspace / "tests/animals.md").write_text(test.format(question))
        evalstore("run")
    shown = evalstore("diff", "@~1", "@", "-v", "--", "tests/animals.md").stdout
    assert "was and now: 'zebra' is not in 'Warm.'\n" in shown
    assert shown.count("'zebra' is not in") == 1


def test_other_evaluators_are_named_also_where_no_verdict_differs(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("run", "-q")
    tree(workspace, {"prompts/strict.md": STRICT})
    edit(workspace / "evalstore.yaml", "[scripted/judge]", "[{id: scripted/judge, prompt: strict}]")
    assert "judge prompt strict in place of" in evalstore("diff").stdout, "of the workspace"
    evalstore("run", "-q")
    edit(workspace / "evalstore.yaml", "[{id: scripted/judge, prompt: strict}]", "[scripted/judge]")
    for sides in (("@~1", "@"), ("@", "@~1")):
        said = evalstore("diff", *sides).stdout
        assert "Edited:\n    judge prompt " in said
        assert " in place of " in said
        assert "2 unchanged" in said
    (edited,) = documents("diff", "@")["participants"]
    assert edited["what"] == "judge prompt _evaluator_default in place of strict"


def test_a_renamed_file_and_its_tags_are_among_the_edits(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q")
    path = workspace / "tests/weather.md"
    text = path.read_text()
    path.unlink()
    tree(workspace, {"tests/sub/sky.md": text.replace("tags: [", "tags: [urgent, ", 1)})
    edited = (
        "Edited:\n    tests/sub/sky.md\n"
        "        renamed: tests/weather.md -> tests/sub/sky.md\n"
        "        tags: weather -> urgent, weather\n"
    )
    assert evalstore("diff").stdout.endswith(edited)
    evalstore("run", "-q")
    assert evalstore("diff", "@~1", "@").stdout.endswith(edited)


def test_the_cause_of_another_recorded_answer_is_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalstore: Evalstore
) -> None:
    text = "---\nanswer: {}\n---\n\n# 👤\n\nWhere?\n\n---\n\n~~~checks\n- contains: Oslo\n~~~\n"
    monkeypatch.chdir(tree(tmp_path, {"evalstore.yaml": "", "tests/a.md": text.format("Rome")}))
    evalstore("run", "-q")
    (tmp_path / "tests/a.md").write_text(text.format("Oslo"))
    cause = "(recorded answer: Rome -> Oslo)"
    assert cause.strip("()") in evalstore("status", "--explain").stdout
    evalstore("run", "-q")
    assert cause in evalstore("diff", "@~1", "@").stdout
    assert "(recorded answer: Oslo -> Rome)" in evalstore("diff", "@", "@~1").stdout
    (tmp_path / "tests/a.md").write_text(text.format("Bergen"))
    evalstore("run", "-q")
    edited = "      recorded answer changed\n        - Oslo\n        + Bergen\n"
    assert f"what changed in between:\n{edited}" in evalstore("show", "tests/a.md").stdout


def test_of_copies_of_a_file_that_is_gone_the_first_is_the_renamed_one(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q")
    path = workspace / "tests/weather.md"
    tree(workspace, {f"tests/copy{number}.md": path.read_text() for number in range(9)})
    path.unlink()
    assert "renamed: tests/weather.md -> tests/copy0.md\n" in evalstore("diff").stdout
    evalstore("run", "-q")
    assert "renamed: tests/weather.md -> tests/copy0.md\n" in evalstore("diff", "@~1", "@").stdout
