"""`show FILE::ROW`: why a case has its verdict, where the answer differs, and since when."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evalstore.core.display import columns_of
from evalstore.results.flips import result_history
from evalstore.store import Store
from tests.builders import tree
from tests.interfaces.cli.conftest import GROUP, JUDGE, ONE, WEATHER, Echo, Evalstore, Ran
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.cli.test_documents import schema_of

CHECK = """\
# 👤

{asked}

---

~~~checks
- contains: {expected}
~~~
"""


def section(shown: str, title: str) -> list[str]:
    """The lines of a section, without their indent."""
    match = re.search(rf"^{title}:\n((?:    .*\n)+)", shown, re.MULTILINE)
    return [line[4:] for line in match[1].splitlines()] if match else []


def history(evalstore: Evalstore, *argv: str) -> list[str]:
    return section(evalstore("show", *argv).stdout, "history")


def write(asked: str = "10 euros", expected: str = "10 euros", file: str = "tests/t.md") -> None:
    tree(Path(), {file: CHECK.format(asked=asked, expected=expected)})


def test_the_page_of_a_failure_answers_every_question(echo: Echo, evalstore: Evalstore) -> None:
    write("You pay 10 euros today.\nThank you.")
    evalstore("run", "-q")
    write("You pay 20 euros today.\nThank you.")
    evalstore("run", "-q")
    assert evalstore("show", "tests/t.md") == Ran(
        0,
        "answer <short>  scripted/one  <when>\n"
        "fail  tests/t.md  scripted/one\n"
        "fail  by checks  <when>  <short>\n"
        "    fail  contains: '10 euros' is not in 'You pay 20 euros today.…'\n"
        "where it differs:\n"
        "    contains  at line 1, column 9\n"
        "      expected  [-10-] euros\n"
        "      found     {+20+} euros\n"
        "history:\n"
        "    broken since run <short> (<when>)\n"
        "    last passed in run <short> (<when>)\n"
        "    what changed in between:\n"
        "      test changed\n"
        "          user:\n"
        "        - You pay [-10-] euros today.\n"
        "        + You pay {+20+} euros today.\n"
        "          Thank you.\n"
        "\n"
        "user:\n"
        "    You pay 20 euros today.\n"
        "    Thank you.\n"
        "answer:\n"
        "    You pay 20 euros today.\n"
        "    Thank you.\n"
        "checks:\n"
        "    - contains: 10 euros\n"
        "      # fail: '10 euros' is not in 'You pay 20 euros today.…'\n"
        "\n"
        "$0, 1 in + 1 out tokens, finish reason stop, <when>\n"
        "answer <short>, question <short>, test <short>, model <short>, judging version <short>\n",
        "",
    )


def test_a_check_with_not_is_told_from_another_of_its_type(
    echo: Echo, evalstore: Evalstore, documents: Any
) -> None:
    write("You pay 10 euros today.", "10 euros\n- {contains: '**', not: true}")
    evalstore("run", "-q")
    shown = evalstore("show", "tests/t.md").stdout
    assert "    pass  contains\n    pass  not contains\n" in shown
    (made,) = documents("show", "tests/t.md")["judgements"]
    judgement = evalstore("show", made["judgement"]).stdout
    assert "    pass  contains\n    pass  not contains\n" in judgement
    evalstore("report", "@", "-o", "report.html")
    assert '"not contains"' in Path("report.html").read_text(encoding="utf-8")


def test_a_run_ends_with_the_command_that_shows_the_first_failure(
    workspace: Path, evalstore: Evalstore
) -> None:
    edit(workspace / "tests/weather.md", "Oslo", '"Oslo in the snow"')
    hint = evalstore("run").stderr
    match = re.search(r'use "evalstore (.*?)" to see why', hint)
    assert match
    assert match[1] == "show 'tests/weather.md::city=Oslo in the snow'"
    shown = evalstore("show", "tests/weather.md::city=Oslo in the snow").stdout
    assert "\nfail  tests/weather.md [city=Oslo in the snow]  scripted/one\n" in shown


def test_the_author_and_the_commit_of_the_first_failing_run_are_reported(
    echo: Echo, evalstore: Evalstore
) -> None:
    write()
    for command in (
        ["init", "-q"],
        ["config", "user.name", "Ada"],
        ["config", "user.email", "ada@example.org"],
        ["add", "."],
        ["commit", "-qm", "first"],
    ):
        subprocess.run(["git", *command], check=True)
    write("20 euros")
    evalstore("run", "-q")
    (line, *_) = history(evalstore, "tests/t.md")
    assert line == (
        "failing since run <short> (<when>, Ada, git <short> + changes), "
        "the first run that judged it"
    )


HOT = {
    "models/judge.yaml": JUDGE.replace(
        "provider", "evaluatorOverrides: {temperature: 0.5}\nprovider"
    ).replace("pass: true", "pass: false")
}
COLD = {
    "models/one.yaml": ONE.replace("Warm.", "Cold.").replace(
        "costs", "candidateOverrides: {temperature: 0.7}\nextraIdentifier: b\ncosts"
    ),
}
STRICT = {"tests/weather.md": WEATHER.replace("be warm", "be warm and wet")}
HARSH = {
    "models/judge.yaml": JUDGE.replace(
        "responses:", "responses:\n  - {when: wet, answer: {pass: false}}"
    )
}


@pytest.mark.parametrize(
    ("files", "changes"),
    [
        pytest.param(
            {**STRICT, **HARSH},
            [
                "  instructions changed",
                "    - The answer must be warm.",
                "    + The answer must be warm{+ and wet+}.",
            ],
            id="instructions",
        ),
        pytest.param(
            COLD,
            [
                "  model extraIdentifier: not set -> b",
                "  temperature none -> 0.7",
            ],
            id="model",
        ),
        pytest.param(HOT, ["  judge temperature none -> 0.5"], id="judge"),
    ],
)
def test_what_changed_when_the_case_began_to_fail(
    workspace: Path, evalstore: Evalstore, files: dict[str, str], changes: list[str]
) -> None:
    evalstore("run", "-q")
    tree(workspace, files)
    evalstore("run", "-q")
    assert history(evalstore, "tests/weather.md::Rome") == [
        "broken since run <short> (<when>)",
        "last passed in run <short> (<when>)",
        "what changed in between:",
        *changes,
    ]


REPEATED = """\
---
repetitions: 3
---

