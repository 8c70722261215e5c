"""Answers that are judged together: runs, repetitions, groups; and answers that rows bring."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evalstore.planning.options import Location
from evalstore.results.labels import label_results
from evalstore.results.table.cases import cases
from tests.builders import tree
from tests.interfaces.cli.conftest import Echo, Evalstore

RUNS = """\
# ▶ first ×3

# 👤

{{ q }}

# ▶ second

# 👤

{{ q }}!
"""
ONE = "# 👤\n\n{{ q }}\n"
ALL_EQUAL = "- {allEqual: , scope: %s}"


def write(rows: list[dict[str, Any]], body: str, checks: str, *head: str) -> None:
    """A test file with data beside it."""
    fields = "\n".join(("dataset: q.jsonl", *head))
    text = f"---\n{fields}\n---\n\n{body}\n---\n\n~~~checks\n{checks}\n~~~\n"
    write_rows(rows)
    tree(Path(), {"tests/t.md": text})


def write_rows(rows: list[dict[str, Any]]) -> None:
    tree(Path(), {"tests/q.jsonl": "".join(json.dumps(row) + "\n" for row in rows)})


def verdicts(document: Any) -> dict[str, str]:
    return {case["row"]: case["verdict"] for case in document["cases"]}


def did(document: Any) -> tuple[int, int]:
    return document["asked"], document["judged"]


# --- runs and repetitions -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "verdict"),
    [
        ("- {expr: 'len(first) == 3', scope: case}", "pass"),
        ("- {expr: \"second == ['a!']\", scope: case}", "pass"),
        ("- {contains: a, actual: '{{ first[2] }}', scope: case}", "pass"),
        ("- {equals: a!, actual: '{{ answers[3] }}', scope: case}", "pass"),
        ("- {allEqual: , scope: case}", "fail"),
        ("- {allEqual: , scope: case, not: true}", "pass"),
        ("- contains: a", "pass"),
        ("- equals: a", "fail"),
    ],
)
def test_checks_see_all_runs_of_a_row(echo: Echo, documents: Any, check: str, verdict: str) -> None:
    write([{"q": "a"}], RUNS, check)
    document = documents("run")
    assert (did(document), verdicts(document)) == ((4, 1), {"": verdict})
    assert Counter(echo.asked) == {"a": 3, "a!": 1}


def test_a_check_of_each_answer_says_which_one_fails(echo: Echo, evalstore: Evalstore) -> None:
    write([{"q": "a"}], RUNS, "- equals: a")
    assert "answer 4 of 4: expected 'a', found 'a!'" in evalstore("run").stdout


@pytest.mark.parametrize("is_judged", [True, False])
def test_a_person_judges_all_runs_of_an_attempt_together(
    echo: Echo, documents: Any, is_judged: bool
) -> None:
    check = "- {allEqual: , scope: case}"
    write([{"q": "a"}], RUNS, check, "attempts: 2")
    documents("run")
    if not is_judged:
        write([{"q": "a"}], RUNS, f"{check}\n- contains: a", "attempts: 2")
    where = Location(Path.cwd())
    (row,) = cases(where, None).rows
    (result,) = row.results
    assert result
    assert bool(result.evaluations) == is_judged
    labels = label_results(where, [result], "pass", person="Ada")
    assert [len(label.subject.sessions) for label in labels] == [4, 4]
    assert [label.now for label in labels] == ["pass", "pass"]
    assert verdicts(documents("run")) == {"": "pass"}


def test_each_attempt_is_judged_as_a_whole(echo: Echo, documents: Any) -> None:
    write([{"q": "a"}], ONE, ALL_EQUAL % "case", "repetitions: 3", "attempts: 2")
    document = documents("run")
    assert did(document) == (6, 2)
    assert len(document["cases"][0]["sessions"]) == 6
    assert did(documents("run")) == (0, 0)


def test_more_repetitions_ask_only_for_those_that_are_missing(
    echo: Echo, documents: Any, evalstore: Evalstore
) -> None:
    write([{"q": "a"}], ONE, ALL_EQUAL % "case", "repetitions: 2")
    documents("run")
    write([{"q": "a"}], ONE, ALL_EQUAL % "case", "repetitions: 3")
    assert "answers 2 -> 3" in evalstore("status", "--explain").stdout
    assert did(documents("run")) == (1, 1)


def test_cells_that_share_a_question_share_its_answers(echo: Echo, documents: Any) -> None:
    write([{"q": "a"}], ONE, ALL_EQUAL % "case", "repetitions: 3")
    alone = "# 👤\n\na\n\n---\n\n~~~checks\n- equals: a\n~~~\n"
    tree(Path(), {"tests/alone.md": alone})
    document = documents("run")
    assert did(document) == (3, 2)
    shared, own = document["cases"][1]["sessions"], document["cases"][0]["sessions"]
    assert own == shared[:1]
    Path("tests/t.md").unlink()
    assert did(documents("run")) == (0, 0)


def test_a_call_that_fails_in_the_middle_of_a_case_is_all_that_is_repeated(
    echo: Echo, documents: Any
) -> None:
    write([{"q": "a"}], RUNS, ALL_EQUAL % "case")
    echo.failing = "a!"
    document = documents("run")
    assert (did(document), document["failed"], document["verdicts"]["pending"]) == ((3, 0), 1, 1)
    echo.failing = None
    assert did(documents("run")) == (1, 1)
    assert Counter(echo.asked) == {"a": 3, "a!": 1}


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("# ▶", "a conversation has no name"),
        ("# ▶ ×3", "a conversation has no name"),
        ("# ▶ x ×0", "a conversation can be held 1 to 10,000 times"),
        ("# ▶ x ×99999999", "a conversation can be held 1 to 10,000 times"),
        ("# ▶ x ×-1", "'x ×-1' cannot be the name of a conversation"),
        ("# ▶ x ×2.5", "'x ×2.5' cannot be the name of a conversation"),
        ("# ▶ {{ q }}", "'{{ q }}' cannot be the name of a conversation"),
        ("# ▶ answers", "'answers' cannot be the name of a conversation"),
        ("# ▶ x\n\n# ▶ y", "no user message"),
    ],
)
def test_odd_runs_are_reported_at_their_line(
    echo: Echo, evalstore: Evalstore, marker: str, message: str
) -> None:
    write([{"q": "a"}], f"Be brief.\n\n{marker}\n\n{ONE}", "- contains: a")
    assert f"error: tests/t.md:7: {message}" in evalstore("check").stderr


def test_two_runs_of_one_name_are_reported(echo: Echo, evalstore: Evalstore) -> None:
    write([{"q": "a"}], f"# ▶ x\n\n{ONE}\n# ▶ x x2\n\n{ONE}", "- contains: a")
    assert "error: tests/t.md:11: two conversations are called 'x'" in evalstore("check").stderr


def test_a_marker_inside_of_a_fence_is_text(echo: Echo, documents: Any) -> None:
    write([{"q": "a"}], "# 👤\n\n```\n# ▶ x ×3\n```\n{{ q }}\n", "- contains: ▶")
    assert did(documents("run")) == (1, 1)


def test_a_run_is_not_seen_by_a_check_of_each_answer(echo: Echo, evalstore: Evalstore) -> None:
    write([{"q": "a"}], RUNS, "- {contains: a, actual: '{{ first }}'}")
    ran = evalstore("check")
    assert "'first' is one of several conversations, but this check sees only one" in ran.stderr
    assert "write 'scope: case'" in ran.stderr


# --- groups -------------------------------------------------------------------------------

GROUPS = [{"q": "a", "g": "x"}, {"q": "b", "g": "y"}, {"q": "b", "g": "y"}, {"q": "c", "g": "y"}]


def test_rows_of_a_group_are_judged_together(echo: Echo, documents: Any) -> None:
    write(GROUPS, ONE, ALL_EQUAL % "group", 'group: "{{ g }}"')
    document = documents("run")
    assert did(document) == (3, 2)
    assert verdicts(document) == {"all of x": "pass", "all of y": "fail"}
    assert did(documents("run")) == (0, 0)


def test_without_the_field_all_rows_are_one_group(echo: Echo, documents: Any) -> None:
    write(GROUPS, ONE, ALL_EQUAL % "group")
    assert verdicts(documents("run")) == {"": "fail"}


def test_rows_can_be_judged_alone_and_together(echo: Echo, documents: Any) -> None:
    write(GROUPS[1:], ONE, ALL_EQUAL % "group" + "\n- equals: b")
    document = documents("run")
    assert did(document) == (2, 3)
    assert verdicts(document) == {
        "q=b": "pass",
        "q=b #2": "pass",
        "q=c": "fail",
        "all rows": "fail",
    }


def test_a_new_row_asks_one_question_and_judges_its_group_again(echo: Echo, documents: Any) -> None:
    write(GROUPS, ONE, ALL_EQUAL % "group", 'group: "{{ g }}"')
    documents("run")
    write_rows([*GROUPS, {"q": "d", "g": "x"}])
    document = documents("run")
    assert (did(document), echo.asked[3:]) == ((1, 1), ["d"])
    assert verdicts(document) == {"all of x": "fail", "all of y": "fail"}


def test_a_group_without_a_name_differs_from_all_rows(echo: Echo, documents: Any) -> None:
    rows: list[dict[str, Any]] = [{"q": "a", "g": ""}, {"q": "b", "g": None}]
    write(rows, ONE, ALL_EQUAL % "group", 'group: "{{ g }}"')
    assert list(verdicts(documents("run"))) == ["all of ''", "all of null"]


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("{equals: '{{ q }}', scope: group}", "is not the same for all rows of the group"),
        ("{allEqual: , scope: '{{ g }}'}", "'scope' cannot have placeholders"),
        ("{allEqual: , scope: groups}", "'scope' cannot be 'groups'"),
        ("allEqual", "looks at several answers, so it needs a 'scope'"),
        ("{allSame: '', scope: group}", "the check 'allSame' has an empty 'key'"),
        ("{monotonic: up, scope: group}", "'order' cannot be 'up'"),
        ("{monotonic: increasing, by: [], scope: group}", "'by' must be a list with a number"),
    ],
)
def test_wrong_checks_of_groups_are_reported_once(
    echo: Echo, evalstore: Evalstore, check: str, message: str
) -> None:
    write([{"q": str(number), "g": "x"} for number in range(30)], ONE, f"- {check}")
    output = evalstore("check").stderr
    assert output.count("error: tests/t.md:12: ") == output.count("error") == 1
    assert message in output


def test_what_several_rows_lack_is_reported_once(echo: Echo, evalstore: Evalstore) -> None:
    rows: list[dict[str, Any]] = [{"q": "a"}, {"x": 1}, {"x": 2}]
    write(rows, ONE, "- contains: a")
    output = evalstore("check").stderr
    assert output.count("no value for 'q' (tests/q.jsonl:2 and other rows)") == 1


def test_the_words_of_a_turned_check_are_plain(echo: Echo, documents: Any) -> None:
    write(GROUPS[:1], ONE, "- {allEqual: , not: true, scope: group}")
    assert documents("run")["cases"][0]["feedback"] == "expected not to hold: allEqual"


# --- answers that rows bring --------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "text"),
    [("said", "said"), ("", ""), (["said"], "said"), (5, "5"), ({"a": 1}, '{"a": 1}')],
)
def test_a_recorded_answer_is_judged_and_nobody_asked(
    echo: Echo, documents: Any, answer: Any, text: str
) -> None:
    check = f"- {{equals: {json.dumps(text)}, allowEmpty: true}}"
    write([{"q": "a", "c": answer}], ONE, check, 'answer: "{{ c }}"')
    (case,) = documents("run", "--offline")["cases"]
    assert (case["model"], case["verdict"], echo.asked) == ("recorded", "pass", [])
    assert did(documents("run")) == (0, 0)


@pytest.mark.parametrize("row", [{"q": "b"}, {"q": "b", "c": None}])
def test_a_row_without_an_answer_is_asked(echo: Echo, documents: Any, row: Any) -> None:
    write([{"q": "a", "c": "b"}, row], ONE, "- equals: b", 'answer: "{{ c }}"')
    assert verdicts(documents("run")) == {"q=a": "pass", "q=b": "pass"}
    assert echo.asked == ["b"]


def test_recorded_answers_to_one_question_are_distinguished(echo: Echo, documents: Any) -> None:
    rows = [{"q": "a", "c": "b"}, {"q": "a", "c": "c"}]
    write(rows, ONE, "- equals: b", 'answer: "{{ c }}"')
    assert verdicts(documents("run")) == {"c=b": "pass", "c=c": "fail"}


def test_another_recorded_answer_is_a_change_of_the_file(
    echo: Echo, documents: Any, evalstore: Evalstore
) -> None:
    rows = [{"q": "a", "c": "b"}, {"q": "b", "c": "b"}]
    write(rows, ONE, "- equals: b", 'answer: "{{ c }}"')
    documents("run")
    write_rows([{"q": "a", "c": "z"}, {"q": "b", "c": "b"}])
    shown = evalstore("status", "--explain").stdout
    assert "Would take recorded answers (1):\n    tests/t.md [q=a]  recorded" in shown
    assert "recorded answer: b -> z\n" in shown
    assert "A run would take 1 recorded answer and give 1 verdict" in shown
    document = documents("run")
    assert (*did(document), document["recorded"], document["reused"]) == (0, 1, 1, 1)
    assert "1 broke" in evalstore("diff", "@~1", "@").stdout


def test_recorded_answers_need_no_candidates(echo: Echo, documents: Any) -> None:
    write([{"q": "a", "c": "b"}], ONE, "- equals: b", 'answer: "{{ c }}"')
    tree(Path(), {"tests/asked.md": f"{ONE.replace('{{ q }}', 'c')}\n---\n\nBe kind.\n"})
    tree(Path(), {"evalstore.yaml": ""})
    assert verdicts(documents("run", "tests/t.md")) == {"": "pass"}


def test_recorded_answers_are_those_of_no_named_model(echo: Echo, documents: Any) -> None:
    rows: list[dict[str, Any]] = [{"q": "a", "c": "b"}, {"q": "b", "c": None}]
    write(rows, ONE, "- equals: b", 'answer: "{{ c }}"')
    assert verdicts(documents("run", "-m", "scripted/one")) == {"q=b": "pass"}
    assert verdicts(documents("run", "-m", "recorded")) == {"q=a": "pass"}
    both = documents("run", "-m", "scripted/one", "-m", "recorded")
    assert (verdicts(both), did(both)) == ({"q=a": "pass", "q=b": "pass"}, (0, 0))


def test_answers_of_several_turns_are_a_list(echo: Echo, documents: Any) -> None:
    body = f"{ONE}\n# 🤖 @one\n\n# 👤\n\nAnd?\n"
    checks = "- {equals: x, actual: '{{ one }}'}\n- equals: y"
    write([{"q": "a", "c": ["x", "y"]}], body, checks, 'answer: "{{ c }}"')
    assert verdicts(documents("run")) == {"": "pass"}


@pytest.mark.parametrize(
    ("answer", "head", "message"),
    [
        (["x", "y"], (), "'answer' gives 2 answers, and the conversation has 1"),
        ([], (), "'answer' gives 0 answers, and the conversation has 1"),
        ("x", ("repetitions: 2",), "is for one conversation, and there are 2"),
    ],
)
def test_recorded_answers_must_fit_the_conversation(
    echo: Echo, evalstore: Evalstore, answer: Any, head: tuple[str, ...], message: str
) -> None:
    write([{"q": "a", "c": answer}], ONE, "- contains: a", 'answer: "{{ c }}"', *head)
    output = evalstore("check").stderr
    assert "error: tests/t.md:3: " in output
    assert message in output


def test_recorded_answers_alone_need_no_candidate(
    echo: Echo, documents: Any, evalstore: Evalstore
) -> None:
    rows = [{"q": "a", "c": "b"}]
    write(rows, ONE, "- equals: b", 'answer: "{{ c }}"')
    tree(Path(), {"evalstore.yaml": ""})
    documents("run")
    write_rows([{"q": "a", "c": "z"}])
    for command in ("status", "diff", "log"):
        assert evalstore(command).exit_code == 0
    assert did(documents("run")) == (0, 1)


def test_recorded_can_be_named_as_the_candidate(echo: Echo, documents: Any) -> None:
    rows = [{"q": "a", "c": "b"}, {"q": "b"}]
    write(rows, ONE, "- equals: b", 'answer: "{{ c }}"')
    document = documents("run", "-m", "recorded")
    assert (verdicts(document), echo.asked) == ({"q=a": "pass"}, [])


def test_recorded_is_not_a_model(echo: Echo, evalstore: Evalstore) -> None:
    write([{"q": "a"}], ONE, "- contains: a")
    assert "unknown model 'recorded'" in evalstore("run", "-J", "recorded").stderr
    tree(Path(), {"models/recorded.yaml": "provider: scripted\nresponses: [{answer: a}]\n"})
    assert "the id 'recorded' is reserved for recorded answers" in evalstore("check").stderr


def test_a_session_lists_judgements_of_it_and_of_several(
    workspace: Path, evalstore: Any, documents: Any
) -> None:
    (workspace / "tests").mkdir(exist_ok=True)
    for file in (workspace / "tests").glob("*.md"):
        file.unlink()
    (workspace / "tests/twice.md").write_text(
        "---\nrepetitions: 2\n---\n# 👤\n\nHello\n\n---\n\n~~~checks\n"
        "- {allEqual: , scope: case}\n~~~\n"
    )
    [case] = documents("run", "--fail-on", "none")["cases"]
    shown = evalstore("show", case["sessions"][0]).stdout
    assert "  2 judged together\n" in shown
