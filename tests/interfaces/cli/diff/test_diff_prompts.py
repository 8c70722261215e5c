"""`diff --prompt X --vs Y` compares two system prompts within one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests import work_sizes
from tests.builders import tree
from tests.interfaces.cli.conftest import ONE, WEATHER, Evalstore, Ran
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.cli.test_documents import schema_of

PROMPTED = WEATHER.replace("tags:", "systemPrompts: [brief, kind]\ntags:")
KIND = "responses:\n  - {when: 'Be kind.*Oslo', answer: Not warm.}\n"
VALUE = ("--prompt", "brief", "--vs", "kind")


@pytest.fixture
def prompted(workspace: Path, evalstore: Evalstore) -> Path:
    """Each row is asked with two prompts by two candidates; the first passes Oslo if it is kind.

    Another file has one of the prompts alone.
    """
    kind = ONE.replace("responses:\n", KIND)
    tree(
        workspace,
        {
            "tests/weather.md": PROMPTED,
            "tests/alone.md": WEATHER.replace("tags:", "systemPrompts: [brief]\ntags:"),
            "prompts/brief.md": "Be brief.\n",
            "prompts/kind.md": "Be kind.\n",
            "models/one.yaml": kind,
            "models/two.yaml": ONE.replace("/one", "/two"),
        },
    )
    edit(workspace / "evalstore.yaml", "[scripted/one]", "[scripted/one, scripted/two]")
    assert evalstore("run", "--yes").exit_code == 1
    return workspace


def test_prompts_that_change_places_keep_their_results(
    prompted: Path, evalstore: Evalstore
) -> None:
    oslo = "tests/weather.md::city=Oslo"
    of_two = ("--model", "scripted/two", "--prompt", "brief")
    evalstore("label", oslo, "pass", *of_two, "--as", "Ben")
    evalstore("run", "--yes")
    edit(prompted / "tests/weather.md", "[brief, kind]", "[kind, brief]")
    evalstore("run", "--yes")
    newest = evalstore("log", "tests/weather.md", "-n", "1").stdout
    assert "    edit: system prompts exchanged\n" in newest
    assert "label" not in newest
    assert "\n12 unchanged\n" in evalstore("diff", "@~1", "@").stdout


def test_a_label_counts_on_its_answer_after_prompts_changed_places(
    prompted: Path, evalstore: Evalstore
) -> None:
    case = ("tests/weather.md::city=Oslo", "--model", "scripted/two", "--prompt", "brief")
    evalstore("label", *case[:1], "pass", *case[1:], "--as", "Ben")
    edit(prompted / "tests/weather.md", "[brief, kind]", "[kind, brief]")
    assert "\npass  tests/weather.md [city=Oslo] (brief)  " in evalstore("show", *case).stdout


def test_prompts_that_exchange_their_contents_are_the_only_edit(
    prompted: Path, evalstore: Evalstore
) -> None:
    tree(prompted, {"prompts/brief.md": "Be kind.\n", "prompts/kind.md": "Be brief.\n"})
    said = "system prompts exchanged"
    assert f"    =   tests/weather.md  {said}\n" in evalstore("status").stdout
    edited = f"\n    system prompt brief, system prompt kind\n        {said}\n"
    assert evalstore("diff").stdout.count(edited) == 1
    evalstore("run", "--yes")
    changed = "    edit: system prompts brief, kind changed\n"
    assert changed in evalstore("log", "-n", "1").stdout
    assert f"    edit: {said}\n" in evalstore("log", "tests/weather.md", "-n", "1").stdout


def test_an_edit_is_told_where_the_other_prompt_got_the_text_before_it(
    prompted: Path, evalstore: Evalstore
) -> None:
    """The edited prompt never had the text that is gone."""
    (prompted / "tests/alone.md").unlink()
    tree(prompted, {"prompts/brief.md": "Be kind.\n", "prompts/kind.md": "Be quick.\n"})
    status = evalstore("status").stdout
    assert "  2 cases asked again: system prompt kind changed\n" in status
    before = evalstore("diff").stdout
    evalstore("run", "--yes")
    for shown in (before, evalstore("diff", "@~1", "@").stdout):
        assert "\n    system prompt kind\n        changed\n" in shown
        assert "in place of" not in shown
    newest = evalstore("log", "-n", "1").stdout
    assert "    edit: system prompts brief, kind changed\n" in newest
    lines = "    edit: system prompt kind: changed\n"
    assert lines in evalstore("log", "tests/weather.md", "-n", "1").stdout


def test_a_comparison_of_a_newer_run_with_an_older_one_names_the_same_prompts(
    prompted: Path, evalstore: Evalstore
) -> None:
    """The text of the older run is now more like that of the other prompt."""
    edit(prompted / "tests/alone.md", "[brief]", "[kind]")
    tree(prompted, {"prompts/kind.md": "Say no more than a word or two.\n"})
    evalstore("run", "--yes")
    two = {"prompts/kind.md": "xyz\n", "prompts/brief.md": "Say no more than a word or three.\n"}
    tree(prompted, two)
    evalstore("run", "--yes", "tests/alone.md")
    shown = evalstore("diff", "@", "@~1").stdout
    edited = "line 1: xyz -> Say no more than a word or two."
    assert f"\n    system prompt kind\n        {edited}\n" in shown


def test_an_edit_before_prompts_were_exchanged_has_the_name_of_that_time(
    prompted: Path, evalstore: Evalstore
) -> None:
    tree(prompted, {"prompts/brief.md": "Say no more than a word or two.\n"})
    evalstore("run", "--yes")
    tree(prompted, {"prompts/brief.md": "Be kind.\n", "prompts/kind.md": "xyz\n"})
    edited = "line 1: Be brief. -> Say no more than a word or two."
    assert (
        f"    edit: system prompt brief: {edited}\n" in evalstore("log", "tests/weather.md").stdout
    )


@pytest.mark.parametrize("texts", [("brief", "quick"), ("quick", "kind"), ("kind", "quick")])
def test_an_edited_prompt_is_told_beside_an_edit_of_its_test_file(
    prompted: Path, evalstore: Evalstore, texts: tuple[str, str]
) -> None:
    """Also where the file exchanges both prompts, or their files exchange their contents."""
    (prompted / "tests/alone.md").unlink()
    names = "[kind, brief]" if texts != ("kind", "quick") else "[brief, kind]"
    edit(prompted / "tests/weather.md", "[brief, kind]", names)
    edit(prompted / "tests/weather.md", "How is", "How warm is")
    brief, kind = texts
    tree(prompted, {"prompts/brief.md": f"Be {brief}.\n", "prompts/kind.md": f"Be {kind}.\n"})
    evalstore("run", "--yes")
    edited = "brief" if brief == "quick" else "kind"
    newest = evalstore("log", "-n", "1").stdout
    both = "system prompts brief, kind" if texts == ("kind", "quick") else f"system prompt {edited}"
    assert f"    edit: {both} changed\n" in newest
    assert "    edit: tests/weather.md changed\n" in newest
    of_file = evalstore("log", "tests/weather.md", "-n", "1").stdout
    assert f"    edit: system prompt {edited}: line 1: Be " in of_file


def test_an_edit_of_a_candidate_is_told_once_beside_prompts_that_were_exchanged(
    prompted: Path, evalstore: Evalstore
) -> None:
    (prompted / "tests/alone.md").unlink()
    tree(prompted, {"prompts/brief.md": "Be kind.\n", "prompts/kind.md": "Be brief.\n"})
    temperature = "[{id: scripted/one, temperature: 0.5}, scripted/two]"
    edit(prompted / "evalstore.yaml", "[scripted/one, scripted/two]", temperature)
    status = evalstore("status").stdout
    assert "    =   tests/weather.md        system prompts exchanged" in status
    assert "    M.  candidate scripted/one  4 answers in tests/weather.md: temperature" in status
    assert status.count("temperature") == 1


def test_an_older_prompt_that_is_like_no_current_one_has_the_name_of_its_file(
    prompted: Path, evalstore: Evalstore
) -> None:
    for text in ("Say no more than a word or two.", "xyz"):
        tree(prompted, {"prompts/brief.md": f"{text}\n"})
        evalstore("run", "--yes")
    edited = "line 1: Be brief. -> Say no more than a word or two."
    history = evalstore("log", "tests/weather.md").stdout
    assert f"    edit: system prompt brief: {edited}\n" in history
    assert evalstore("log").stdout.count("    edit: system prompt brief changed\n") == 2
    assert (
        f"\n    system prompt brief\n        {edited}\n" in evalstore("diff", "@~2", "@~1").stdout
    )


def test_older_prompts_that_are_like_no_current_ones_have_their_names_in_all_commands(
    prompted: Path, evalstore: Evalstore, documents: Any
) -> None:
    """Several prompts are edited before one run, also beside an edit of another test file."""
    for text in ("Say no more than a word or two.", "xyz"):
        tree(prompted, {"prompts/brief.md": f"{text}\n", "prompts/kind.md": f"{text * 9}\n"})
        edit(prompted / "tests/alone.md", "be warm", "be warm indeed")
        evalstore("run", "--yes")
    for run in ("@", "@~1", "@~2"):
        groups = documents("stats", run, "--by", "prompt")["groups"]
        assert [group["name"] for group in groups] == ["brief", "kind"]
        assert "[city=Oslo] (brief)" in evalstore("ls", "results", "--run", run).stdout


def test_an_edited_prompt_that_changes_its_place_has_its_name_in_older_runs(
    prompted: Path, evalstore: Evalstore
) -> None:
    (prompted / "tests/alone.md").unlink()
    edit(prompted / "tests/weather.md", "[brief, kind]", "[kind, brief]")
    tree(prompted, {"prompts/brief.md": "Say no more than a word or two.\n"})
    evalstore("run", "--yes")
    for run in ("@", "@~1"):
        assert "[city=Oslo] (brief)" in evalstore("show", run).stdout
    assert "\n    system prompt brief\n" in evalstore("diff", "@~1", "@").stdout


def test_a_prompt_that_is_edited_and_changes_its_place_is_neither_new_nor_gone(
    prompted: Path, evalstore: Evalstore
) -> None:
    edit(prompted / "tests/weather.md", "[brief, kind]", "[kind, brief]")
    edit(prompted / "prompts/brief.md", "Be brief.", "Be short.")
    edits = "system prompt brief changed: line 1: Be brief. -> Be short."
    assert edits in evalstore("status").stdout
    kept = evalstore("show", "tests/weather.md::city=Oslo", "--prompt", "kind").stdout
    assert "fail" in kept
    assert "a run would" not in kept
    evalstore("run", "--yes")
    assert "\n8 with the same answer, 4 unchanged\n" in evalstore("diff", "@~1", "@").stdout
    history = evalstore("show", "tests/weather.md::city=Oslo", "--prompt", "brief").stdout
    assert "      system prompt brief changed" in history
    assert "        + Be {+short+}." in history.replace("[-brief-]", "")


def test_a_prompt_that_is_edited_after_files_changed_contents_has_older_results(
    prompted: Path, evalstore: Evalstore
) -> None:
    text = "Be brief and clear to all people who ask.\n"
    tree(prompted, {"prompts/brief.md": text})
    evalstore("run", "--yes")
    tree(prompted, {"prompts/brief.md": "Be kind.\n", "prompts/kind.md": f"{text}Always.\n"})
    evalstore("run", "--yes", "-m", "scripted/one")
    case = "tests/weather.md::city=Oslo"
    for name in ("kind", "brief"):
        shown = evalstore("show", case, "-m", "scripted/two", "--prompt", name)
        assert f"\nfail  tests/weather.md [city=Oslo] ({name})  scripted/two" in shown.stdout


def test_cases_are_compared_under_both_prompts(prompted: Path, evalstore: Evalstore) -> None:
    assert evalstore("diff", "@", *VALUE) == Ran(
        0,
        "note: 4 results of cases with only one of both prompts are left out\n"
        "brief -> kind in run <short>\n"
        "kind: 1 better, 3 equal\n"
        "pass rate 50.0% -> 75.0% (4 results in 1 file, judged on both sides)\n"
        "kind against brief: +25.0 points (no interval: too wide with 2 rows); "
        "the pass rate of one row changed: too few rows to test significance\n"
        "\nBetter (1):\n"
        "    tests/weather.md [city=Oslo]  scripted/one  fail -> pass  <short> -> <short>\n"
        "        brief: It is cold there.\n",
        '(use "evalstore show ID" to read an answer)\n',
    )
    back = evalstore("diff", "@", "--prompt", "kind", "--vs", "brief", "--stat").stdout
    assert "brief: 1 worse, 3 equal\n" in back
    of_one = evalstore("diff", "@", *VALUE, "-m", "scripted/two", "--stat").stdout
    assert "kind: 2 equal\npass rate 50.0% -> 50.0% (2 results in 1 file" in of_one
    assert (
        "\nbrief -> kind in the workspace\n" in evalstore("diff", "@work", *VALUE, "--stat").stdout
    )


def test_the_document_names_both_prompts(prompted: Path, documents: Any) -> None:
    document = documents("diff", "@", *VALUE, "--answers")
    jsonschema.Draft202012Validator(schema_of(["diff"])).validate(document)
    assert document["prompts"] == ["brief", "kind"]
    assert "models" not in document
    [fixed] = document["fixed"]
    assert (fixed["row"], fixed["model"], fixed["reason"]) == ("city=Oslo", "scripted/one", "")
    assert fixed["answers"][-2:] == ["-Cold.", "+Not warm."]


def test_a_partial_run_names_the_comparison_of_all_cases(
    prompted: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "tests/weather.md::city=Rome")
    compared = evalstore("diff", "@", *VALUE, "--stat")
    assert '(use "evalstore diff @work --prompt brief --vs kind" to compare all' in compared.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--prompt", "brief", "--vs", "curt"),
            "error: no system prompt is called 'curt'\nhint: name one with --prompt: brief, kind\n",
        ),
        (("--prompt", "brief"), "error: '--prompt' needs '--vs'\n"),
        (
            ("--model", "brief", "--vs", "kind"),
            "'evalstore diff --prompt brief --vs kind' compares",
        ),
        (("@", "@", "--prompt", "brief", "--vs", "kind"), "or system prompts, of one run"),
        (
            ("--prompt", "brief", "--vs", "kind", "-m", "six"),
            "'six' is not a candidate of the work",
        ),
    ],
)
def test_what_is_wrong_with_a_comparison_of_prompts_is_said(
    prompted: Path, evalstore: Evalstore, arguments: tuple[str, ...], said: str
) -> None:
    ran = evalstore("diff", *arguments)
    assert ran.exit_code == 2
    assert said in ran.stderr


def test_prompts_that_no_case_has_both_are_an_error(prompted: Path, evalstore: Evalstore) -> None:
    tree(prompted, {"prompts/long.md": "Be long.\n"})
    tree(prompted, {"tests/other.md": PROMPTED.replace("[brief, kind]", "[long, null]")})
    evalstore("run", "--yes")
    assert evalstore("diff", "@", "--prompt", "brief", "--vs", "long") == Ran(
        2,
        "",
        "error: no case was asked with both 'brief' and 'long'\n"
        "hint: list both under 'systemPrompts' in its frontmatter\n",
    )
    assert "no prompt: " in evalstore("diff", "@", "--prompt", "long", "--vs", "no prompt").stdout


def test_a_rewritten_prompt_keeps_its_name_when_much_was_read_since(
    prompted: Path, evalstore: Evalstore
) -> None:
    (prompted / "prompts/kind.md").write_text("Answer in one word, and do not explain it.\n")
    usual = evalstore("stats", "@", "--by", "prompt").stdout
    assert "kind" in usual
    for size in (1, 16_000):  # as many contents are stored together
        with work_sizes.changed({"workspace.testfiles.context.KEPT_AT_ONCE": size}):
            assert evalstore("status").exit_code == 0
            assert evalstore("stats", "@", "--by", "prompt").stdout == usual
