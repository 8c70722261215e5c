"""What people read of answers that are judged together, and of answers that are recorded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from evalstore.planning.options import Location
from evalstore.results.answer.verdict_explanation import VerdictExplanation
from evalstore.results.show.shown_item import show_to_people
from tests.builders import tree
from tests.interfaces.cli import conftest
from tests.interfaces.cli.conftest import Evalstore

RUNS = """\
# ▶ north ×2

# 👤

How is Oslo?

# ▶ south

# 👤

How is Rome?

---

~~~checks
- {expr: 'north[0] == south[0]', scope: case, name: steady}
~~~
"""
GROUP = conftest.GROUP.replace("Rome", "Rome, Cairo, Delhi, Lima")
TURNS = """\
# 👤

How is Oslo?

# 🤖 @first

# 👤

And Rome?

---

The answer must be warm, unlike {{first}}

~~~checks
- {contains: Cold, actual: "{{first}}"}
~~~
"""
RECORDED = (
    "---\nanswer: Cold.\n---\n\n# 👤\n\nHow is Oslo?\n\n---\n\n~~~checks\n- contains: Cold\n~~~\n"
)


@pytest.fixture
def written(workspace: Path) -> Path:
    """A workspace for one test file of another kind."""
    (workspace / "tests/weather.md").unlink()
    return workspace


def write(workspace: Path, text: str) -> None:
    tree(workspace, {"tests/t.md": text})


@pytest.mark.parametrize("text", [RUNS, GROUP], ids=["case", "group"])
def test_a_session_shows_what_judges_it_together_with_others(
    written: Path, documents: Any, evalstore: Evalstore, text: str
) -> None:
    write(written, text)
    sessions = documents("run", "--yes")["cases"][0]["sessions"]
    for session in sessions:
        (vote,) = documents("show", session)["related"]["evaluations"]
        assert (vote["verdict"], vote["sessions"]) == ("fail", sessions)
    shown = evalstore("show", sessions[0]).stdout
    listed = re.findall(r"^  [▸ ] (\d)  <short>  \w+\.$", shown, re.MULTILINE)
    assert listed == [str(number) for number in range(1, len(sessions) + 1)]
    assert "\njudged together:\n  How is Oslo?\n  ▸ 1  <short>  " in shown


def test_a_session_that_is_judged_alone_names_no_others(
    written: Path, documents: Any, evalstore: Evalstore
) -> None:
    write(written, TURNS)
    (session,) = documents("run")["cases"][0]["sessions"]
    assert "judged together" not in evalstore("show", session).stdout


def test_conversations_that_are_held_several_times_are_shown_once(
    written: Path, evalstore: Evalstore
) -> None:
    write(written, RUNS)
    evalstore("run")
    shown = evalstore("show", "@:tests/t.md").stdout
    assert "conversations 1 to 2\n    user: How is Oslo?\n    conversation 3\n" in shown
    assert shown.count("How is Oslo?") == 1


def test_a_check_is_shown_as_its_author_has_written_it(written: Path, evalstore: Evalstore) -> None:
    write(written, TURNS)
    evalstore("run")
    shown = evalstore("show", "@:tests/t.md").stdout
    assert "check:\n        contains: Cold\n        actual: '{{first}}'\n" in shown
    assert "instructions: The answer must be warm, unlike [answer 1]\n" in shown


def test_an_edit_of_a_check_of_a_turn_is_shown_as_written(
    written: Path, evalstore: Evalstore
) -> None:
    write(written, TURNS)
    evalstore("run")
    write(written, TURNS.replace("contains: Cold", "contains: Cool"))
    assert (
        "check 1 changed: contains: Cold -> Cool; if the checks pass, "
        in evalstore("status").stdout
    )


def test_another_number_of_runs_is_reported_without_the_places_of_answers(
    written: Path, evalstore: Evalstore
) -> None:
    write(written, RUNS)
    evalstore("run")
    write(written, RUNS.replace("×2", "×3"))
    assert "check 1 changed: which answers it looks at\n" in evalstore("diff").stdout


def test_rows_of_a_group_are_one_line_of_a_plan(written: Path, evalstore: Evalstore) -> None:
    write(written, GROUP)
    assert "\n    tests/t.md  scripted/one  new test (5x)\n" in evalstore(
        "status", "--explain"
    ).stdout.replace("Would ask (5):", "")


@pytest.mark.parametrize(
    ("text", "cell"),
    [(RUNS, "<short> ×2, <short>  "), (GROUP, "<short>, <short>, <short>, <short> … 5 in all  ")],
    ids=["case", "group"],
)
def test_a_list_of_cases_keeps_short(
    written: Path, evalstore: Evalstore, text: str, cell: str
) -> None:
    write(written, text)
    assert cell in evalstore("ls", "cases").stdout


def test_a_recorded_answer_has_no_price(
    written: Path, documents: Any, evalstore: Evalstore
) -> None:
    write(written, RECORDED)
    (session,) = documents("run")["cases"][0]["sessions"]
    shown = evalstore("show", session).stdout
    assert "\nrecorded, <when>\nanswer <short>, " in shown
    assert "price" not in shown


def test_the_json_of_a_session_lists_the_judgements_of_its_page(
    written: Path, documents: Any
) -> None:
    write(written, GROUP)
    session = documents("run", "--yes")["cases"][0]["sessions"][0]
    write(written, GROUP.replace("scope: group}", "scope: group}\n- {allSame: city, scope: group}"))
    documents("run", "--yes")
    page = show_to_people(Location(written), session)
    assert isinstance(page, VerdictExplanation)
    listed = documents("show", session)["related"]["evaluations"]
    assert len(listed) == 2
    assert {judgement["id"] for judgement in listed} == {
        opinion.id for opinion in page.answer.judgements
    }
