"""Headings in words mean the same as emoji, and no file that was valid before changes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.core.errors import FileProblem
from evalstore.workspace.testfiles.parser import parse_prompt, parse_test, read_test
from tests.builders import expanded, ids, shown

WORDS = {"👤": "User", "🤖": "Assistant", "⚙️": "System", "▶": "Run"}
END = "\n---\n\nExpect an answer.\n"


def in_words(text: str, change: str = "capitalize") -> str:
    """A test with its emoji headings written in words."""
    return re.sub(
        "^# (👤|🤖|⚙️|▶)", lambda m: f"# {getattr(WORDS[m[1]], change)()}", text, flags=re.MULTILINE
    )


_TEXT = st.sampled_from(
    [
        "Hello",
        "# User guide",
        "# Users",
        "    # User",
        "~~~\n# User\n~~~",
        "# 🤗",
        "User",
        "## User",
    ]
)


@st.composite
def conversations(draw: st.DrawFn) -> str:
    """The turns of one conversation with emoji headings."""
    parts = [draw(st.sampled_from(["", "Be kind.\n\n", "# ⚙️\n\nBe kind.\n\n"]))]
    for number in range(draw(st.integers(0, 2))):
        reply = draw(st.sampled_from([f" @a{number}", f"  @a{number} ", f"\n\n{draw(_TEXT)}"]))
        parts.append(f"# 👤{draw(st.sampled_from(['', '  ']))}\n\n{draw(_TEXT)}\n\n# 🤖{reply}\n\n")
    parts.append(f"# 👤\n\n{draw(_TEXT)}\n")
    return "".join(parts)


@given(conversations(), st.sampled_from(["capitalize", "lower", "upper"]))
def test_both_spellings_have_the_same_ids(conversation: str, change: str) -> None:
    text = conversation + END
    assert ids(in_words(text, change)) == ids(text)


@given(st.lists(conversations(), min_size=1, max_size=3), st.data())
def test_runs_in_both_spellings_have_the_same_ids(parts: list[str], data: st.DataObject) -> None:
    sign = data.draw(st.sampled_from("×x"))
    runs = [f"# ▶ run {n} {sign}{n + 1}\n\n{part}\n" for n, part in enumerate(parts)]
    text = "".join(runs) + END
    assert ids(in_words(text)) == ids(text)


def test_a_conversation_in_words() -> None:
    text = f"# System\n\nBe kind.\n\n# User\n\nHi\n\n# ASSISTANT\n\nHello\n\n# user\n\nBye\n{END}"
    assert shown(expanded(text)) == [
        [("system", "Be kind."), ("user", "Hi"), ("assistant", "Hello"), ("user", "Bye")]
    ]


@pytest.mark.parametrize(
    "line",
    [
        "# User guide",
        "# User:",
        "#User",
        "## User",
        "    # User",
        "# Assistant and user",
        "# Assistant @a b",
        "# System prompt",
        "# Run the tests",
        "# Run x3",
        "# Running twice x3",
        "# Tools",
    ],
)
def test_another_heading_is_text(line: str) -> None:
    text = f"# User\n\nRead this:\n{line}\nand answer.\n{END}"
    assert shown(expanded(text)) == [[("user", f"Read this:\n{line}\nand answer.")]]


def test_words_in_fenced_code_are_text() -> None:
    text = f"# User\n\nHi\n\n~~~\n# User\n# 👤\n~~~\n{END}"
    assert shown(expanded(text)) == [[("user", "Hi\n\n~~~\n# User\n# 👤\n~~~")]]


@pytest.mark.parametrize("line", ["# User", "# assistant", "# System", "# Tool", "# Run a x2"])
@pytest.mark.parametrize("place", ["system", "user"])
def test_words_are_text_in_a_test_with_emoji(line: str, place: str) -> None:
    text = f"{line}\n\n# 👤\n\nHi\n" if place == "system" else f"# 👤\n\n{line}\n\nHi\n"
    content = (
        [("system", line), ("user", "Hi")] if place == "system" else [("user", f"{line}\n\nHi")]
    )
    assert shown(expanded(text + END)) == [content]


def test_words_that_are_text_are_warned_of_once() -> None:
    _, collector = read_test("t.md", f"# System\n\nBe kind.\n\n# 👤\n\n# User\n\nHi\n{END}")
    message = "'{}' is read as text here, it does not begin a message"
    hint = "to begin a message, write '# {}'; write '##' if the line is part of the text"
    assert [(warning.message, warning.line, warning.hint) for warning in collector.warnings] == [
        (message.format("# System"), 1, hint.format("⚙️")),
        (message.format("# User"), 7, hint.format("👤")),
    ]


TOOLS = "tools are not executed, so there are no tool messages"
AS_TEXT = "write '##' if the line is part of the text"


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("# 🛠", TOOLS),
        ("# 🛠️", TOOLS),
        ("# 🔧 @weather", TOOLS),
        ("# Function", TOOLS),
        ("# tool result", TOOLS),
        ("# Developer", "to begin a message, write '# {system}'"),
        ("# 👩‍💻", "to begin a message, write '# {system}'"),
        ("# System message", "to begin a message, write '# {system}'"),
        ("# Human", "to begin a message, write '# {user}'"),
        ("# User:", "to begin a message, write '# {user}'"),
        ("  # 🧑", "to begin a message, write '# {user}'"),
        ("# AI", "to begin a message, write '# {assistant}'"),
        ("# Assistent", "to begin a message, write '# {assistant}'"),
        ("# Asistant @name", "to begin a message, write '# {assistant} @name'"),
        ("# Sytem", "to begin a message, write '# {system}'"),
        ("# Runs again ×3", "to begin a conversation, write '# {run} again ×3'"),
    ],
)
@pytest.mark.parametrize("in_words", [False, True])
def test_a_heading_that_looks_like_a_role_is_text_with_a_warning(
    line: str, hint: str, in_words: bool
) -> None:
    user = "User" if in_words else "👤"
    text = f"# {user}\n\nHi\n\n{line}\n\nHo\n\n{line}\n{END}"
    test, collector = read_test("t.md", text)
    assert [turn.section.text for turn in test.runs[0].turns] == [f"Hi\n\n{line}\n\nHo\n\n{line}"]
    words = {"system": "System", "user": "User", "assistant": "Assistant", "run": "Run"}
    emoji = {"system": "⚙️", "user": "👤", "assistant": "🤖", "run": "▶"}
    expected = hint.format(**(words if in_words else emoji))
    assert [(warning.message, warning.line, warning.hint) for warning in collector.warnings] == [
        (
            f"'{line.strip()}' is read as text here, it does not begin a message",
            5,
            f"{expected}; {AS_TEXT}",
        )
    ]
    assert [problem.severity for problem in collector.warnings] == ["warning"]
    assert not collector.problems


def test_a_tool_message_in_a_test_with_emoji_is_text_with_the_reason() -> None:
    _, collector = read_test("t.md", f"# 👤\n\nHi\n\n# Tool\n\n42\n{END}")
    (warning,) = collector.warnings
    assert (warning.line, warning.hint) == (5, f"{TOOLS}; {AS_TEXT}")


@pytest.mark.parametrize(
    "line",
    [
        *("# Tools", "# Functions", "# 🛠 Repairs", "# 🤗", "# Model", "# Human rights", "## 🛠"),
        *("    # 🛠", "#🛠", "~~~\n# 🛠\n~~~", "# Users", "# Developer guide", "# Air"),
        *("# Systems", "# Assistants", "# Use", "# Assets", "# Run time", "# Ruins of Rome"),
    ],
)
@pytest.mark.parametrize("user", ["User", "👤"])
def test_other_headings_are_text_without_a_warning(line: str, user: str) -> None:
    _, collector = read_test("t.md", f"# {user}\n\nHi\n\n{line}\n\nHo\n{END}")
    assert not collector.warnings


def test_very_many_lines_that_look_like_roles_are_read_in_a_few_seconds() -> None:
    lines = "\n\n".join(f"# Human\n{number}" for number in range(10_000))
    _, collector = read_test("t.md", f"# User\n\nHi\n\n{lines}\n{END}")
    assert len(collector.warnings) == 1


@pytest.mark.parametrize("heading", ["# user", "# Assistent", "# abc", "# run a x"])
@pytest.mark.parametrize("filling", [" ", " x", " x1", "\t:"])
def test_a_long_line_that_looks_like_a_heading_is_read_at_once(heading: str, filling: str) -> None:
    text = f"# Usr\n\nHi\n\n{heading}{filling * 50_000}y\n{END}"
    _, collector = read_test("t.md", text)
    assert collector.problems[0].others[0].hint == "did you mean '# User'?"


def test_words_beside_other_emoji_begin_messages() -> None:
    text = f"# ⚙️\n\nBe kind.\n\n# User\n\nHi\n\n# 🤖 @a\n\n# User\n\nBye\n{END}"
    assert ids(text) == ids(text.replace("# User", "# 👤"))


def test_tool_messages_are_refused() -> None:
    with pytest.raises(FileProblem) as raised:
        parse_test("t.md", f"# User\n\nHi\n\n# tool\n\n42\n{END}")
    assert (raised.value.message, raised.value.line) == (
        "a conversation has no tool messages ('# Tool')",
        5,
    )
    assert raised.value.others == ()


@pytest.mark.parametrize("line", ["# <!-- c -->User", "#<!-- c --> User", "   # User <!-- c -->"])
def test_a_comment_does_not_hide_a_heading(line: str) -> None:
    assert shown(expanded(f"{line}\n\nHi\n{END}")) == [[("user", "Hi")]]


@pytest.mark.parametrize(
    ("body", "message", "line"),
    [
        ("# User\n\nHi\n\n# User\n\nHo\n", "two user messages follow one another", 5),
        ("# Assistant\n\nHi\n", "the conversation must start with a user message ('# 👤')", 1),
        ("# System\n\nHi\n", "no user message", 1),
        ("# User\n\nHi\n\n# Assistant\n\nHo\n", "the conversation ends with a fixed answer", 5),
    ],
)
def test_problems_have_the_line_of_the_heading(body: str, message: str, line: int) -> None:
    with pytest.raises(FileProblem) as raised:
        parse_test("t.md", body + END)
    assert (raised.value.message, raised.value.line) == (message, line)


@pytest.mark.parametrize(
    ("body", "headings"),
    [
        ("# User\n\nHi\n\n# Assistent\n\nHo\n\n# User\n\nBye", {5: "# Assistant"}),
        ("# Usr\n\nHi", {1: "# User"}),
        ("# Human\n\nHi", {1: "# User"}),
        ("#User\n\nHi", {1: "# User"}),
        ("## User\n\nHi\n\n### Detail", {1: "# User"}),
        ("User\n\n# Usr\n\nHi\n\n## System\n\nHo", {3: "# User"}),
        (
            "# Usr\n\nHi\n\n# Assitant @name\n\n# Uesr\n\nBye",
            {1: "# User", 5: "# Assistant @name", 7: "# User"},
        ),
        ("# Runs first x2\n\n# Usr\n\nHi", {1: "# Run first x2", 3: "# User"}),
        ("# 👤\n\nHi\n\n# Assistent\n\nHo\n\n# 👤\n\nBye", {5: "# 🤖"}),
        ("# 👤\n\nHi\n\n# Assistant\n\nHo\n\n# 👤\n\nBye", {5: "# 🤖"}),
        ("# 🧑\n\nHi", {1: "# User"}),
    ],
)
def test_a_misspelt_heading_is_named_where_the_test_cannot_be_read_without_it(
    body: str, headings: dict[int, str]
) -> None:
    _, collector = read_test("t.md", f"{body}\n{END}")
    (first,) = collector.problems
    assert {problem.line: problem.hint for problem in first.others} == {
        line: f"did you mean '{heading}'?" for line, heading in headings.items()
    }
    line = body.split("\n")[min(headings) - 1]
    assert first.others[0].message == f"'{line}' does not begin a message"
    assert not {warning.line for warning in collector.warnings} & set(headings)


def test_a_heading_that_may_be_misspelt_does_not_hide_the_problem() -> None:
    body = "# User\n\nHi\n\n# Users\n\nHo\n\n# User\n\nBye"
    _, collector = read_test("t.md", f"{body}\n{END}")
    assert [(problem.message, problem.line) for problem in collector.problems] == [
        ("two user messages follow one another", 9)
    ]


@pytest.mark.parametrize("heading", ["# System", "# User", "# assistant"])
def test_words_in_a_system_prompt_are_text_with_a_warning(heading: str) -> None:
    """The model is shown the line: it may be a part of the prompt, so it is not an error."""
    prompt = parse_prompt("p.md", f"Be kind.\n\n{heading}\n\nHello\n")
    assert [turn.section.text for turn in prompt.turns] == [f"Be kind.\n\n{heading}\n\nHello"]
    assert [(warning.message, warning.line, warning.hint) for warning in prompt.warnings] == [
        (
            f"'{heading}' is read as text here, it does not begin a message",
            3,
            "a system prompt is one message: remove the line, or write '##' if it is part of it",
        )
    ]
    assert not parse_prompt("p.md", f"Be kind.\n\n#{heading}\n").warnings


def test_words_in_prompts_are_text() -> None:
    head = "---\ntags: [_evaluator]\n---\n\n"
    prompt = parse_prompt("p.md", f"{head}Judge.\n\n# User\n\n{{{{_actualResponse}}}}\n")
    assert [turn.section.text for turn in prompt.turns] == [
        "Judge.\n\n# User\n\n{{_actualResponse}}"
    ]
    assert [(warning.message, warning.line) for warning in prompt.warnings] == [
        ("'# User' is read as text here, it does not begin a message", 7)
    ]
