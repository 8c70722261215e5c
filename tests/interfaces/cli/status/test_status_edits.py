"""What `status` says of edits after which nothing is asked or judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalstore.interfaces.cli.render import status
from evalstore.planning import cells, planner
from evalstore.runs.status import status as plan_status
from tests.builders import tree
from tests.interfaces.cli.conftest import JUDGE, ONE, SETTINGS, WEATHER, Evalstore
from tests.interfaces.cli.run.test_run import edit

WARM = ONE.replace("answer: Cold.", "answer: Warm!")
SECOND = "extraIdentifier: v2\nprovider: scripted"
AT_ONCE = "Nothing to do: "


@pytest.fixture
def undone_model(workspace: Path, evalstore: Evalstore) -> Path:
    """A workspace whose model was edited, run, and is as it was before."""
    evalstore("run", "-q")
    second = WARM.replace("provider: scripted", SECOND)
    tree(workspace, {"models/one.yaml": second})
    evalstore("run", "-q")
    tree(workspace, {"models/one.yaml": ONE})
    return workspace


def test_an_undone_edit_of_a_model_is_listed_with_what_it_breaks(
    undone_model: Path, evalstore: Evalstore, documents: Any
) -> None:
    printed = evalstore("status").stdout
    assert "Changed since run <short> (<when>):\n" in printed
    assert "    M.  candidate scripted/one  model extraIdentifier: v2 -> removed\n" in printed
    outcome = "Since the last run, without new calls: 1 result broke"
    assert f'{outcome} (use "evalstore diff" for details)' in printed
    assert AT_ONCE in printed
    document = documents("status")
    assert (document["broke"], document["fixed"], document["ask"]) == (1, 0, 0)
    assert [edit["was"] for edit in document["edits"]] == ["v2"]
    assert evalstore("status", "--short").stdout == "M. candidate scripted/one\n"
    assert "since the last run: 1 broke" in evalstore("run", "-q").stdout
    assert "Changed since" not in evalstore("status").stdout


def test_instructions_edited_beside_a_system_prompt_are_judged_again(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    """Where the case also has an answer without that prompt."""
    test = "---\nsystemPrompts: [brief, null]\n---\n# User\n\nHi\n\n---\n\nIt must greet{}.\n"
    tree(workspace, {"prompts/brief.md": "Be brief.\n", "tests/hi.md": test.format("")})
    evalstore("run", "-q")
    tree(workspace, {"prompts/brief.md": "Be short.\n", "tests/hi.md": test.format(" well")})
    printed = evalstore("status").stdout
    assert "    MM  tests/hi.md  1 case asked again, 1 case judged again: system prompt " in printed
    assert "; instructions changed: line 1: It must greet. -> It must greet well." in printed
    assert "MM tests/hi.md" in evalstore("status", "--short").stdout
    document = documents("status")
    (change,) = document["changes"]
    assert (change["code"], change["asked"], change["judged"]) == ("MM", 1, 1)
    assert (document["ask"], document["judge"]) == (1, 2)
    tree(workspace, {"tests/hi.md": test.format("")})
    assert documents("status")["changes"][0]["code"] == "M."
    assert {item.get("promptName") for item in documents("status")["items"]} == {"brief"}


def test_the_lines_of_an_edited_prompt_are_printed_once(
    workspace: Path, evalstore: Evalstore
) -> None:
    """Also where a test that uses it was edited as well."""
    test = "---\nsystemPrompts: [long]\n---\n# User\n\n{}\n\n---\n\nIt must greet{}.\n"
    text = "Be brief, and answer in one short sentence without any other words.\n"
    tests = {f"tests/{name}.md": test.format(name, "") for name in "ab"}
    tree(workspace, {"prompts/long.md": text, **tests})
    evalstore("run", "-q")
    tree(workspace, {"prompts/long.md": text.replace("brief", "very brief")})
    tree(workspace, {"tests/a.md": test.format("a", " well")})
    printed = evalstore("status").stdout
    assert printed.count("system prompt long changed") == 2
    assert printed.count("+ Be very brief") == 1


def test_the_data_is_named_whose_bytes_differ(workspace: Path, evalstore: Evalstore) -> None:
    test = "---\ndataset: rows.csv\n---\n# User\n\nIs {{city}} old?\n\n---\n\nIt says so.\n"
    tree(workspace, {"tests/old.md": test, "tests/rows.csv": "city\nRome\nBern\n"})
    evalstore("run", "-q")
    tree(workspace, {"tests/rows.csv": "city\nRome\nBern\nOslo\n"})
    assert "  1 case new: rows of tests/rows.csv\n" in evalstore("status").stdout


def test_an_edit_of_a_model_that_asks_is_named_once(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("run", "-q")
    tree(workspace, {"models/one.yaml": WARM.replace("provider: scripted", SECOND)})
    printed = evalstore("status").stdout
    line = "2 answers in tests/weather.md: model extraIdentifier: not set -> v2"
    assert "Changed since run <short> (<when>):\n  (use" in printed
    assert f"    M.  candidate scripted/one  {line}\n\nA run would" in printed
    assert evalstore("status", "--short").stdout == "M. candidate scripted/one\n"
    (edit,) = documents("status")["edits"]
    assert (edit["code"], edit["of"]) == ("M.", "candidate scripted/one")


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("maxTestOutputTokens: 90", "M.  maxTestOutputTokens  none -> 90\n"),
        ("attempts: 2", "M.  attempts  2 answers in tests/weather.md: 1 -> 2"),
        ("evaluationsPerEvaluator: 2", ".M  evaluationsPerEvaluator  2 verdicts in"),
        ("evaluatorsTemperature: 1", ".M  judge scripted/judge  2 verdicts in tests/weather.md: "),
        (
            "candidatesTemperature: 1",
            "M.  candidate scripted/one  2 answers in tests/weather.md: t",
        ),
    ],
)
def test_an_edit_of_the_settings_is_a_changed_line_and_is_named_by_log(
    workspace: Path, evalstore: Evalstore, documents: Any, setting: str, line: str
) -> None:
    evalstore("run", "-q")
    tree(workspace, {"evalstore.yaml": f"{SETTINGS}{setting}\n"})
    printed = evalstore("status").stdout
    assert f"    {line}" in printed
    assert "Pending" not in printed
    code, name = line.split("  ")[:2]
    assert evalstore("status", "--short").stdout == f"{code} {name}\n"
    (edit,) = documents("status")["edits"]
    evalstore("run", "-q")
    assert evalstore("status", "--short").stdout == ""
    assert documents("log")["runs"][0]["edits"][0]["what"] == edit["what"]


def test_another_judge_prompt_is_named_and_an_edit_of_it_is_one_line_for_all_judges(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q")
    told = "{{_evaluationInstructions}}\n{{_actualResponse}}\n"
    text = "---\ntags: [_evaluator]\n---\nBe strict. " + told
    prompt = "[{id: scripted/judge, prompt: strict}, {id: scripted/second, prompt: strict}]"
    judges = SETTINGS.replace("evaluators: [scripted/judge]", f"evaluators: {prompt}")
    second = {"models/second.yaml": JUDGE.replace("scripted/judge", "scripted/second")}
    tree(workspace, {"prompts/strict.md": text, "evalstore.yaml": judges} | second)
    lines = ".M judge scripted/judge\nA  judge scripted/second\n"
    assert evalstore("status", "--short").stdout == lines
    assert "judge prompt strict in place of _evaluator_default" in evalstore("status").stdout
    evalstore("run", "-q")
    tree(workspace, {"prompts/strict.md": text.replace("strict", "very strict")})
    assert evalstore("status", "--short").stdout == ".M judge prompt strict\n"
    assert evalstore("status", "--short", "-J", "second").stdout == ".M judge prompt strict\n"
    printed = evalstore("status").stdout
    assert printed.count("+ Be very strict") == printed.count("judge prompt strict") == 1
    assert "    .M  judge prompt strict  4 verdicts in tests/weather.md: " in printed
    evalstore("run", "-q")
    assert evalstore("log", "-n", "1").stdout.count("edit: judge prompt strict changed: ") == 1


def test_an_undone_edit_of_a_judge_is_listed_with_what_it_fixes(
    workspace: Path, evalstore: Evalstore
) -> None:
    kind = JUDGE.replace("pass: false", "pass: true")
    tree(workspace, {"models/judge.yaml": kind})
    evalstore("run", "-q")
    strict = JUDGE.replace("provider: scripted", SECOND)
    tree(workspace, {"models/judge.yaml": strict})
    evalstore("run", "-q")
    tree(workspace, {"models/judge.yaml": kind})
    printed = evalstore("status").stdout
    assert "    .M  judge scripted/judge  judge model extraIdentifier: v2 -> removed\n" in printed
    assert "Since the last run, without new calls: 1 result fixed" in printed


def test_a_candidate_that_is_removed_or_comes_back_is_listed(
    workspace: Path, evalstore: Evalstore
) -> None:
    two = {"models/two.yaml": ONE.replace("scripted/one", "scripted/two")}
    both = SETTINGS.replace("scripted/one", "scripted/one, scripted/two")
    tree(workspace, {"evalstore.yaml": both} | two)
    evalstore("run", "-q")
    tree(workspace, {"evalstore.yaml": SETTINGS})
    assert "    D   candidate scripted/two  removed\n" in evalstore("status").stdout
    evalstore("run", "-q")
    assert "removed" not in evalstore("status").stdout
    tree(workspace, {"evalstore.yaml": both})
    printed = evalstore("status").stdout
    assert "    A   candidate scripted/two  new\n" in printed
    assert AT_ONCE in printed


def test_a_candidate_that_a_run_left_out_is_not_listed(
    workspace: Path, evalstore: Evalstore
) -> None:
    two = {"models/two.yaml": ONE.replace("scripted/one", "scripted/two")}
    both = SETTINGS.replace("scripted/one", "scripted/one, scripted/two")
    tree(workspace, {"evalstore.yaml": both} | two)
    evalstore("run", "-q")
    evalstore("run", "-q", "-m", "scripted/one")
    assert evalstore("status").stdout.startswith(AT_ONCE)


def test_another_rule_for_votes_is_listed(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run", "-q")
    tree(workspace, {"evalstore.yaml": SETTINGS + "verdict: all\n"})
    assert "    .M  verdict  majority -> all\n" in evalstore("status").stdout


def test_a_reverted_test_says_what_the_revert_fixes(workspace: Path, evalstore: Evalstore) -> None:
    cities = WEATHER.replace("[Oslo, Rome]", "[Oslo, Rome, Bari]")
    tree(workspace, {"tests/weather.md": cities})
    evalstore("run", "-q")
    edited = cities.replace("must be warm", "must be warm. Cold is fine, too")
    tree(workspace, {"tests/weather.md": edited})
    harsh = "responses:\n  - {when: fine, answer: {pass: false, feedback: No.}}\n"
    tree(workspace, {"models/judge.yaml": JUDGE.replace("responses:\n", harsh)})
    evalstore("run", "-q")
    tree(workspace, {"tests/weather.md": cities})
    shown = evalstore("status").stdout
    assert "tests/weather.md  reverted to a stored version\n" in shown
    assert "Since the last run, without new calls: 2 results fixed (use" in shown


@pytest.fixture
def brief(workspace: Path, evalstore: Evalstore) -> Path:
    """A workspace with a system prompt that two runs have seen: now the second version."""
    prompted = WEATHER.replace("tags:", "systemPrompts: [brief]\ntags:")
    tree(workspace, {"prompts/brief.md": "Be brief.\n", "tests/weather.md": prompted})
    evalstore("run", "-q")
    tree(workspace, {"prompts/brief.md": "Be short.\n"})
    evalstore("run", "-q")
    return workspace


def test_an_edited_system_prompt_is_named_in_place_of_its_test_file(
    brief: Path, evalstore: Evalstore
) -> None:
    tree(brief, {"prompts/brief.md": "Be very brief.\n"})
    assert "2 cases asked again: system prompt brief changed: " in evalstore("status").stdout
    tree(brief, {"prompts/brief.md": "Be brief.\n"})
    line = "    =   tests/weather.md  system prompt brief reverted to a stored version\n"
    for _ in range(2):  # the second one is read from the cache
        assert line in evalstore("status").stdout
    cities = (brief / "tests/weather.md").read_text().replace("[Oslo, Rome]", "[Rome]")
    tree(brief, {"tests/weather.md": cities})
    assert "tests/weather.md  1 case removed, 1 reverted to" in evalstore("status").stdout


def test_a_system_prompt_that_is_as_in_another_test_is_edited(
    workspace: Path, evalstore: Evalstore
) -> None:
    prompted = WEATHER.replace("tags:", "systemPrompts: [brief]\ntags:")
    other = prompted.replace("brief", "polite")
    tests = {"tests/weather.md": prompted, "tests/sky.md": other}
    tree(workspace, {**tests, "prompts/brief.md": "Be brief.\n", "prompts/polite.md": "Please.\n"})
    evalstore("run", "-q")
    tree(workspace, {"prompts/brief.md": "Please.\n"})
    line = "tests/weather.md  system prompt brief edited: answered and judged already"
    assert line in evalstore("status").stdout


def test_another_system_prompt_is_an_edit_of_the_test_file(
    workspace: Path, evalstore: Evalstore
) -> None:
    prompted = WEATHER.replace("tags:", "systemPrompts: [brief]\ntags:")
    two = {"prompts/brief.md": "Be brief.\n", "prompts/polite.md": "Please.\n"}
    tree(workspace, {"tests/weather.md": prompted, **two})
    evalstore("run", "-q")
    tree(workspace, {"tests/weather.md": prompted.replace("brief", "polite")})
    evalstore("run", "-q")
    tree(workspace, {"tests/weather.md": prompted})
    assert "    =   tests/weather.md  reverted to a stored" in evalstore("status").stdout


def test_what_a_revert_changes_is_counted_in_results_everywhere(
    workspace: Path, evalstore: Evalstore
) -> None:
    two = {"models/two.yaml": ONE.replace("scripted/one", "scripted/two")}
    both = SETTINGS.replace("scripted/one", "scripted/one, scripted/two")
    tree(workspace, {"evalstore.yaml": both} | two)
    evalstore("run", "-q")
    edited = WEATHER.replace("must be warm", "must be warm. Cold is fine, too")
    harsh = "responses:\n  - {when: fine, answer: {pass: false, feedback: No.}}\n"
    judge = JUDGE.replace("responses:\n", harsh)
    tree(workspace, {"tests/weather.md": edited, "models/judge.yaml": judge})
    evalstore("run", "-q")
    tree(workspace, {"tests/weather.md": WEATHER})
    printed = evalstore("status").stdout
    assert "reverted to a stored version\n" in printed
    assert "Since the last run, without new calls: 2 results fixed" in printed
    assert evalstore("run").stdout.startswith("since the last run: 2 fixed\n")


@pytest.fixture
def two_prompts(workspace: Path) -> Path:
    """The workspace with two system prompts, with both of which Oslo fails."""
    test = WEATHER.replace("tags:", "systemPrompts: [brief, kind]\ntags:")
    prompts = {"prompts/brief.md": "Be brief.\n", "prompts/kind.md": "Be kind.\n"}
    return tree(workspace, {"tests/weather.md": test, **prompts})


def test_of_a_reverted_prompt_only_its_own_results_fail(
    two_prompts: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q")
    tree(two_prompts, {"prompts/kind.md": "Be very kind.\n"})
    evalstore("run", "-q")
    tree(two_prompts, {"prompts/kind.md": "Be kind.\n"})
    line = "system prompt kind reverted to a stored version\n"
    shown = evalstore("status").stdout
    assert line in shown
    assert "without new calls" not in shown
    edit(two_prompts / "tests/weather.md", "The answer", "Now the answer")
    evalstore("run", "-q")
    edit(two_prompts / "tests/weather.md", "Now the answer", "The answer")
    assert "reverted to a stored version\n" in evalstore("status").stdout


def test_what_an_edit_undone_in_part_changes_without_calls_is_said(
    two_prompts: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("run", "-q")
    edit(two_prompts / "tests/weather.md", "must be warm", "must be true")
    tree(two_prompts, {"prompts/kind.md": "Be very kind.\n"})
    evalstore("run", "-q")
    edit(two_prompts / "tests/weather.md", "must be true", "must be warm")
    outcome = "Since the last run, without new calls: 1 result broke"
    for command in (("status",), ("run", "-n")):
        printed = evalstore(*command).stdout
        assert "    .M  tests/weather.md  2 cases judged again: instructions changed" in printed
        assert outcome in printed
    assert documents("status")["broke"] == len(documents("diff")["broke"]) == 1
    edit(two_prompts / "tests/weather.md", "must be warm", "must be new")
    assert "without new calls" not in evalstore("status").stdout


def test_what_an_edit_undone_in_part_changes_is_read_for_its_file_alone(
    two_prompts: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(two_prompts, {"tests/other.md": WEATHER.replace("How", "And how")})
    evalstore("run", "-q")
    edit(two_prompts / "tests/weather.md", "must be warm", "must be true")
    tree(two_prompts, {"prompts/kind.md": "Be very kind.\n"})
    evalstore("run", "-q")
    edit(two_prompts / "tests/weather.md", "must be true", "must be warm")
    plan_cells, planned = planner.plan_cells, list[set[str]]()

    def note(project: Any, scope: Any, cells: Any, **options: Any) -> Any:
        planned.append({cell.file for cell in cells})
        return plan_cells(project, scope, cells, **options)

    monkeypatch.setattr(plan_status, "plan_cells", note)
    monkeypatch.setattr(cells, "BATCH", 2)
    assert "Since the last run, without new calls: 1 result broke" in evalstore("status").stdout
    assert planned == [{"tests/other.md"}, {"tests/weather.md"}, {"tests/weather.md"}]


def test_letters_are_of_the_edit_and_not_of_a_refresh(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q")
    edit(workspace / "tests/weather.md", "must be warm", "must be short")
    assert evalstore("status", "--refresh", "--short").stdout.startswith(".M tests/weather.md\n")
    edit(workspace / "tests/weather.md", "How is", "How cold is")
    letters = evalstore("status", "--short").stdout
    assert letters == evalstore("status", "--refresh", "--short").stdout == "M. tests/weather.md\n"


def test_a_refreshed_answer_that_will_not_count_is_said(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q")
    tree(workspace, {"models/one.yaml": WARM})
    evalstore("run", "-q", "--refresh", "--lf")
    assert "Since the last run, without new calls: 1 result broke" in evalstore("status").stdout


def test_a_list_is_not_cut_where_a_single_entry_would_be_left_out(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("run", "-q")
    second = ONE.replace("provider: scripted", SECOND)
    tree(workspace, {"models/one.yaml": second})
    monkeypatch.setattr(status, "_REASONS", 1)
    monkeypatch.setattr(status, "_SHOWN", 1)
    for argv in (("status",), ("status", "--explain")):
        assert "more (-v lists all)" not in evalstore(*argv).stdout
    cities = WEATHER.replace("[Oslo, Rome]", "[Oslo, Rome, Bari]")
    tree(workspace, {"tests/weather.md": cities})
    assert evalstore("status", "--explain").stdout.count("… 2 more (-v lists all)") == 2


def test_a_status_of_one_file_lists_no_other_new_one(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run", "-q")
    tree(workspace, {f"tests/{name}.md": f"# 👤\n\n{name}?\n\n---\n\nYes.\n" for name in "ab"})
    printed = evalstore("status", "tests/a.md").stdout
    assert "A   tests/a.md  1 case new" in printed
    assert "tests/b.md" not in printed
    assert "tests/b.md  1 case new" in evalstore("status").stdout


def test_the_candidates_of_pending_work_are_those_that_it_is_about(
    workspace: Path, evalstore: Evalstore
) -> None:
    two = {"models/two.yaml": ONE.replace("scripted/one", "scripted/two")}
    both = SETTINGS.replace("scripted/one", "scripted/one, scripted/two")
    tree(workspace, {"evalstore.yaml": both} | two)
    evalstore("run", "-q", "-m", "scripted/one")
    for _ in range(2):  # the second one is read from the cache
        printed = evalstore("status").stdout
        assert "ask for 2 answers and give 2 verdicts (1 candidate)" in printed
    evalstore("run", "-q")
    assert "Nothing to do: 4 answers of 2 candidates" in evalstore("status").stdout


def test_nothing_is_said_of_rows_that_are_not_selected(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q")
    tree(workspace, {"tests/weather.md": WEATHER.replace("must be ", "must be very ")})
    line = "tests/weather.md  1 case judged again: instructions changed"
    printed = evalstore("status", "tests/weather.md::city=Rome").stdout
    assert line in printed
    assert "judged already" not in printed