# 👤

Hi

---

~~~checks
- {expr: 'len(answers) == 3', scope: case}
~~~
"""


def test_another_number_of_repetitions_is_reported(echo: Echo, evalstore: Evalstore) -> None:
    tree(Path(), {"tests/t.md": REPEATED})
    evalstore("run", "-q")
    edit(Path("tests/t.md"), "repetitions: 3", "repetitions: 2")
    evalstore("run", "-q")
    lines = history(evalstore, "tests/t.md")
    assert lines[:2] == [
        "broken since run <short> (<when>)",
        "last passed in run <short> (<when>)",
    ]
    assert lines[3] == "  test changed"
    assert lines[-2:] == ["    - (held [-3-] times)", "    + (held {+2+} times)"]


def flipping(echo: Echo, *words: str) -> None:
    """Let the model answer with these words, one after the other."""
    answers = itertools.cycle(words)
    echo.reply = lambda _text: next(answers)


def test_another_answer_to_the_same_question_is_reported_with_the_flip_rate(
    echo: Echo, evalstore: Evalstore
) -> None:
    write("How?", "warm")
    flipping(echo, "It is warm.", "It is cold.")
    for _ in range(4):
        evalstore("run", "-q", "--refresh")
    assert history(evalstore, "tests/t.md") == [
        "broken since run <short> (<when>)",
        "last passed in run <short> (<when>)",
        "what changed in between:",
        "  same question, asked again",
        "    - It is [-warm-].",
        "    + It is {+cold+}.",
        "this version: 2 of the last 4 verdicts passed, 3 changes "
        "(newest first: fail, pass, fail, pass)",
    ]


def test_what_changed_since_the_first_run_of_a_case_that_always_passed_is_told(
    echo: Echo, evalstore: Evalstore
) -> None:
    write("You pay 10 euros today.")
    evalstore("run", "-q")
    write("You pay 10 euros tomorrow.")
    evalstore("run", "-q")
    assert history(evalstore, "tests/t.md")[:3] == [
        "passing since run <short> (<when>), the first run that judged it",
        "what changed since then, up to run <short> (<when>):",
        "  test changed",
    ]


def test_an_answer_that_is_reused_is_counted_once(echo: Echo, evalstore: Evalstore) -> None:
    write("20 euros")
    for _ in range(3):
        evalstore("run", "-q")
    assert history(evalstore, "tests/t.md") == [
        "failing since run <short> (<when>), the first run that judged it",
    ]


def test_the_oldest_of_the_failing_runs_is_named(
    echo: Echo, evalstore: Evalstore, documents: Any
) -> None:
    write()
    passed = documents("run")["run"]
    write("20 euros")
    failed = [documents("run", *argv)["run"] for argv in ((), ("--refresh",), ())]
    write("30 euros")
    evalstore("run", "-q")
    document = documents("show", "tests/t.md")["history"]
    assert document["since"]["run"] == failed[0]
    assert document["before"]["run"] == passed
    assert [change["text"] for change in document["changes"]] == ["test changed"]


def test_attempts_count_one_by_one(echo: Echo, evalstore: Evalstore, documents: Any) -> None:
    write("How?", "warm")
    edit(Path("tests/t.md"), "# 👤", "---\nattempts: 3\n---\n\n# 👤")
    flipping(echo, "cold", "warm", "cold")
    ran = evalstore("run", "-q")
    assert "fail       tests/t.md  scripted/one  <short>  2 of 3 attempts fail\n" in ran.stdout
    assert section(evalstore("show", "tests/t.md").stdout, "attempts") == [
        "2 of 3 attempts fail",
        "  fail  <short>  (shown above)",
        "  pass  <short>",
        "  fail  <short>",
    ]
    shown = documents("show", "tests/t.md")
    assert shown["history"]["verdicts"] == ["fail", "pass", "fail"]
    assert (shown["history"]["judged"], shown["history"]["passed"]) == (3, 1)
    assert shown["answer"] == "cold"
    attempts = shown["history"]["attempts"]
    assert [attempt["verdict"] for attempt in attempts] == ["fail", "pass", "fail"]
    assert attempts[0]["sessions"] == [shown["session"]]
    assert documents("show", shown["session"])["related"]["history"]["attempts"] == attempts
    jsonschema.Draft202012Validator(schema_of(["show"])).validate(shown)


def test_a_label_is_reported_and_makes_no_other_sample(echo: Echo, evalstore: Evalstore) -> None:
    write("20 euros")
    evalstore("run", "-q")
    evalstore("label", "tests/t.md", "pass", "--as", "Ada")
    assert history(evalstore, "@work:tests/t.md::") == [
        "passing now, in the workspace",
        "last failed in run <short> (<when>)",
        "what changed in between:",
        "  labelled by Ada",
        "this version: judged once, pass by a label (fail without it)",
    ]
    assert "\nfail  tests/t.md  " in evalstore("show", "@:tests/t.md::").stdout
    assert "\npass  tests/t.md  " in evalstore("show", "tests/t.md").stdout


def test_the_search_is_bounded_and_says_so(
    echo: Echo, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for amount in ("10", "20", "30", "40"):
        write(f"{amount} euros")
        evalstore("run", "-q")
    assert history(evalstore, "tests/t.md")[1] == "last passed in run <short> (<when>)"
    monkeypatch.setattr(result_history, "RUNS_SEARCHED", 2)
    (line, *_) = history(evalstore, "tests/t.md")
    assert line == "failing since run <short> (<when>), the oldest of the 3 runs searched"


def test_many_results_end_the_search(
    echo: Echo, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for amount in ("10", "20", "30"):
        write(f"{amount} euros")
        evalstore("run", "-q")
    monkeypatch.setattr(result_history, "_MOST_CELLS", 1)
    (line, *_) = history(evalstore, "tests/t.md")
    assert line.endswith("searched")


def test_a_file_that_was_renamed_keeps_its_history(echo: Echo, evalstore: Evalstore) -> None:
    write()
    evalstore("run", "-q")
    Path("tests/t.md").rename("tests/u.md")
    evalstore("run", "-q")
    write("20 euros", file="tests/u.md")
    evalstore("run", "-q")
    assert history(evalstore, "tests/u.md")[1] == "last passed in run <short> (<when>)"


def test_a_run_of_other_cases_hides_nothing(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run", "-q")
    evalstore("run", "-q", "tests/weather.md::city=Rome")
    assert "\nfail  tests/weather.md [city=Oslo]  scripted/one\n" in (
        evalstore("show", "tests/weather.md::Oslo").stdout
    )


def test_a_run_is_named_before_the_case(echo: Echo, evalstore: Evalstore) -> None:
    write()
    evalstore("run", "-q")
    write("20 euros")
    evalstore("run", "-q")
    for revision, verdict in (("", "fail"), ("@:", "fail"), ("@~1:", "pass"), ("@work:", "fail")):
        shown = evalstore("show", f"{revision}tests/t.md::").stdout
        assert shown.splitlines()[1] == f"{verdict}  tests/t.md  scripted/one"


# --- groups and several system prompts


def test_the_page_of_a_group_shows_every_member_and_what_was_expected(
    echo: Echo, evalstore: Evalstore
) -> None:
    tree(Path(), {"tests/t.md": GROUP})
    echo.reply = lambda text: "Cold." if "Oslo" in text else "Warm."
    evalstore("run", "-q")
    shown = evalstore("show", "tests/t.md").stdout
    start = shown.index("\n") + 1
    page = re.sub(r"history:\n(    .*\n)+", "", shown[start:])
    assert page[: page.index("\n$0")] == (
        "fail  tests/t.md  scripted/one\n"
        "fail  by checks  <when>  <short>  2 judged together\n"
        "    fail  allEqual: expected equal answers: answer 1 is 'Cold.', answer 2 is 'Warm.'\n"
        "where it differs:\n"
        "    allEqual  at answer 2, line 1, column 1  (compared with answer 1)\n"
        "      expected  Cold.\n"
        "      found     Warm.\n"
        "\n"
        "user: How is Oslo?\n"
        "answer: Cold.\n"
        "judged together:\n"
        "  How is Oslo?\n"
        "  ▸ 1  <short>  Cold.\n"
        "  How is Rome?\n"
        "    2  <short>  Warm.\n"
        "checks:\n"
        "    - allEqual: {scope: group}\n"
        "      # fail: expected equal answers: answer 1 is 'Cold.', answer 2 is 'Warm.'\n"
    )


@pytest.fixture
def prompted(echo: Echo, evalstore: Evalstore) -> Evalstore:
    """A case with three system prompts, of which one fails."""
    write("How?", "warm")
    edit(Path("tests/t.md"), "# 👤", "---\nsystemPrompts: [brief, kind, null]\n---\n\n# 👤")
    for name in ("brief", "kind"):
        tree(Path(), {f"prompts/{name}.md": f"Be {name}.\n"})
    words = iter(("warm", "cold", "warm"))
    echo.reply = lambda _text: next(words)
    evalstore("run", "-q", "-j", "1")
    return evalstore


def test_the_system_prompt_that_fails_is_shown_and_the_others_are_named(
    prompted: Evalstore,
) -> None:
    shown = prompted("show", "tests/t.md").stdout
    (failing,) = re.findall(r"^fail  tests/t\.md \((.*)\)  scripted/one$", shown, re.MULTILINE)
    others = section(shown, "other results of this case")
    assert len(others) == 2
    names = {"brief", "kind", "no prompt"} - {failing}
    assert {line.split("  ")[1] for line in others} == {f"({name})" for name in names}
    assert all(line.startswith("pass  ") for line in others)


def test_an_edit_since_the_shown_run_is_told_with_the_reason_of_the_status(
    prompted: Evalstore, documents: Any
) -> None:
    tree(Path(), {"prompts/kind.md": "Be very kind.\n"})
    reason = "system prompt kind changed: line 1: Be kind. -> Be very kind."
    assert reason in prompted("status").stdout
    line = f"a run would ask it again: {reason}\n"
    assert line in prompted("show", "tests/t.md", "--prompt", "kind").stdout
    for argv in (("tests/t.md", "--prompt", "brief"), ("@:tests/t.md::", "--prompt", "kind")):
        assert "a run would" not in prompted("show", *argv).stdout
    edit(Path("tests/t.md"), "contains: warm", "contains: hot")
    document = documents("show", "tests/t.md", "--prompt", "brief")
    jsonschema.Draft202012Validator(schema_of(["show"])).validate(document)
    assert document["planned"] == {
        "kind": "judge",
        "reason": "check 1 changed: contains: warm -> hot",
    }
    tree(Path(), {"tests/t.md": "---\nsystemPrompts: [\n"})  # with an error of a file as before
    assert "a run would" not in prompted("show", "tests/t.md", "--prompt", "kind").stdout


def test_a_shown_case_names_its_run_when_its_test_has_changed_since(
    echo: Echo, evalstore: Evalstore
) -> None:
    def lines(*argv: str) -> list[str]:
        shown = evalstore("show", *argv).stdout.splitlines()
        return [line for line in shown if line.startswith("as in run ")]

    write()
    evalstore("run", "-q")
    assert not lines("tests/t.md")
    edit(Path("tests/t.md"), "10 euros", "20 euros")
    assert lines("tests/t.md") == ["as in run <short>, the test has changed since"]
    assert not lines("@:tests/t.md::")
    tree(Path(), {"tests/t.md": "# 👤\n"})
    assert lines("tests/t.md") == ["as in run <short>, the test file has errors now"]
    Path("tests/t.md").unlink()
    assert lines("tests/t.md") == ["as in run <short>, the test file was removed since"]
    write()
    assert not lines("tests/t.md")
    evalstore("run", "-q")
    edit(Path("tests/t.md"), "contains: 10 euros", "contains: euros")
    assert lines("tests/t.md") == ["as in run <short>, the test has changed since"]


def test_a_shown_case_without_an_answer_names_its_run_when_its_test_has_changed_since(
    echo: Echo, evalstore: Evalstore
) -> None:
    echo.failing = "euros"
    write()
    evalstore("run", "-q")
    edit(Path("tests/t.md"), "# 👤\n\n10 euros", "# 👤\n\n20 euros")
    shown = evalstore("show", "tests/t.md").stdout
    assert "\nas in run <short>, the test has changed since\n" in shown


def test_a_shown_file_with_several_cases_names_what_became_of_it(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q")
    first = "tests/weather.md in run <short>"
    assert (
        evalstore("show", "tests/weather.md", "-m", "scripted/one").stdout.splitlines()[1] == first
    )
    edit(workspace / "tests/weather.md", "Rome", "Roma")
    for argv in (("tests/weather.md", "-m", "scripted/one"), ("tests/weather.md",)):
        second = evalstore("show", *argv).stdout.splitlines()[1]
        assert second == f"{first}, its cases have changed since"
    assert evalstore("show", "@:tests/weather.md").stdout.splitlines()[1] == first
    row = evalstore("show", "tests/weather.md::city=Rome").stdout
    assert "\nas in run <short>, the row was removed since\n" in row
    evalstore("run", "-q")
    assert evalstore("show", "tests/weather.md::city=Rome", "-m", "scripted/one").stdout == row
    assert evalstore("show", "tests/weather.md [city=Rome]").stdout == row
    roma = evalstore("show", "tests/weather.md::city=Roma").stdout
    assert roma.splitlines()[1] == "pass  tests/weather.md [city=Roma]  scripted/one"


@pytest.mark.parametrize("name", ["brief", "kind", "no prompt"])
def test_a_system_prompt_can_be_named(prompted: Evalstore, name: str) -> None:
    line = re.compile(rf"^(pass|fail)  tests/t\.md \({name}\)  scripted/one$", re.MULTILINE)
    for argv in (("tests/t.md", "--prompt", name), (f"tests/t.md ({name})",)):
        assert line.search(prompted("show", *argv).stdout)


def test_the_hint_of_a_run_names_the_system_prompt(prompted: Evalstore) -> None:
    hint = prompted("run", "--all").stderr
    assert re.search(
        r"evalstore show tests/t\.md --prompt ('no prompt'|brief|kind)\" to see why", hint
    )


def test_a_file_with_several_cases_has_the_results_of_one_candidate_or_prompt(
    workspace: Path, documents: Any, evalstore: Evalstore
) -> None:
    script = ONE.replace("scripted/one", "scripted/two").replace("Cold.", "Not warm.")
    tree(workspace, {"models/two.yaml": script, "prompts/brief.md": "Be brief.\n"})
    edit(workspace / "evalstore.yaml", "[scripted/one]", "[scripted/one, scripted/two]")
    test = workspace / "tests/weather.md"
    test.write_text(WEATHER.replace("---\n", "---\nsystemPrompts: [brief, null]\n", 1))
    evalstore("run", "-q", "-y")
    shown = evalstore("show", "tests/weather.md", "-m", "scripted/one")
    assert re.findall(
        r"^(\w+)  tests/.*?(\w+=\w+)\] \((.*)\) +(\S+)", shown.stdout, re.MULTILINE
    ) == [
        (verdict, f"city={city}", prompt, "scripted/one")
        for verdict, city in (("fail", "Oslo"), ("pass", "Rome"))
        for prompt in ("brief", "no prompt")
    ]
    assert "-m scripted/one --prompt" in shown.stderr
    named = "show", "tests/weather.md", "-m", "scripted/two", "--prompt", "brief"
    results = documents(*named)["related"]["results"]
    assert [(result["row"], result["model"], bool(result["prompt"])) for result in results] == [
        ("city=Oslo", "scripted/two", True),
        ("city=Rome", "scripted/two", True),
    ]
    assert len(documents("show", "tests/weather.md")["related"]["results"]) == 8


# --- errors


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ("tests/weather.md", "-m", "scripted/two"),
            "error: 'scripted/two' has no result for 'tests/weather.md'\n"
            "hint: did you mean 'scripted/one'?\n",
        ),
        (
            ("tests/weather.md::Lima",),
            "error: no row is called 'tests/weather.md::Lima'\n"
            "hint: the rows are city=Oslo, city=Rome\n",
        ),
        (
            ("tests/weather.md::Oslo", "-m", "scripted/two"),
            "error: 'scripted/two' has no result for 'tests/weather.md::Oslo'\n"
            "hint: did you mean 'scripted/one'?\n",
        ),
        (
            ("tests/weather.md::Oslo", "--prompt", "brief"),
            "error: no system prompt is called 'brief'\nhint: name one with --prompt: no prompt\n",
        ),
        (
            ("@", "--prompt", "brief"),
            "error: '--model' and '--prompt' select among the results of a case\n"
            "hint: write FILE, FILE::ROW or REV:FILE, or leave them out\n",
        ),
        (
            ("tests/wether.md",),
            "error: run <short> has no test file 'tests/wether.md'\n"
            "hint: did you mean 'tests/weather.md'?\n",
        ),
    ],
)
def test_a_case_that_is_not_there(
    workspace: Path, evalstore: Evalstore, argv: tuple[str, ...], message: str
) -> None:
    evalstore("run", "-q")
    ran = evalstore("show", *argv)
    assert (ran.exit_code, ran.stderr) == (5 if "no row" in message else 2, message)


def test_a_case_without_a_result_says_how_to_get_one(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run", "-q", "tests/weather.md::Rome")
    ran = evalstore("show", "tests/weather.md::Oslo")
    assert ran.stderr == (
        "error: 'tests/weather.md::Oslo' has no result in the newest 1 runs\n"
        "hint: 'evalstore run' asks for answers; '@work:FILE::ROW' shows the workspace\n"
    )


# --- looks


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_page_fits_the_terminal(
    echo: Echo, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    write("You pay ten euros for each hour begun. " * 5, "twenty euros for each hour begun. " * 5)
    evalstore("run", "-q")
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = evalstore("show", "tests/t.md").stdout.splitlines()
    assert max(map(columns_of, lines)) <= columns
    words = " ".join(lines).split()
    assert words.count("begun.") >= 10


def test_a_page_in_a_file_is_not_wrapped(echo: Echo, evalstore: Evalstore) -> None:
    text = "You pay ten euros for each hour begun. " * 5
    write(text.strip())
    evalstore("run", "-q")
    assert f"\nanswer: {text.strip()}\n" in evalstore("show", "tests/t.md").stdout


def test_a_judgement_is_shown_with_its_checks(
    echo: Echo, evalstore: Evalstore, documents: Any
) -> None:
    write("20 euros")
    evalstore("run", "-q")
    (judgement,) = documents("show", "tests/t.md")["judgements"]
    shown = evalstore("show", judgement["judgement"]).stdout
    assert shown.startswith("verdict <short>  <when>\nfail  by checks  <when>  <short>\n")
    assert "\n    fail  contains: " in shown


def test_the_json_has_what_the_page_has(echo: Echo, evalstore: Evalstore, documents: Any) -> None:
    write()
    evalstore("run", "-q")
    write("20 euros")
    evalstore("run", "-q")
    document = documents("show", "tests/t.md")
    assert (document["format"], document["kind"], document["verdict"]) == (1, "case", "fail")
    assert document["conversation"] == [
        {"role": "user", "text": "20 euros"},
        {"role": "assistant", "text": "20 euros"},
    ]
    assert document["failedChecks"] == [
        {
            "check": "contains",
            "feedback": "'10 euros' is not in '20 euros'",
            "difference": {
                "expected": "10 euros",
                "found": "20 euros",
                "place": "line 1, column 1",
                "note": "",
            },
        }
    ]
    assert document["history"]["changes"] == [
        {"text": "test changed", "lines": [" user:", "-10 euros", "+20 euros"]}
    ]
    session = documents("show", document["session"])
    assert session["related"]["history"] == document["history"]
    assert session["related"]["failedChecks"] == document["failedChecks"]


@pytest.mark.parametrize(
    ("answer", "expected", "lines"),
    [
        (
            "Take a GU10 Bulb.",
            "take an E27 BULB",
            ["  expected  take an E27 BULB", "  found     Take a GU10 Bulb"],
        ),
        ("Take a candle.", "E27", ["  expected  E27"]),
    ],
)
def test_texts_are_in_their_own_case_where_it_is_ignored(
    echo: Echo, evalstore: Evalstore, answer: str, expected: str, lines: list[str]
) -> None:
    write(answer, f"{{expected: {expected}, ignoreCase: true}}")
    evalstore("run", "-q")
    assert section(evalstore("show", "tests/t.md").stdout, "where it differs")[1:] == lines


def test_the_first_failed_checks_alone_are_compared_again(
    echo: Echo, evalstore: Evalstore, documents: Any
) -> None:
    checks = "\n- ".join(f"contains: {number} euros" for number in range(10, 40))
    tree(Path(), {"tests/t.md": CHECK.format(asked="5 euros", expected="9 euros\n- " + checks)})
    evalstore("run", "-q")
    document = documents("show", "tests/t.md")
    located = [check["difference"] is not None for check in document["failedChecks"]]
    assert located == [True] * 20 + [False] * 11


def test_no_escape_sequence_of_an_answer_or_of_a_test_reaches_the_terminal(
    echo: Echo, evalstore: Evalstore
) -> None:
    write("10 \\x1b[31meuros \x07now")
    evalstore("run", "-q")
    write("20 \x07euros\u202e now", "10 \x07euros")
    echo.reply = lambda text: f"{text}\x1b[31m [bold]"
    evalstore("run", "-q")
    shown = evalstore("show", "tests/t.md").stdout
    assert section(shown, "where it differs")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", shown)


def test_the_document_of_a_case_follows_the_schema(
    echo: Echo, evalstore: Evalstore, documents: Any
) -> None:
    write()
    evalstore("run", "-q")
    write("20 euros")
    evalstore("run", "-q")
    document = documents("show", "tests/t.md")
    jsonschema.Draft202012Validator(schema_of(["show"])).validate(document)
    document["history"]["flips"] = "often"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema_of(["show"])).validate(document)


def test_a_candidate_of_now_is_preferred_to_one_that_was_removed(
    echo: Echo, evalstore: Evalstore, documents: Any
) -> None:
    """Without `-m`; the results of the removed one are listed, and shown when it is named."""
    write("How?", "warm")
    model = Path("models/one.yaml").read_text()
    tree(Path(), {"models/old.yaml": model.replace("scripted/one", "scripted/old")})
    edit(Path("evalstore.yaml"), "[scripted/one]", "[scripted/old, scripted/one]")
    evalstore("run", "-q")
    assert documents("show", "tests/t.md")["model"] == "scripted/old"
    edit(Path("evalstore.yaml"), "[scripted/old, scripted/one]", "[scripted/one]")
    assert documents("show", "tests/t.md")["model"] == "scripted/one"
    shown = evalstore("show", "tests/t.md").stdout
    assert section(shown, "other results of this case") == ["fail  scripted/old  <short>"]
    old = evalstore("show", "tests/t.md", "-m", "scripted/old").stdout
    assert "\nfail  tests/t.md  scripted/old\n" in old
    assert documents("show", "@:tests/t.md::")["model"] == "scripted/old"


def test_a_comment_of_a_check_is_one_on_each_line(
    echo: Echo, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a terminal is narrow, so that the checks can be copied."""
    write("How long?", "a rather long sentence that nobody has written in any answer")
    evalstore("run", "-q")
    monkeypatch.setenv("COLUMNS", "60")
    shown = evalstore("show", "tests/t.md").stdout
    checks = shown.partition("\nchecks:\n")[2].partition("\n\n")[0].splitlines()
    first = next(number for number, line in enumerate(checks) if "# fail" in line)
    assert len(checks) > first + 1
    assert all(line.startswith("      # ") for line in checks[first:])


def test_the_document_of_a_session_reads_it_once(
    echo: Echo, evalstore: Evalstore, documents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write()
    session = documents("run")["cases"][0]["session"]
    read = Store.find_sessions
    asked: list[list[str]] = []

    def counted(store: Store, ids: Iterable[str]) -> Any:
        asked.append(list(ids))
        return read(store, asked[-1])

    monkeypatch.setattr(Store, "find_sessions", counted)
    documents("show", session)
    assert asked.count([session]) == 1
