"""What is printed where GitHub Actions runs the program, and the report as Markdown."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalstore import __version__
from evalstore.core.errors import Problem
from evalstore.exchange.exports.formats import code_block, code_span
from evalstore.exchange.markdown_report import Annotation, sarif_log
from tests.builders import tree
from tests.interfaces.cli.export.test_export import ASKED, HOSTILE

if TYPE_CHECKING:
    from tests.interfaces.cli.conftest import Echo, Evalstore

pytestmark = pytest.mark.extended


@pytest.fixture
def summary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file of the step's summary; the program runs as a step."""
    path = tmp_path / "summary.md"
    path.write_text("before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    return path


def commands(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.lstrip().startswith("::")]


def test_a_failure_is_an_annotation_on_the_line_of_its_row(
    workspace: Path, evalstore: Evalstore, summary: Path
) -> None:
    ran = evalstore("run")
    assert commands(ran.stdout) == []
    assert commands(ran.stderr) == [
        "::error file=w/tests/weather.md,line=4,title=fail%3A tests/weather.md [city=Oslo]%2C "
        "scripted/one::It is cold there."
    ]
    text = summary.read_text(encoding="utf-8")
    assert text.startswith(
        "before\n### evalstore: 1 of 2 results fails. `one` passes 50%. The run cost $0.06"
    )


def test_a_row_with_a_long_id_is_found_in_its_file(
    echo: Echo, evalstore: Evalstore, summary: Path
) -> None:
    rows = [f"  - {{nr: a long name that differs in the middle {n} of it, q: {n}}}\n" for n in "ab"]
    head = f"---\nrowId: nr\nreplacements:\n{''.join(rows)}---\n\n"
    tree(Path.cwd(), {"tests/q.md": head + ASKED.replace("Question", "{{q}}")})
    printed = commands(evalstore("run").stderr)
    assert [re.findall(r"line=\d+", line) for line in printed] == [["line=4"], ["line=5"]]


def test_nothing_is_added_elsewhere(
    workspace: Path, evalstore: Evalstore, summary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS")
    ran = evalstore("run")
    assert commands(ran.stderr) == []
    assert summary.read_text(encoding="utf-8") == "before\n"


def test_stdout_stays_json(workspace: Path, evalstore: Evalstore, summary: Path) -> None:
    ran = evalstore("run", "--json")
    assert ran.stdout.startswith("{")
    assert ran.stdout.endswith("}\n")
    assert len(commands(ran.stderr)) == 1


def test_there_are_no_more_than_github_shows(
    echo: Echo, evalstore: Evalstore, summary: Path
) -> None:
    tree(Path.cwd(), {f"tests/{number:02}.md": ASKED for number in range(12)})
    printed = commands(evalstore("run").stderr)
    assert [line.split()[0] for line in printed] == ["::error"] * 10 + ["::notice"]
    assert printed[-1] == "::notice title=evalstore::2 more failures in the log"
    assert printed[0].startswith("::error file=echo/tests/00.md,line=1,title=fail%3A")


def test_what_broke_comes_first_and_failed_calls_are_warnings(
    echo: Echo, evalstore: Evalstore, summary: Path
) -> None:
    asked = ASKED.replace("needle", "Question")
    tree(Path.cwd(), {"tests/a.md": ASKED, "tests/b.md": asked})
    evalstore("run")
    (Path.cwd() / "tests/b.md").write_text(ASKED.replace("Question", "Else"), encoding="utf-8")
    tree(Path.cwd(), {"tests/c.md": ASKED.replace("Question", "Third")})
    echo.failing = "Third"
    printed = commands(evalstore("run").stderr)
    assert [re.sub("::.*", "", line.removeprefix("::")) for line in printed] == [
        "error file=echo/tests/b.md,line=1,title=broke%3A tests/b.md%2C scripted/one",
        "error file=echo/tests/a.md,line=1,title=fail%3A tests/a.md%2C scripted/one",
        "warning title=evalstore%3A 1 call failed",
    ]


def test_check_annotates_problems(workspace: Path, evalstore: Evalstore, summary: Path) -> None:
    tree(workspace, {"tests/bad.md": "---\ntag: x\n---\n# 👤\n\nHi\n\n---\n\nBe kind.\n"})
    ran = evalstore("check")
    assert ran.exit_code == 2
    (command,) = commands(ran.stderr)
    assert command.startswith("::error file=w/tests/bad.md,line=2,title=evalstore::")


def test_check_annotates_problems_of_the_settings(
    workspace: Path, evalstore: Evalstore, summary: Path
) -> None:
    tree(workspace, {"evalstore.yaml": "candidates: [\n"})
    ran = evalstore("check")
    assert ran.exit_code == 2
    assert [line.partition(",")[0] for line in commands(ran.stderr)] == [
        "::error file=w/evalstore.yaml"
    ]
    assert "nothing was done" not in ran.stderr


SARIF_RULES = [
    {
        "id": id,
        "shortDescription": {"text": text},
        "fullDescription": {"text": text},
        "help": {
            "text": "`evalstore check` prints the same problems with their hints. "
            "Correct the file at this line."
        },
        "defaultConfiguration": {"level": level},
    }
    for id, level, text in (
        ("file-error", "error", "A file has an error, so its tests cannot run."),
        ("file-warning", "warning", "A file has something that is probably not meant."),
    )
]


def test_check_prints_problems_as_sarif(
    workspace: Path, evalstore: Evalstore, summary: Path
) -> None:
    bad = "---\ntags: [a]\ntag: x\n---\n# 👤\n\nHi\n\n---\n\nBe kind.\n"
    tree(workspace, {"tests/b d.md": bad, "tests/none.md": "# 👤\n\nHi\n\n---\n"})
    ran = evalstore("-C", "tests", "check", "--format", "sarif")
    log = json.loads(ran.stdout)
    (run,) = log["runs"]
    driver = {"name": "evalstore", "version": __version__, "rules": SARIF_RULES}
    assert (ran.exit_code, log["version"], run["tool"]["driver"]) == (2, "2.1.0", driver)
    assert [
        (
            result["ruleId"],
            result["level"],
            result["message"]["text"],
            result["locations"][0]["physicalLocation"],
        )
        for result in run["results"]
    ] == [
        (
            "file-error",
            "error",
            "unknown field 'tag'\ndid you mean 'tags'?",
            {
                "artifactLocation": {"uri": "w/tests/b%20d.md"},
                "region": {"startLine": 3},
            },
        ),
        (
            "file-warning",
            "warning",
            "nothing below '---' says how to judge the answer, so it is never judged\n"
            "write the instructions for the judge below the line '---'",
            {"artifactLocation": {"uri": "w/tests/none.md"}, "region": {"startLine": 1}},
        ),
    ]


def test_sarif_of_a_workspace_without_problems_has_no_results(
    workspace: Path, evalstore: Evalstore
) -> None:
    ran = evalstore("check", "--format", "sarif")
    assert (ran.exit_code, json.loads(ran.stdout)["runs"][0]["results"]) == (0, [])


def test_sarif_has_escapes_for_control_characters_and_odd_paths(tmp_path: Path) -> None:
    problem = Problem("tests/\udcff#.md", "a\x1b[31m", 2, 7, severity="warning")
    (result,) = sarif_log([problem], tmp_path)["runs"][0]["results"]
    assert result["message"]["text"] == "a\\x1b[31m"
    place = result["locations"][0]["physicalLocation"]
    assert place == {
        "artifactLocation": {"uri": "tests/%FF%23.md"},
        "region": {"startLine": 2, "startColumn": 7},
    }


def test_sarif_and_json_are_not_printed_together(workspace: Path, evalstore: Evalstore) -> None:
    ran = evalstore("check", "--format", "sarif", "--json")
    assert (ran.exit_code, ran.stderr) == (
        2,
        "error: '--format' cannot be combined with '--json' or '--output'\n",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("100%\r\na::b", "100%25\\r%0Aa::b"),
        ("::stop-commands::x\n::add-mask::y", "::stop-commands::x%0A::add-mask::y"),
        ("a\x1b[31m", "a\\x1b[31m"),
    ],
)
def test_messages_are_escaped(text: str, expected: str) -> None:
    assert Annotation("error", "t", text).command == f"::error title=t::{expected}"


def test_properties_are_escaped() -> None:
    command = Annotation("error", "a,b:c%\n", "m", "tests/x,line=1::y.md", 3).command
    assert command == ("::error file=tests/x%2Cline=1%3A%3Ay.md,line=3,title=a%2Cb%3Ac%25%0A::m")


INJECTED = "wrong\n::add-mask::a\n  ::error file=x::y\n##[command]z and ##[group]"


def test_a_model_gives_the_runner_no_commands(
    echo: Echo, evalstore: Evalstore, summary: Path
) -> None:
    echo.reply = lambda _text: INJECTED
    tree(Path.cwd(), {"tests/a.md": ASKED, "tests/::error::b.md": ASKED})
    for command in (
        ("run", "--all", "-v"),
        ("show", "@"),
        ("show", "@:tests/a.md"),
        ("diff", "@", "@work"),
    ):
        ran = evalstore(*command)
        told = [line for line in commands(ran.stderr) if not line.startswith("::error file=echo/")]
        assert (commands(ran.stdout), told) == ([], []), command
        assert "##[" not in ran.stdout, command


def test_a_summary_that_cannot_be_written_is_a_warning(
    workspace: Path, evalstore: Evalstore, summary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(workspace))
    ran = evalstore("run")
    assert ran.exit_code == 1
    assert "warning: the summary of the step is not written: " in ran.stderr


# --- the report

OSLO = """\
- **`tests/weather.md [city=Oslo]`** `scripted/one`: fail

  ```text
  It is cold there.
  ```

"""


TOO_FEW = "the pass rate of one row changed: too few rows to test significance"


def test_the_report_says_what_broke_why_and_what_it_cost(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    model = workspace / "models/one.yaml"
    text = model.read_text(encoding="utf-8")
    model.write_text(text.replace("answer: Warm.", "answer: Cold."), encoding="utf-8")
    evalstore("run", "--refresh")
    ran = evalstore("report", "--markdown")
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert (
        re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "<time>", ran.stdout)
        == f"""\
### evalstore: `one` got worse, 50% to 0% (may be chance); 1 result broke, none fixed. \
The run cost $0.0600 (simulated).

Run `<short>` (<time>) is complete: 2 new answers, 2 new verdicts, \
with `--refresh (all cases)`, compared with `<short>`.

| candidate | passed | 95% interval | results | change | 100 answers |
|---|---:|---:|---:|---:|---:|
| `scripted/one` | 0.0% | 0.0% to 65.8% | 0 of 2 | -50.0 | $3.00 |

2 of 2 results fail (1 broke in the last 10 runs).

#### Broke

- **`tests/weather.md [city=Rome]`** `scripted/one`: pass -> fail (asked again)

  ```text
  It is cold there.
  ```

#### Since run `<short>`

- 1 broke, 1 unchanged
- pass rate 50.0% -> 0.0% (2 results in 1 file, judged on both sides)
- -50.0 points (no interval: too wide with 2 rows); {TOO_FEW}

#### Cost

- `scripted/one`: 2 calls, $0.0600 simulated
- `scripted/judge` (judging): 2 calls, $0

All runs up to this one cost $0.1200 simulated (answers $0.1200, judging $0).
"""
    )


def test_the_report_says_what_reuse_saved(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    evalstore("run")
    text = evalstore("report", "--markdown").stdout
    assert text.startswith("### evalstore: Nothing broke or was fixed. `one` passes 50%.\n")
    assert "\nReuse saved $0.0600 simulated.\n" in text


def test_the_first_run_is_compared_with_nothing_and_lists_its_failures(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    text = evalstore("report", "--markdown").stdout
    assert text.startswith("### evalstore: 1 of 2 results fails. ")
    assert OSLO in text.partition("#### Not passing\n\n")[2]
    assert "noise" not in text


def test_new_cases_that_fail_are_listed_with_their_feedback(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    for name in ("tests/other.md", "tests/third.md"):
        tree(workspace, {name: (workspace / "tests/weather.md").read_text(encoding="utf-8")})
    assert evalstore("run", "--fail-on", "regression").exit_code == 0
    text = evalstore("report", "--markdown").stdout
    assert text.startswith("### evalstore: Nothing broke or was fixed; 2 of 4 new results fail. ")
    listed = text.partition("#### New and not passing\n\n")[2].partition("####")[0]
    files = ("other", "third")
    told = OSLO.replace("\n\n  ", "\n\n  Reasons for these 2 results:\n\n  ", 1)
    first = OSLO.partition("\n")[0].replace("weather", files[0])
    assert listed == f"{first}\n{told.replace('weather', files[1])}"
    assert "weather" not in listed


def test_no_more_new_failures_are_listed_than_fit(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalstore.exchange.markdown_report._MOST_PAIRS", 1)
    test = (workspace / "tests/weather.md").read_text(encoding="utf-8")
    test = test.replace("tags:", "systemPrompts: [a, b]\ntags:")
    tree(workspace, {"tests/other.md": test, "prompts/a.md": "A.", "prompts/b.md": "B."})
    evalstore("run", "--all")
    text = evalstore("report", "--markdown").stdout
    assert text.startswith("### evalstore: 3 of 6 results fail. ")
    assert "**`tests/other.md [city=Oslo] (a)`**" in text
    assert "… and 2 more\n" in text


def test_a_report_can_be_written_whole_or_not_at_all(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    text = evalstore("report", "--markdown").stdout
    assert evalstore("report", "--markdown", "-o", "r.md").stderr == "wrote r.md\n"
    assert len(Path("r.md").read_text(encoding="utf-8").splitlines()) == len(text.splitlines())
    ran = evalstore("report", "--markdown", "-o", "gone/r.md")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert (
        evalstore("report", "--markdown", "-o", "-").stdout.splitlines()[0] == text.splitlines()[0]
    )
    assert evalstore("report", "--markdown", "--json").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        (["-o", "r.md"], "### evalstore: "),
        (["-o", "r.MARKDOWN"], "### evalstore: "),
        (["--markdown", "-o", "r.txt"], "### evalstore: "),
        (["-o", "r.html"], "<!doctype html>"),
        (["-o", "r"], "<!doctype html>"),
    ],
)
def test_the_suffix_of_a_report_is_its_format(
    workspace: Path, evalstore: Evalstore, arguments: list[str], start: str
) -> None:
    evalstore("run")
    assert evalstore("report", *arguments).exit_code == 0
    assert Path(arguments[-1]).read_text(encoding="utf-8").lower().startswith(start)


def test_only_a_report_is_replaced_by_one(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    tree(workspace, {"notes.md": "# Notes\n", "empty.md": ""})
    ran = evalstore("report", "-o", "notes.md")
    assert (ran.exit_code, ran.stderr.splitlines()[0]) == (
        2,
        "error: 'notes.md' exists and is not a report",
    )
    assert [evalstore("report", "-o", "empty.md").exit_code for _ in range(2)] == [0, 0]


@pytest.mark.parametrize("arguments", [["--markdown", "-o", "r.html"], ["--json", "-o", "r.md"]])
def test_a_report_is_not_written_in_another_format_than_its_name_says(
    workspace: Path, evalstore: Evalstore, arguments: list[str]
) -> None:
    evalstore("run")
    assert evalstore("report", *arguments).exit_code == 2
    assert not Path(arguments[-1]).exists()


def test_a_run_without_verdicts_has_a_report(echo: Echo, evalstore: Evalstore) -> None:
    echo.failing = "Question"
    tree(Path.cwd(), {"tests/one.md": ASKED})
    evalstore("run")
    text = evalstore("report", "--markdown").stdout
    assert "\n1 of 1 result pending; 1 call failed.\n" in text
    evalstore("run")
    assert "- no result is judged on both sides\n" in evalstore("report", "--markdown").stdout


def outside_of_code(markdown: str) -> str:
    """The Markdown without its code, as CommonMark delimits it."""
    blocks = re.sub(r"^ *(`{3,})text\n.*?\n *\1$", "", markdown, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", blocks, flags=re.DOTALL)


@pytest.mark.parametrize("kind", HOSTILE)
def test_texts_of_models_are_inert_in_the_report(
    echo: Echo, evalstore: Evalstore, kind: str
) -> None:
    name = "tests/<img src=x> @everyone www.evil.example #1 `.md"
    tree(Path.cwd(), {name: ASKED})
    echo.reply = lambda _text: "needle"
    evalstore("run")
    echo.reply = lambda _text: HOSTILE[kind].replace("needle", "pin")
    evalstore("run", "--refresh")
    text = evalstore("report", "--markdown").stdout
    assert text.startswith(
        "### evalstore: `one` got worse, 100% to 0% (may be chance); 1 result broke, none fixed.\n"
    )
    rest = outside_of_code(text)
    for mark in ("<", "@", "](", "http", "www.", "#1", "\x1b", "\u202e", "x" * 1_100):
        assert mark not in rest, mark
    assert len(text) < 65_536
    assert evalstore("export", "--format", "md").exit_code == 0


@pytest.mark.parametrize(
    "text", ["`", "``", "a `b` c", "`````", "a\n```\nb", "x`", "@you", "a www.b", "http://x", "_a_"]
)
def test_code_has_a_fence_that_is_not_in_it(text: str) -> None:
    assert outside_of_code(code_span(text)) == ""
    assert outside_of_code(code_block(text)) == ""


@pytest.mark.parametrize("text", ["", "plain words", "tests/late.md", "50.0%", "Ünï, côdé."])
def test_plain_words_stay_as_they_are(text: str) -> None:
    assert code_span(text) == text


def test_a_long_report_is_cut_and_says_so(echo: Echo, evalstore: Evalstore) -> None:
    tree(Path.cwd(), {f"tests/{'n' * 150}{number:03}.md": ASKED for number in range(45)})
    echo.reply = lambda _text: "needle"
    evalstore("run")
    echo.reply = lambda _text: "`" * 900
    evalstore("run", "--refresh")
    text = evalstore("report", "--markdown").stdout
    assert "… and 25 more: `evalstore diff " in text
    assert len(text) < 65_536
