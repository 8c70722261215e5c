"""What changed beside the tests: judges, attempts, the rule for votes, and labels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from evalstore.planning.open_project import open_store
from evalstore.planning.options import Location
from evalstore.results.edits.edits import with_all_candidates
from tests.builders import tree
from tests.interfaces.cli.conftest import WEATHER, Echo, Evalstore
from tests.interfaces.cli.log.test_log_edits import edits
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.cli.status.test_explained_cases import history, write

STRICT = (
    "---\ntags: [_evaluator]\n---\n\nBe strict.\n\n{{_evaluationInstructions}}\n\n# 👤\n\n"
    "{{_actualResponse}}\n"
)
PLAIN, WITH_PROMPT = "[scripted/judge]", "[{id: scripted/judge, prompt: strict}]"


def edited(printed: str) -> list[str]:
    """What a comparison lists as edited."""
    lines = printed.partition("Edited:\n")[2].splitlines()
    return [line.strip() for line in lines if line.startswith("    ")]


def test_a_comparison_names_another_prompt_of_a_judge(
    workspace: Path, evalstore: Evalstore
) -> None:
    tree(workspace, {"prompts/strict.md": STRICT})
    evalstore("run")
    edit(workspace / "evalstore.yaml", PLAIN, WITH_PROMPT)
    shown = evalstore("diff").stdout
    in_place = "judge prompt strict in place of _evaluator_default"
    assert f"\n\nEdited:\n    {in_place}\n" in shown
    assert "pass -> pending  (not judged)" in shown
    evalstore("run")
    shown = evalstore("diff", "@~1", "@").stdout
    assert edited(shown) == [in_place]
    assert "2 unchanged\n" in shown
    assert evalstore("diff", "@~1", "@", "--exit-code").exit_code == 1
    assert evalstore("diff", "@", "--exit-code").exit_code == 0
    back = "judge prompt _evaluator_default in place of strict"
    assert edited(evalstore("diff", "@work", "@~1").stdout) == [back]


def test_a_second_judge_of_the_same_model_is_new_and_changes_no_other(
    workspace: Path, evalstore: Evalstore
) -> None:
    tree(workspace, {"prompts/strict.md": STRICT})
    edit(workspace / "evalstore.yaml", PLAIN, WITH_PROMPT)
    evalstore("run")
    both = f"{WITH_PROMPT[:-1]}, scripted/judge]"
    edit(workspace / "evalstore.yaml", WITH_PROMPT, both)
    new = "judge scripted/judge with another prompt or temperature"
    assert f"    new {new}\n" in evalstore("diff").stdout
    evalstore("run")
    assert edits(evalstore) == [f"new {new}"]
    edit(workspace / "prompts/strict.md", "Be strict.", "Be very strict.")
    evalstore("run")
    assert edits(evalstore) == [
        "judge prompt strict changed: message 1, line 1: Be strict. -> Be very strict."
    ]
    edit(workspace / "evalstore.yaml", both, PLAIN)
    evalstore("run")
    assert edits(evalstore) == [f"{new} removed"]


def test_what_status_sends_to_a_comparison_is_there(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    edit(workspace / "evalstore.yaml", "candidates:", "verdict: all\nattempts: 2\ncandidates:")
    shown = evalstore("status").stdout
    assert '(use "evalstore diff' in shown
    assert "    .M  verdict   majority -> all\n" in shown
    assert edited(evalstore("diff").stdout)[:2] == ["verdict: majority -> all", "attempts 1 -> 2"]
    assert edited(evalstore("diff", "@work", "@").stdout)[:2] == [
        "verdict: all -> majority",
        "attempts 2 -> 1",
    ]


@pytest.fixture
def flaky(echo: Echo) -> Iterator[Any]:
    """A test that passes at the first of five answers."""
    write("How?")
    left = iter(["10 euros", *["20 euros"] * 4])
    echo.reply = lambda _text: next(left)
    return left


def test_more_or_fewer_attempts_are_told_wherever_verdicts_changed(
    flaky: Any, evalstore: Evalstore
) -> None:
    evalstore("run", "-q", "-r", "5", "-j", "1")
    assert "    M.  attempts  5 -> 1\n" in evalstore("status").stdout
    evalstore("run", "-q")
    assert edits(evalstore) == ["attempts 5 -> 1"]
    assert edits(evalstore, "tests/t.md") == ["attempts 5 -> 1"]
    shown = evalstore("diff", "@~1", "@").stdout
    assert shown.startswith(
        "run <short> (<when>) -> run <short> (<when>)\n"
        "note: 1 result has a different number of attempts (5 -> 1), "
        "which alone can change the pass rate\n1 fixed, "
    )
    assert "\n\nEdited:\n    attempts 5 -> 1\n" in shown
    assert "fail -> pass, 4 of 5 attempts failed -> 0 of 1  (attempts 5 -> 1)" in shown
    back = evalstore("diff", "@", "@~1").stdout
    assert "pass -> fail, 0 of 1 attempts failed -> 4 of 5  (attempts 1 -> 5)" in back
    assert "\nnote: 1 result has a different number of attempts (1 -> 5), " in back


def test_attempts_of_a_file_do_not_change_with_the_settings(
    flaky: Any, evalstore: Evalstore
) -> None:
    edit(Path("tests/t.md"), "# 👤", "---\nattempts: 2\n---\n\n# 👤")
    evalstore("run", "-q", "-j", "1")
    settings = Path("evalstore.yaml")
    settings.write_text(f"attempts: 3\n{settings.read_text()}")
    evalstore("run", "-q")
    assert edits(evalstore, "tests/t.md") == ["new"]
    evalstore("run", "-q", "-r", "3")
    assert edits(evalstore, "tests/t.md") == ["attempts 2 -> 3"]
    assert "another number" not in evalstore("diff", "@~2", "@~1").stdout


def test_a_label_is_why_a_verdict_changed_whatever_else_did(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    evalstore("label", "tests/weather.md::city=Oslo", "pass", "--as", "Ada")
    edit(workspace / "evalstore.yaml", "candidates:", "verdict: all\ncandidates:")
    evalstore("run")
    assert history(evalstore, "tests/weather.md::city=Oslo")[2:4] == [
        "what changed in between:",
        "  labelled by Ada",
    ]
    assert "  fail -> pass  (labelled by Ada)" in evalstore("diff", "@~1", "@").stdout


def test_of_the_same_answer_only_what_judges_are_told_explains_another_verdict(
    workspace: Path, evalstore: Evalstore
) -> None:
    tree(workspace, {"prompts/desk.md": "Be polite.\n"})
    edit(workspace / "tests/weather.md", "---\n", "---\nsystemPrompts: [desk]\n")
    evalstore("run")
    edit(workspace / "prompts/desk.md", "polite", "brief")
    edit(workspace / "tests/weather.md", "must be warm", "must be short")
    evalstore("run")
    shown = evalstore("diff", "@~1", "@").stdout
    assert "[city=Oslo]  scripted/one  fail -> pass  (instructions changed)" in shown
    changes = history(evalstore, "tests/weather.md::city=Oslo")
    assert "  instructions changed" in changes
    assert not [line for line in changes if "system prompt desk" in line]
    assert "system prompt desk" in edited(shown)


def test_a_pending_result_names_the_edit_of_its_model(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    model = workspace / "models/one.yaml"
    model.write_text(model.read_text() + "extraIdentifier: new\n")
    assert "pass -> pending  (model changed)" in evalstore("diff").stdout


def test_runs_of_single_candidates_are_completed_by_reading_the_history_once(
    workspace: Path, evalstore: Evalstore
) -> None:
    one = (workspace / "models/one.yaml").read_text()
    names = [f"scripted/m{number}" for number in range(4)]
    files = {f"models/{name[-2:]}.yaml": one.replace("scripted/one", name) for name in names}
    tree(workspace, files)
    edit(workspace / "evalstore.yaml", "[scripted/one]", f"[{', '.join(names)}]")
    evalstore("run", "-q")
    for name in names:
        edit(workspace / f"models/{name[-2:]}.yaml", "provider:", "extraIdentifier: b\nprovider:")
        evalstore("run", "-q", "-m", name)
    with open_store(Location(workspace)) as store:
        runs = [*store.find_recent_runs()][:4]
        with mock.patch.object(store, "find_recent_runs", wraps=store.find_recent_runs) as read:
            complete = with_all_candidates(store, runs)
        assert read.call_count == 2
        single = [with_all_candidates(store, [run])[run.id] for run in runs]
    assert [complete[run.id] for run in runs] == single
    edited = [{each.id: each.model for each in run.candidates} for run in single]
    assert [len(models) for models in edited] == [4, 4, 4, 4]
    changes = [sum(now[name] != was[name] for name in names) for now, was in pairwise(edited)]
    assert changes == [1, 1, 1]


def test_the_edit_of_a_candidate_that_the_older_run_left_out_is_named(
    workspace: Path, evalstore: Evalstore
) -> None:
    other = (workspace / "models/one.yaml").read_text().replace("scripted/one", "scripted/other")
    tree(workspace, {"models/other.yaml": other})
    edit(workspace / "evalstore.yaml", "[scripted/one]", "[scripted/one, scripted/other]")
    evalstore("run", "-q")
    evalstore("run", "-q", "-m", "scripted/one")
    edit(workspace / "models/other.yaml", "provider:", "extraIdentifier: new\nprovider:")
    evalstore("run", "-q")
    (named,) = edited(evalstore("diff", "@~1", "@").stdout)
    assert named.startswith("scripted/other: ")


def test_rows_that_only_a_part_of_the_older_run_has_are_those_of_their_dataset(
    workspace: Path, evalstore: Evalstore
) -> None:
    rows = "name,city\na,Oslo\nb,Rome\n"
    tree(workspace, {"tests/data/cities.csv": rows})
    names = "replacements:\n  city: [Oslo, Rome]\n"
    edit(workspace / "tests/weather.md", names, "dataset: data/cities.csv\nrowId: name\n")
    evalstore("run", "-q")
    edit(workspace / "tests/data/cities.csv", "Rome", "Bergen")
    evalstore("run", "-q", "-k", "name=a")
    edit(workspace / "tests/data/cities.csv", "Oslo", "Molde")
    evalstore("run", "-q")
    assert edited(evalstore("diff", "@~1", "@").stdout)[0] == "rows of tests/data/cities.csv"


def test_what_judges_are_told_later_changes_nothing_that_a_label_decides(
    workspace: Path, evalstore: Evalstore
) -> None:
    rome = "tests/weather.md::city=Rome"
    tree(workspace, {"prompts/strict.md": STRICT})
    evalstore("run", "-q")
    evalstore("label", rome, "fail", "--as", "Ada")
    evalstore("run", "-q")
    edit(workspace / "evalstore.yaml", PLAIN, WITH_PROMPT)
    evalstore("run", "-q")
    assert history(evalstore, rome)[2:] == [
        "what changed in between:",
        "  labelled by Ada",
        "this version: judged once, fail by a label (pass without it)",
    ]


def test_an_edit_that_was_undone_since_explains_nothing(
    workspace: Path, evalstore: Evalstore
) -> None:
    model, test = workspace / "models/one.yaml", workspace / "tests/weather.md"
    edit(test, "must be warm", "must be short")
    evalstore("run", "-q")
    edit(test, "must be short", "must be warm")
    evalstore("run", "-q")
    before = model.read_text()
    model.write_text(
        before.replace("Cold.", "Mild.").replace("provider:", "extraIdentifier: x\nprovider:")
    )
    evalstore("run", "-q")
    model.write_text(before)
    evalstore("run", "-q")
    shown = evalstore("diff", "@~3", "@").stdout
    assert "[city=Oslo]  scripted/one  pass -> fail  (instructions changed)" in shown


def test_of_other_judges_a_verdict_is_not_judged_again(
    workspace: Path, evalstore: Evalstore
) -> None:
    kind = "id: scripted/kind\nprovider: scripted\nresponses: [{answer: {pass: true}}]\n"
    tree(workspace, {"models/kind.yaml": kind})
    edit(workspace / "evalstore.yaml", PLAIN, "[scripted/judge, scripted/kind]")
    evalstore("run", "-q")
    edit(workspace / "evalstore.yaml", "[scripted/judge, scripted/kind]", PLAIN)
    assert "since the last run: 1 changed\n" in evalstore("run").stdout
    for sides, change in (("@~1 @", "judge scripted/kind removed"), ("@ @~1", "new judge")):
        assert f"({change}" in evalstore("diff", *sides.split()).stdout


def test_an_older_answer_that_counts_again_is_named_beside_an_edit_of_checks(
    workspace: Path, evalstore: Evalstore
) -> None:
    model = workspace / "models/one.yaml"
    oslo = "tests/weather.md::city=Oslo"
    evalstore("run", "-q")
    edit(model, "Cold.", "Mild.")
    evalstore("run", "-q", "--refresh")
    edit(workspace / "tests/weather.md", "must be warm", "must be warm today")
    edit(workspace / "models/judge.yaml", "must be warm", "must be")
    evalstore("run", "-q")
    reason = "(instructions changed, older answers count)"
    assert f"pass -> fail  {reason}" in evalstore("diff", "@~1", "@").stdout
    changes = "\n".join(history(evalstore, oslo))
    assert "  same question, and an older answer counts: run " in changes
    assert "  instructions changed\n" in changes


def test_a_judge_that_is_shown_the_question_may_have_judged_by_its_edit(
    workspace: Path, evalstore: Evalstore
) -> None:
    asked = STRICT.replace("# 👤\n\n", "# 👤\n\n{{_messages}}\n\n")
    tree(workspace, {"prompts/strict.md": asked})
    edit(workspace / "evalstore.yaml", PLAIN, WITH_PROMPT)
    evalstore("run", "-q")
    edit(workspace / "tests/weather.md", "How is", "Say how is")
    edit(workspace / "tests/weather.md", "must be warm", "must be short")
    evalstore("run", "-q")
    shown = evalstore("diff", "@~1", "@").stdout
    assert "(test changed, instructions changed)" in shown
    changes = history(evalstore, "tests/weather.md::city=Oslo")
    assert "  test changed" in changes


def test_edits_that_were_undone_and_labels_that_were_removed_explain_nothing(
    workspace: Path, evalstore: Evalstore
) -> None:
    oslo = "tests/weather.md::city=Rome"
    evalstore("run", "-q")
    evalstore("label", oslo, "fail", "--as", "Ada")
    evalstore("run", "-q")
    evalstore("label", oslo, "--remove", "--as", "Ada")
    edit(workspace / "tests/weather.md", "must be warm", "must be warm.*Cold or.*")
    edit(workspace / "models/judge.yaml", "must be warm.*Cold", "must be warm")
    evalstore("run", "-q")
    shown = evalstore("diff", "@~2", "@").stdout
    assert "[city=Rome]  scripted/one  pass -> fail  (instructions changed" in shown
    assert "labelled" not in shown


def test_log_counts_what_became_undecided(workspace: Path, evalstore: Evalstore) -> None:
    kind = "id: scripted/kind\nprovider: scripted\nresponses: [{answer: {pass: true}}]\n"
    tree(workspace, {"models/kind.yaml": kind})
    evalstore("run", "-q")
    edit(workspace / "evalstore.yaml", PLAIN, "[scripted/judge, scripted/kind]")
    evalstore("run", "-q")
    assert "    1 pass, 1 undecided (1 now undecided)\n" in evalstore("log", "-n", "1").stdout


def test_what_changed_of_a_candidate_explains_a_pending_result_beside_another_edit(
    workspace: Path, evalstore: Evalstore
) -> None:
    tree(workspace, {"tests/own.md": WEATHER.replace("tags:", "options: {temperature: 1}\ntags:")})
    evalstore("run")
    edit(workspace / "evalstore.yaml", "[scripted/one]", "[{id: scripted/one, temperature: 0.5}]")
    alone = evalstore("diff").stdout
    assert "  fail -> pending  (temperature none -> 0.5)  " in alone
    assert "tests/own.md" not in alone
    for file in ("weather", "own"):
        edit(workspace / f"tests/{file}.md", "How is", "How warm is")
    shown = evalstore("diff").stdout
    assert shown.count("  (test changed, temperature none -> 0.5)  ") == 2
    assert shown.count("  (test changed)  ") == 2
    assert "  (test changed, temperature 0.5 -> none)  " in evalstore("diff", "@work", "@").stdout
    edit(workspace / "models/one.yaml", "provider:", "extraIdentifier: v2\nprovider:")
    assert "  (test changed, model changed)  " in evalstore("diff", "--", "tests/own.md").stdout
