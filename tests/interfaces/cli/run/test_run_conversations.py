"""Conversations in which the candidate fills several turns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import endpoint
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore

TALK = """\
# 👤

Name a country.

# 🤖 @country

# 👤

What is its capital?

# 🤖 @capital

---

~~~checks
{}
~~~
"""
BOTH = "- {contains: Norway, actual: '{{country}}'}\n- {contains: Oslo, actual: '{{capital}}'}"


@pytest.fixture
def server() -> Iterator[endpoint.Endpoint]:
    with endpoint.running() as server:
        answers = {"Name a country.": " Norway ", "What is its capital?": "Oslo"}
        server.reply = lambda body: answers.get(
            body["messages"][-1]["content"], '{"pass": true, "feedback": ""}'
        )
        yield server


@pytest.fixture
def talk(tmp_path: Path, server: endpoint.Endpoint, monkeypatch: pytest.MonkeyPatch) -> Path:
    tree(
        tmp_path,
        {
            "evalstore.yaml": "candidates: [one]\nevaluators: [judge]\n",
            "providers/here.yaml": f"code: here\ntype: openai-compatible\nbaseURL: {server.url}\n",
            "models/one.yaml": "id: one\nprovider: here\nproviderModelCode: m\n"
            "costs: [{costPerCall: 0.5}]\n",
            "models/judge.yaml": "id: judge\nprovider: here\nproviderModelCode: j\n",
            "tests/talk.md": TALK.format(BOTH),
        },
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def messages(server: endpoint.Endpoint) -> list[list[str]]:
    return [[message["content"] for message in got.body["messages"]] for got in server.received]


def test_each_turn_is_a_call_that_shows_the_answers_before(
    talk: Path, documents: Any, server: endpoint.Endpoint
) -> None:
    document = documents("run")
    assert messages(server) == [
        ["Name a country."],
        ["Name a country.", "Norway", "What is its capital?"],
    ]
    assert (document["asked"], document["verdicts"]["pass"], document["cost"]) == (1, 1, 1.0)
    assert documents("run")["asked"] == 0


def test_a_check_of_an_earlier_turn_can_fail(talk: Path, documents: Any) -> None:
    tree(talk, {"tests/talk.md": TALK.format("- {contains: Sweden, actual: '{{country}}'}")})
    assert documents("run")["verdicts"]["fail"] == 1


def test_all_answers_are_there_by_number(talk: Path, documents: Any) -> None:
    checks = "- {contains: Norway Oslo, actual: '{{ answers[0] }} {{ answers[1] }}'}"
    tree(talk, {"tests/talk.md": TALK.format(checks)})
    assert documents("run")["verdicts"]["pass"] == 1


def test_without_actual_the_last_answer_is_looked_at(talk: Path, documents: Any) -> None:
    tree(talk, {"tests/talk.md": TALK.format("- contains: Oslo")})
    assert documents("run")["verdicts"]["pass"] == 1


def test_another_name_for_a_turn_asks_nothing(talk: Path, documents: Any) -> None:
    documents("run")
    renamed = TALK.format(BOTH.replace("country", "land")).replace("@country", "@land")
    tree(talk, {"tests/talk.md": renamed})
    document = documents("run")
    assert (document["asked"], document["judged"]) == (0, 1)


def test_a_last_turn_that_is_named_is_the_one_that_is_implied(talk: Path, documents: Any) -> None:
    documents("run")
    implied = TALK.replace("# 🤖 @capital\n\n", "").format(
        "- {contains: Oslo, actual: '{{response}}'}"
    )
    tree(talk, {"tests/talk.md": implied})
    document = documents("run")
    assert (document["asked"], document["verdicts"]["pass"]) == (0, 1)


def test_a_fixed_answer_is_another_question(talk: Path, documents: Any) -> None:
    documents("run")
    fixed = TALK.replace("# 🤖 @country\n", "# 🤖\n\nNorway\n")
    tree(talk, {"tests/talk.md": fixed.format("- contains: Oslo")})
    assert documents("run")["asked"] == 1


def test_a_judge_is_shown_the_whole_conversation(
    talk: Path, documents: Any, server: endpoint.Endpoint
) -> None:
    output = TALK.partition("~~~")[0] + "The capital must be that of the country.\n"
    tree(talk, {"tests/talk.md": output})
    assert documents("run")["verdicts"]["pass"] == 1
    shown = "".join(messages(server)[-1])
    places = [shown.index(text) for text in ("Name a country.", "Norway", "its capital?", "Oslo")]
    assert places == sorted(places)


def test_show_has_the_answers_in_their_places(
    talk: Path, documents: Any, evalstore: Evalstore
) -> None:
    run = documents("run")
    (session,) = run["cases"][0]["sessions"]
    shown = evalstore("show", session).stdout
    places = [shown.index(text) for text in ("Name a country.", "Norway", "its capital?", "Oslo")]
    assert places == sorted(places)


def test_a_call_that_fails_in_the_middle_leaves_the_question_open(
    talk: Path, documents: Any, server: endpoint.Endpoint
) -> None:
    answer = server.reply
    server.reply = lambda body: (
        answer(body) if len(body["messages"]) == 1 else endpoint.FAULTS["404"]
    )
    document = documents("run")
    assert (document["asked"], document["failed"]) == (0, 1)
    server.reply = answer
    assert documents("run")["asked"] == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TALK.replace("@country", "@capital"), "two turns are called '@capital'"),
        (TALK.replace("@country\n", "@country\n\nSpain\n"), "the turn '@country' has a text"),
        (TALK.replace("@country", "@my-name"), "'@my-name' cannot be the name of a turn"),
        (TALK.replace("@country", "@answer"), "'@answer' cannot be the name of a turn"),
        (TALK.replace("@country", ""), "an assistant turn is empty"),
        (TALK.replace("@capital", "\n\nOslo"), "the conversation ends with a fixed answer"),
    ],
)
def test_what_is_wrong_is_reported(
    talk: Path, evalstore: Evalstore, text: str, message: str
) -> None:
    tree(talk, {"tests/talk.md": text.format("- contains: Oslo")})
    ran = evalstore("check")
    assert ran.exit_code != 0
    assert message in ran.stdout + ran.stderr


def test_tools_end_a_conversation(talk: Path, evalstore: Evalstore) -> None:
    tool = "id: t\nname: t\ndescription: A tool.\nparameters: {type: object}\n"
    text = "---\navailableTools: [t]\n---\n" + TALK.format("- contains: Oslo")
    tree(talk, {"tools/t.yaml": tool, "tests/talk.md": text})
    ran = evalstore("check")
    assert "cannot be combined" in ran.stdout + ran.stderr
