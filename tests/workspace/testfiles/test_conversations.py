"""The conversations of a file as the author wrote them."""

from __future__ import annotations

from typing import Any

import pytest

from evalstore.core.errors import FileProblem
from evalstore.workspace.testfiles.conversations import RepeatedConversation
from evalstore.workspace.testfiles.parser import TestFile, parse_test

TOLD = "\n---\n\nExpect a greeting.\n"


def parsed(body: str, *head: str) -> TestFile:
    fields = "\n".join(("---", *head, "---", "")) if head else ""
    return parse_test("tests/t.md", fields + body + TOLD)


def texts(run: RepeatedConversation) -> list[tuple[str, str]]:
    return [(turn.role, turn.section.text) for turn in run.turns]


def user(text: str) -> str:
    return f"# 👤\n\n{text}\n\n"


# --- runs ---------------------------------------------------------------------------------


def test_a_file_without_runs_is_one_without_a_name() -> None:
    (run,) = parsed(user("a")).runs
    assert (run.name, run.count, run.turn_names) == (None, 1, ("response",))


@pytest.mark.parametrize(
    ("marker", "name", "count"),
    [
        ("# ▶ x", "x", 1),
        ("# ▶ x ×3", "x", 3),
        ("# ▶ x x3", "x", 3),
        ("# ▶ x × 3", "x", 3),
        ("# ▶️ x ×3  ", "x", 3),
        ("  # ▶x", "x", 1),
        ("# ▶ two words ×2", "two words", 2),
        ("# ▶ xx3", "xx3", 1),
        ("# ▶ 3", "3", 1),
    ],
)
def test_a_run_has_a_name_and_a_count(marker: str, name: str, count: int) -> None:
    (run,) = parsed(f"{marker}\n\n{user('a')}").runs
    assert (run.name, run.count) == (name, count)


def test_what_stands_before_the_first_run_begins_all_of_them() -> None:
    body = f"Be kind.\n\n{user('a')}# 🤖\n\nb\n\n# ▶ one\n\n{user('c')}# ▶ two\n\n{user('d')}"
    item, two = parsed(body).runs
    shared = [("system", "Be kind."), ("user", "a"), ("assistant", "b")]
    assert (texts(item), texts(two)) == ([*shared, ("user", "c")], [*shared, ("user", "d")])


@pytest.mark.parametrize(
    "body", [f"```\n# ▶ x\n```\n{user('a')}", user("a\n\n## ▶ x"), user("say # ▶ x")]
)
def test_what_only_looks_like_a_run_is_not_a_run(body: str) -> None:
    assert len(parsed(body).runs) == 1
    assert parsed(body).runs[0].name is None


def test_repetitions_are_a_count() -> None:
    assert parsed(user("a"), "repetitions: 3").runs[0].count == 3


@pytest.mark.parametrize(
    ("body", "head", "line", "message"),
    [
        ("# ▶ x\n\n# 👤\n\na\n", ("repetitions: 2",), 4, "cannot be combined"),
        (user("a"), ("repetitions: 0",), 2, "'repetitions' must be a whole number"),
        (user("a"), ("repetitions: 1.5",), 2, "'repetitions' must be a whole number"),
        (user("a"), ("repetitions: true",), 2, "'repetitions' must be a whole number"),
        (user("a"), ("repetitions: 99999999",), 2, "'repetitions' must be a whole number"),
        (f"# ▶ x\n\n{user('a')}# ▶ x\n\n{user('b')}", (), 7, "two conversations are called 'x'"),
        (f"# ▶ x\n\n# ▶ y\n\n{user('b')}", (), 1, "no user message"),
        (f"{user('a')}# ▶ x\n\n{user('b')}", (), 7, "two user messages follow one another"),
    ],
)
def test_runs_that_cannot_be_honoured(
    body: str, head: tuple[str, ...], line: int, message: str
) -> None:
    with pytest.raises(FileProblem, match=message) as caught:
        parsed(body, *head)
    assert caught.value.line == line


