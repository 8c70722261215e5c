"""Where an answer or a failure belongs: its case, its group and its system prompt are told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from evalstore.planning.options import Location
from evalstore.results.answer.answer import session_of
from evalstore.results.table.cases import cases
from tests.builders import tree
from tests.interfaces.cli.conftest import Echo, Evalstore
from tests.interfaces.cli.run.test_run import edit

GROUP = """\
---
replacements:
  word: [a, b]
---

# 👤

{{word}}

---

~~~checks
- {regex: '[ab]'}
- {allEqual: , scope: group}
~~~
"""
PROMPTED = """\
---
systemPrompts: [brief, null]
---

# 👤

a

---

~~~checks
- equals: a
~~~
"""
BRIEF = "---\nid: brief\n---\n\nBe brief.\n"
NUMBERED = """\
---
replacements:
  number: [%s]
---

# 👤

{{number}}

---

~~~checks
- equals: x
~~~
"""


@pytest.mark.parametrize("pending", [5, 6, 30])
@pytest.mark.parametrize("failing", [3, 20, 40])
def test_every_failure_that_is_listed_has_its_reason(
    echo: Echo, evalstore: Evalstore, pending: int, failing: int
) -> None:
    words = [f"down{number}" for number in range(pending)]
    words += [f"up{number}" for number in range(failing)]
    tree(Path(), {"tests/t.md": NUMBERED % ", ".join(sorted(words, key=lambda word: word[::-1]))})
    echo.failing = "down"
    shown = evalstore("run").stdout
    listed = re.findall(r"^fail +.*\n(.*)$", shown, re.MULTILINE)
    assert listed
    assert all("expected 'x', found 'up" in reason for reason in listed)
    if pending + failing <= 20:
        assert len(re.findall("^pending  ", shown, re.MULTILINE)) == (pending <= 5) * pending
    assert (f"{pending} pending (--all lists" in shown) == (pending > 5)


@pytest.fixture
def group(echo: Echo, documents: Any) -> dict[str, Any]:
    """A file whose rows pass alone and fail together; the cells by row."""
    tree(Path(), {"tests/t.md": GROUP})
    return {case["row"]: case for case in documents("run")["cases"]}


@pytest.mark.parametrize("member", [None, "word=a"])
def test_an_answer_of_a_group_shows_the_failure_of_the_group_first(
    group: dict[str, Any], evalstore: Evalstore, member: str | None
) -> None:
    if member:  # a newer run knows the member alone
        evalstore("run", f"tests/t.md::{member}")
    head, *lines = evalstore("show", group["all rows"]["session"]).stdout.splitlines()
    assert head.startswith("answer ")
    assert lines[:2] == ["tests/t.md [all rows]  fail", "tests/t.md [word=a]  pass"]
    reason = "expected equal answers: answer 1 is 'a', answer 2 is 'b'"
    assert lines[2:6] == [
        "fail  by checks  <when>  <short>  2 judged together  [all rows]",
        f"    fail  allEqual: {reason}",
        "pass  by checks  <when>  <short>  [word=a]",
        "    pass  regex",
    ]


def test_a_verdict_of_another_case_is_not_one_of_earlier_instructions(
    group: dict[str, Any],
) -> None:
    where = Location(Path.cwd())
    actual = {row.row: row.results[0] for row in cases(where, None).rows}
    for row in ("all rows", "word=a"):
        result = actual[row]
        assert result
        view = session_of(where, result.sessions[0], result)
        assert [(opinion.verdict, opinion.why_not) for opinion in view.judgements] == [
            (result.verdict, ""),
            *([(("pass", "other instructions or checks"))] if row == "all rows" else []),
        ]


@pytest.fixture
def prompted(echo: Echo) -> Path:
    """A workspace whose file is asked with a system prompt and without one."""
    tree(Path(), {"tests/t.md": PROMPTED, "prompts/brief.md": BRIEF})
    return Path.cwd()


def test_a_session_of_several_system_prompts_names_its_own(
    prompted: Path, documents: Any, evalstore: Evalstore
) -> None:
    sessions = [case["session"] for case in documents("run")["cases"]]
    places = [evalstore("show", id).stdout.splitlines()[1] for id in sessions]
    assert places == [
        "pass  tests/t.md (brief)  scripted/one",
        "pass  tests/t.md (no prompt)  scripted/one",
    ]


def test_a_run_names_the_system_prompts(
    prompted: Path, documents: Any, evalstore: Evalstore
) -> None:
    run = documents("run")["run"]
    assert evalstore("show", run).stdout.splitlines()[-2:] == [
        "pass  tests/t.md (brief)      scripted/one  <short>",
        "pass  tests/t.md (no prompt)  scripted/one  <short>",
    ]
    results = documents("show", run)["related"]["results"]
    assert [result["prompt"] is None for result in results] == [False, True]


def test_failures_name_the_system_prompt(
    prompted: Path, echo: Echo, documents: Any, evalstore: Evalstore
) -> None:
    echo.failing = "a"
    evalstore("run")
    listed = evalstore("log", "--failures").stdout
    assert sorted(re.findall(r"tests/t\.md \(.*?\)", listed)) == [
        "tests/t.md (brief)",
        "tests/t.md (no prompt)",
    ]
    for failure in documents("log", "--failures")["failures"]:
        name = "brief" if failure["prompt"] else "no prompt"
        for id in (failure["failure"], failure["question"]):
            shown = evalstore("show", id).stdout.splitlines()
            assert shown[1] == f"tests/t.md ({name})"
        assert shown[2] == "answers: none"
        assert shown[3].startswith("failed calls: <short>  ")
        assert shown[3].endswith(f"  {failure['message']}")


def test_one_system_prompt_is_not_named(
    prompted: Path, documents: Any, evalstore: Evalstore
) -> None:
    edit(prompted / "tests/t.md", "[brief, null]", "[brief]")
    (case,) = documents("run")["cases"]
    assert evalstore("show", case["session"]).stdout.splitlines()[1] == (
        "pass  tests/t.md  scripted/one"
    )


def test_a_case_has_one_name_in_every_list(workspace: Path, evalstore: Evalstore) -> None:
    brief = {"prompts/brief.md": "Be brief.\n", "prompts/kind.md": "Use no bad words.\n"}
    late = PROMPTED.replace("null", "kind")
    one = PROMPTED.replace(", null", "").replace("\na\n", "\nb\n")
    tree(workspace, {"tests/late.md": late, "tests/one.md": one, **brief})
    evalstore("run", "-q")
    for text in ("Be very brief.\n", "Be very, very brief.\n"):
        tree(workspace, {"prompts/brief.md": text})
        names = {"tests/late.md (brief)", "tests/one.md"}
        assert (
            _places(evalstore("status", "--explain").stdout) == names
        )  # only these would be asked
        evalstore("run", "-q")
        assert _places(evalstore("diff", "@~1", "@", "-v").stdout) == names
    for command in (("diff", "@~2", "@~1", "-v"), ("show", "@~1:tests/late.md")):
        shown = _places(evalstore(*command).stdout)
        assert shown - {"tests/one.md", "tests/late.md (kind)"} == {"tests/late.md (brief)"}
    named = re.findall(r'"promptName": "(\w+)"', evalstore("diff", "@~2", "@~1", "--json").stdout)
    assert set(named) == {"brief"}
    for place in ("@~1:tests/late.md", "@work:tests/late.md"):
        page = evalstore("show", place, "--prompt", "brief", "-m", "scripted/one").stdout
        assert page.splitlines()[1] == "fail  tests/late.md (brief)  scripted/one"
    tree(workspace, {"prompts/brief.md": "Something else altogether\n"})
    assert _places(evalstore("diff", "@~2", "@~1", "-v").stdout) == names  # known of the last run
    evalstore("run", "-q")
    assert (
        _places(evalstore("diff", "@~3", "@~2", "-v").stdout) == names
    )  # followed from run to run


def _places(shown: str) -> set[str]:
    """The names of cases that lines with a candidate begin or go on with."""
    return set(re.findall(r"(tests/\w+\.md(?: \([\w<> ]+\))?) +scripted/one", shown))


def test_models_have_their_names_of_the_settings_everywhere(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    for name in ("one", "judge"):
        edit(
            workspace / f"models/{name}.yaml",
            "responses:",
            f"providerModelCode: {name}-x\nresponses:",
        )
    evalstore("run", "-q")
    shown = evalstore("show", "tests/weather.md::Oslo").stdout
    assert shown.startswith("answer <short>  scripted/one  <when>\n")
    assert "\nfail  by scripted/judge  <when>" in shown
    result = cases(Location(workspace), "@").rows[0].results[0]
    assert result
    judgement = documents("show", result.evaluations[0])
    assert judgement["related"]["by"] == "scripted/judge"
