"""`run`, `judge`, `status`: whole outputs and exit codes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.runs import RunCommit
from tests.builders import HELLO, tree
from tests.interfaces.cli.conftest import Evalstore, Ran

FIRST = """\
fail       tests/weather.md [city=Oslo]  scripted/one  <short>
           It is cold there.

1 pass, 1 fail (50.0%, 95% interval 9.5% to 90.5%)
scripted/one              2 calls   20 tokens in   4 out  $0.0600  simulated
scripted/judge (judging)  2 calls  402 tokens in  20 out       $0
run <short> complete: 2 new answers, 2 new verdicts, $0.0600 simulated
gate failed
"""
HINT = '(use "evalstore show {}" to see why)\n'
OSLO = HINT.format("tests/weather.md::city=Oslo")
SIMULATED = "(simulated: scripted models call no service, so nothing is paid)\n"
SECOND = """\
1 failure as before (--all shows why)
    tests/weather.md [city=Oslo]  scripted/one

1 pass, 1 fail (50.0%, 95% interval 9.5% to 90.5%)
run <short> complete: 0 new answers, 2 reused, 0 new verdicts, $0; \
saved $0.0600 simulated by reuse
gate failed
"""


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def release(model: Path, old: str, new: str) -> None:
    """Edit a scripted model as another version of it, which is asked everything again."""
    edit(model, old, new)
    text = re.sub("extraIdentifier: .*\n", "", model.read_text(encoding="utf-8"))
    model.write_text(f"extraIdentifier: '{new}'\n{text}", encoding="utf-8")


def test_a_first_run_asks_and_judges_everything(workspace: Path, evalstore: Evalstore) -> None:
    assert evalstore("run") == Ran(1, FIRST, OSLO + SIMULATED)


def test_a_second_run_does_nothing_and_says_the_same(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    assert evalstore("run") == Ran(1, SECOND, OSLO)


def test_v_lists_every_case(workspace: Path, evalstore: Evalstore) -> None:
    assert evalstore("run", "-v").stdout.startswith(
        "fail       tests/weather.md [city=Oslo]  scripted/one  <short>\n"
        "           It is cold there.\n"
        "pass       tests/weather.md [city=Rome]  scripted/one  <short>\n"
    )


def test_status_before_the_first_run(workspace: Path, evalstore: Evalstore) -> None:
    assert evalstore("status") == Ran(
        0,
        "No run yet.\n\n"
        "A run would ask for 2 answers and give 2 verdicts (1 candidate), "
        "about $0.0600 simulated (if an answer has 1 token).\n"
        '  (use "evalstore run" to do it, "evalstore status --explain" to list it with reasons)\n',
        "",
    )


def test_short_status_before_the_first_run_lists_all_files_as_new(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    (workspace / "tests/b.md").write_text("# 👤\n\nHi\n\n---\n\nE\n")
    assert evalstore("status", "--short").stdout == "A  tests/b.md\nA  tests/weather.md\n"
    assert evalstore("status", "--short", "tests/b.md").stdout == "A  tests/b.md\n"
    assert [(change["code"], change["asked"]) for change in documents("status")["changes"]] == [
        ("A ", 1),
        ("A ", 2),
    ]


def test_status_after_a_run_has_nothing_to_do(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    assert evalstore("status") == Ran(
        0, "Nothing to do: 2 answers of 1 candidate and all verdicts are stored.\n", ""
    )


def test_an_edited_instruction_is_judged_again_and_nothing_is_asked(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    edit(workspace / "tests/weather.md", "must be warm", "must be a weather report")
    assert evalstore("status").stdout == (
        "Changed since run <short> (<when>):\n"
        '  (use "evalstore diff -- FILE" to see how)\n'
        "    .M  tests/weather.md  2 cases judged again: instructions changed: line 1: "
        "The answer must be warm. -> The answer must be a weather report.\n"
        "\n"
        "A run would give 2 verdicts (1 candidate), about $0; "
        "2 answers reused.\n"
        '  (use "evalstore run" to do it, "evalstore status --explain" to list it with reasons)\n'
    )
    assert evalstore("status", "-k", "not bc", "tests").stdout.endswith(
        "  (use \"evalstore run tests -k 'not bc'\" to do it)\n"
        "  (use \"evalstore status --explain tests -k 'not bc'\" to list it with reasons)\n"
    )
    assert evalstore("status", "--short").stdout == ".M tests/weather.md\n"
    assert evalstore("run") == Ran(
        0,
        "since the last run: 1 fixed\n"
        "pass       tests/weather.md [city=Oslo]  scripted/one  <short>  (fixed)\n"
        "\n"
        "2 pass (100.0%, 95% interval 34.2% to 100.0%)\n"
        "scripted/judge (judging)  2 calls  408 tokens in  16 out  $0\n"
        "run <short> complete: 0 new answers, 2 reused, 2 new verdicts, $0; "
        "saved $0.0600 simulated by reuse\n"
        "gate passed\n",
        '  (use "evalstore diff <short> <short>" to see how)\n',
    )


def test_an_edited_question_is_asked_again_and_the_price_comes_from_its_relative(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    edit(workspace / "tests/weather.md", "How is", "And how is")
    assert evalstore("status", "--explain").stdout == (
        "Changed since run <short> (<when>):\n"
        '  (use "evalstore diff -- FILE" to see how)\n'
        "    M.  tests/weather.md  2 cases asked again: test changed: message 1, line 1: "
        "How is Oslo? -> And how is Oslo?\n"
        "\n"
        "Would ask (2):\n"
        "    tests/weather.md [city=Oslo]  scripted/one  test changed: message 1, line 1: "
        "How is Oslo? -> And how is Oslo?\n"
        "    tests/weather.md [city=Rome]  scripted/one  test changed: message 1, line 1: "
        "How is Rome? -> And how is Rome?\n"
        "\n"
        "Would judge (2):\n"
        "    new answer\n"
        "        tests/weather.md [city=Oslo]  scripted/one by scripted/judge\n"
        "        tests/weather.md [city=Rome]  scripted/one by scripted/judge\n"
        "\n"
        "A run would ask for 2 answers and give 2 verdicts (1 candidate), "
        "about $0.0600 simulated.\n"
    )


def test_explain_without_a_dry_run_asks_nothing(workspace: Path, evalstore: Evalstore) -> None:
    refused = evalstore("run", "--explain")
    assert refused.exit_code == 2
    assert refused.stderr == (
        "error: '--explain' needs '--dry-run'\n"
        "hint: 'evalstore status --explain' lists what a run would do, with the reasons\n"
    )
    assert evalstore("log").stderr.startswith("No runs yet")


def test_a_quiet_dry_run_is_one_line(workspace: Path, evalstore: Evalstore) -> None:
    (line,) = evalstore("run", "-q", "-n").stdout.splitlines()
    assert line == evalstore("status").stdout.splitlines()[-2]
    assert line.startswith("A run would ask for 2 answers and give 2 verdicts (1 candidate), ")
    evalstore("run", "-q")
    assert evalstore("run", "-q", "-n").stdout == "Nothing to do\n"


def test_a_dry_run_asks_nothing(workspace: Path, evalstore: Evalstore, documents: Any) -> None:
    output = evalstore("run", "-n").stdout
    assert "Would ask (2)" in output
    assert (
        "\nDry run: nothing was asked. A run would ask for 2 answers and give 2 verdicts " in output
    )
    assert documents("status")["ask"] == 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--fail-on", "none"], 0),
        (["--fail-on", "error"], 0),
        (["--fail-on", "undecided"], 1),
        (["--fail-on", "regression"], 0),
        (["--threshold", "0.5"], 0),
        (["--threshold", "0.6"], 1),
    ],
)
def test_the_gate(
    workspace: Path, evalstore: Evalstore, arguments: list[str], expected: int
) -> None:
    assert evalstore("run", *arguments).exit_code == expected


def test_a_regression_fails_its_gate(workspace: Path, evalstore: Evalstore) -> None:
    edit(workspace / "tests/weather.md", "must be warm", "must be anything")
    assert evalstore("run").exit_code == 0
    edit(workspace / "tests/weather.md", "must be anything", "must be warm")
    assert evalstore("run", "--fail-on", "regression").exit_code == 1


def test_a_run_of_other_cases_hides_no_regression(workspace: Path, evalstore: Evalstore) -> None:
    (workspace / "tests/other.md").write_text("# 👤\n\nHi\n\n---\n\nE\n")
    edit(workspace / "tests/weather.md", "must be warm", "must be anything")
    evalstore("run")
    evalstore("run", "tests/other.md")
    edit(workspace / "tests/weather.md", "must be anything", "must be warm")
    assert evalstore("run", "--fail-on", "regression").exit_code == 1


def test_a_file_threshold_tolerates_failures(workspace: Path, evalstore: Evalstore) -> None:
    edit(workspace / "tests/weather.md", "tags: [weather]", "tags: [weather]\nthreshold: 0.5")
    assert evalstore("run").exit_code == 0


def test_judge_never_asks(workspace: Path, evalstore: Evalstore, documents: Any) -> None:
    document = documents("run", "--judge-only")
    assert (document["asked"], document["judged"], document["verdicts"]["pending"]) == (0, 0, 2)
    assert evalstore("run", "--judge-only").exit_code == 3


def test_judge_judges_stored_answers(workspace: Path, evalstore: Evalstore, documents: Any) -> None:
    evalstore("run")
    edit(workspace / "tests/weather.md", "must be warm", "must be short")
    document = documents("run", "--judge-only")
    assert (document["asked"], document["judged"], document["verdicts"]["pass"]) == (0, 2, 2)


@pytest.mark.parametrize(
    ("selection", "asked"),
    [
        (["tests/weather.md"], 2),
        (["weather.md"], 2),
        (["tests"], 2),
        (["."], 2),
        (["tests/weather.md::city=Oslo"], 1),
        (["tests/weather.md::oslo"], 1),
        (["-k", "rome"], 1),
        (["-k", "rome or oslo"], 2),
        (["-k", "weather and not rome"], 1),
        (["-t", "weather"], 2),
    ],
)
def test_selection(
    workspace: Path, documents: Callable[..., Any], selection: list[str], asked: int
) -> None:
    assert documents("run", *selection)["asked"] == asked


@pytest.mark.parametrize(
    "selection",
    [
        ["-k", "nothing"],
        ["-t", "nothing"],
        ["--exclude-tag", "weather"],
        ["tests/weather.md::Bern"],
    ],
)
def test_an_empty_selection_ends_with_5(
    workspace: Path, evalstore: Evalstore, selection: list[str]
) -> None:
    assert evalstore("run", *selection).exit_code == 5


def test_a_path_that_names_nothing(workspace: Path, evalstore: Evalstore) -> None:
    assert evalstore("run", "tests/wether.md") == Ran(
        2,
        "",
        "error: test file 'tests/wether.md' not found\nhint: did you mean 'tests/weather.md'?\n",
    )


@pytest.mark.parametrize("case", ["tests/weather.md", "tests/weather.md [city=Oslo]"])
@pytest.mark.parametrize("command", ["run", "status", "log"])
def test_a_case_with_its_system_prompt_as_it_is_printed(
    workspace: Path, evalstore: Evalstore, command: str, case: str
) -> None:
    evalstore("run", "-q")
    refused = evalstore(command, f"{case} (brief)")
    assert refused.exit_code == 2
    assert refused.stderr.endswith(f"hint: leave out the system prompt: '{case}'\n")


def test_a_number_in_the_place_of_a_test_file_is_answered_with_the_limit(
    workspace: Path, evalstore: Evalstore
) -> None:
    error = "error: test file '5' not found\nhint: '--limit 5' takes the first cases\n"
    assert evalstore("run", "-n", "5") == Ran(2, "", error)


def test_an_unknown_model(workspace: Path, evalstore: Evalstore) -> None:
    assert evalstore("run", "-m", "scripted/om") == Ran(
        2,
        "",
        "error: unknown model 'scripted/om' (candidates)\nhint: did you mean 'scripted/one'?\n",
    )


def test_a_misspelt_candidate_is_recognised_when_its_model_also_judges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalstore: Evalstore
) -> None:
    model = "id: mine\nprovider: scripted\nresponses: [{answer: x}]\n"
    tree(
        tmp_path,
        {
            "evalstore.yaml": "candidates: [mien]\nevaluators: [mine]\n",
            "models/m.yaml": model,
            "tests/t.md": HELLO,
        },
    )
    monkeypatch.chdir(tmp_path)
    assert evalstore("check").stderr == (
        "error: evalstore.yaml:1: unknown model 'mien' for this candidate\n"
        "hint: did you mean 'mine'?\n"
    )


def test_all_problems_of_all_files_stop_a_run_before_it_asks(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    (workspace / "tests/a.md").write_text("---\ntag: [x]\n---\n# 👤\n\nHi\n\n---\n\nE\n")
    (workspace / "tests/b.md").write_text("# 👤\n\nHi {{who}}\n\n---\n\nE\n")
    assert evalstore("run") == Ran(
        2,
        "",
        "error: tests/a.md:2: unknown field 'tag'\n"
        "hint: did you mean 'tags'?\n"
        "error: tests/b.md:3:6: 'who' is not defined\n"
        "    Hi {{who}}\n"
        "         ^\n"
        "hint: define it under 'replacements:'\n"
        "2 errors in 2 files; nothing was done\n"
        "hint: '--keep-going' leaves out the files with errors\n",
    )
    assert documents("log")["runs"] == []
    assert evalstore("run", "tests/weather.md").exit_code == 1


def test_a_failing_provider_leaves_its_answer_missing(
    workspace: Path, evalstore: Evalstore
) -> None:
    edit(workspace / "models/one.yaml", "{when: Oslo, answer: Cold.,", "{when: Oslo, error: 400,")
    ran = evalstore("run")
    assert ran.exit_code == 3
    assert "pending    tests/weather.md [city=Oslo]" in ran.stdout
    assert "1 new answer, 1 new verdict" in ran.stdout
    assert re.search(r"failed 1x: scripted/one: .*400", ran.stdout)
    assert "retry of a failure" in evalstore("status", "--explain").stdout
    edit(workspace / "models/one.yaml", "{when: Oslo, error: 400,", "{when: Oslo, answer: Cold.,")
    assert "1 new answer, 1 reused, 1 new verdict" in evalstore("run").stdout


def test_attempts_ask_for_more_samples(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("run")
    document = documents("status", "-r", "3")
    assert (
        document["ask"],
        {item["reason"] for item in document["items"] if item["kind"] == "ask"},
    ) == (
        4,
        {"attempts 1 -> 3"},
    )
    assert documents("run", "-r", "3")["asked"] == 4


def test_the_json_of_a_run_has_what_is_printed(workspace: Path, documents: Any) -> None:
    document = documents("run")
    assert {key: document[key] for key in ("format", "status", "asked", "judged", "gate")} == {
        "format": 1,
        "status": "complete",
        "asked": 2,
        "judged": 2,
        "gate": "failed",
    }
    assert [(case["row"], case["verdict"], case["feedback"]) for case in document["cases"]] == [
        ("city=Oslo", "fail", "It is cold there."),
        ("city=Rome", "pass", ""),
    ]


def test_text_from_a_model_cannot_move_the_cursor(workspace: Path, evalstore: Evalstore) -> None:
    edit(workspace / "models/judge.yaml", "It is cold there.", '"\\x1b[2Jcold [/] [bold]"')
    assert "\\x1b[2Jcold [/] [bold]" in evalstore("run").stdout


def test_colours_only_when_asked_for_in_a_pipe(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\x1b" not in evalstore("run").stdout
    assert "\x1b[31m" in evalstore("--color", "always", "run").stdout
    assert "\x1b" not in evalstore("run", "--color", "never").stdout


def test_options_have_environment_variables(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSTORE_RUN_FAIL_ON", "none")
    assert evalstore("run").exit_code == 0


def test_a_missing_key_is_reported_before_the_first_call(
    workspace: Path, evalstore: Evalstore
) -> None:
    (workspace / "providers").mkdir()
    (workspace / "providers/desk.yaml").write_text(
        "code: desk\ntype: openai-compatible\nbaseURL: http://127.0.0.1:9/v1\n"
        "apiKeyEnvVar: DESK_KEY\n"
    )
    (workspace / "models/desk.yaml").write_text("id: desk/m\nprovider: desk\n")
    ran = evalstore("run", "-m", "desk/m", "--retries", "0")
    assert ran.exit_code == 3
    assert ran.stderr == (
        "DESK_KEY is not set, so 'desk/m' is called without a key\n"
        "hint: start the server, or correct 'baseURL' of its provider\n"
        '(use "evalstore log --failures" to see where)\n'
    )
    assert "failed 2x: desk/m: " in ran.stdout


def test_a_checkout_whose_changes_are_not_known_is_recorded_as_such(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = RunCommit("a" * 40, None)
    monkeypatch.setattr("evalstore.runs.run.git_state", lambda _root: state)
    evalstore("run", "--fail-on", "none")
    for command in ("status", "log", "stats", "fsck"):
        assert evalstore(command).exit_code == 0, evalstore(command).stderr