# --- turns that are filled ----------------------------------------------------------------


def test_the_names_of_turns_are_those_of_the_answers() -> None:
    body = user("a") + "# 🤖 @one\n\n" + user("b") + "# 🤖 @last\n"
    (run,) = parsed(body).runs
    assert run.turn_names == ("one", "last")
    assert [turn.name for turn in run.turns] == [None, "one", None]


# --- the field `messages` -----------------------------------------------------------------


def conversation(*messages: str) -> RepeatedConversation:
    lines = "".join(f"\n  - {message}" for message in messages)
    (run,) = parsed("", f"messages:{lines}").runs
    return run


def test_messages_stand_for_the_body_and_are_kept_to_the_byte() -> None:
    run = conversation("{role: system, content: s}", '{role: user, content: " a\\n"}')
    assert texts(run) == [("system", "s"), ("user", " a\n")]
    assert all(turn.verbatim for turn in run.turns)


def test_a_message_without_a_role_is_the_users() -> None:
    assert texts(conversation("{content: a}")) == [("user", "a")]


def test_an_assistant_without_content_is_filled() -> None:
    run = conversation(
        "{content: a}", "{role: assistant, variable: one}", "{content: b}", "{role: assistant}"
    )
    assert run.turn_names == ("one", "response")
    assert len(run.turns) == 3


def test_a_speaker_and_an_image_go_with_the_message() -> None:
    (turn,) = conversation("{content: a, name: bob, image: x.png}").turns
    assert (turn.speaker, turn.image) == ("bob", "x.png")


@pytest.mark.parametrize(
    ("messages", "line", "message"),
    [
        ("messages: []", 2, "'messages' must be a list of messages"),
        ("messages: {role: user}", 2, "'messages' must be a list of messages"),
        ("messages: 5", 2, "'messages' must be a list of messages"),
        ("messages: hello", 2, "'messages' must be a list of messages, or a template"),
        ("messages: [a]", 2, "a message must be a mapping"),
        ("messages:\n  - {content: a}\n  - {role: bot, content: a}", 4, "'role' must be"),
        ("messages: [{role: user}]", 2, "the message has no 'content'"),
        ("messages: [{role: user, content: null}]", 2, "the message has no 'content'"),
        ("messages: [{content: [a]}]", 2, "'content' must be a text"),
        ("messages: [{content: 5}]", 2, "'content' must be a text"),
        ("messages: [{content: a, extra: 1}]", 2, "unknown field 'extra'"),
        ("messages: [{content: a, variable: b}]", 2, "for a message that the candidate fills"),
        ("messages: [{role: system, content: a}]", 2, "has no message of the role 'user'"),
        ("messages: [{content: a}, {role: assistant, content: b}]", 2, "ends with a fixed answer"),
        (
            "messages:\n  - {role: assistant, variable: x}\n  - {content: a}",
            3,
            "the conversation begins with a turn that the candidate fills",
        ),
        (
            "messages:\n  - {content: a}\n  - {role: assistant, variable: answer}",
            4,
            "'@answer' cannot be the name of a turn",
        ),
    ],
)
def test_messages_that_cannot_be_honoured(messages: str, line: int, message: str) -> None:
    with pytest.raises(FileProblem, match=message) as caught:
        parsed("", messages)
    assert caught.value.line == line


def test_a_body_beside_messages_is_an_error() -> None:
    with pytest.raises(FileProblem, match="'messages' replaces the text above '---'"):
        parsed(user("a"), "messages: [{content: a}]")


def test_a_template_stands_for_all_messages() -> None:
    (run,) = parsed("", "messages: '{{ item.m }}'", "repetitions: 2").runs
    assert run.template is not None
    assert (run.turns, run.template.text, run.count) == ((), "{{ item.m }}", 2)


@pytest.mark.parametrize("value", [None, "~"])
def test_messages_that_say_nothing_leave_the_body(value: Any) -> None:
    assert texts(parsed(user("a"), f"messages: {value or ''}").runs[0]) == [("user", "a")]
