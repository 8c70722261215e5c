from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.core.errors import FileProblem
from evalstore.files.access import normalise
from evalstore.workspace.folder import default_id
from evalstore.workspace.testfiles.parser import TestFile, parse_prompt, parse_test, read_test
from tests.builders import HELLO, test_file


def parsed(text: str) -> TestFile:
    return parse_test("tests/t.md", text)


def turns(text: str) -> list[tuple[str, str]]:
    return [(turn.role, turn.section.text) for turn in parsed(text).turns]


def problem(text: str) -> FileProblem:
    with pytest.raises(FileProblem) as caught:
        parsed(text)
    assert caught.value.line is not None
    return caught.value


# --- structure


def test_the_last_rule_cuts_off_the_instructions() -> None:
    file = parsed("# 👤\n\none\n\n---\n\n# 🤖\n\ntwo\n\n# 👤\n\nthree\n\n---  \n\ntold\n")
    assert [turn.section.text for turn in file.turns] == ["one\n\n---", "two", "three"]
    assert file.instructions is not None
    assert file.instructions.text == "told"


@pytest.mark.parametrize("front", ["", "---\ntags: [a]\n---\n", "---\ntemplate: plain\n---\n"])
@pytest.mark.parametrize(
    ("below", "line", "sent"),
    [
        ("It must be Paris.\n\n---\n\nBe strict.", 9, "line 7 would be sent to the candidate"),
        ("Paris.\n\nOnly.\n---\n", 10, "lines 7 to 9 would be sent to the candidate"),
        ("Paris.\n\n---\n", 9, "line 7 would be sent to the candidate, from 'Paris.'"),
        ("~~~checks\n- equals: x\n~~~\n---\n\nOr so.", 10, "lines 7 to 9 would be sent"),
        ("Paris.\n---\n~~~checks\n- equals: x\n~~~", 8, "line 7 would be sent"),
        ("Grading\n---\nIt is Paris.", 8, "line 7 would be sent to the candidate, from 'Grading'"),
        ("A.\n---\nB.\n---\nC.", 10, "lines 7 to 9 would be sent to the candidate, from 'A.'"),
        ("---\nA.", 7, "a second line '---' (the first is line 5)"),
    ],
)
def test_a_second_rule_names_the_lines_that_it_would_send(
    front: str, below: str, line: int, sent: str
) -> None:
    error = problem(f"{front}# User\n\nWhere?\n\n---\n\n{below}\n")
    more = front.count("\n")
    numbers = re.sub(r"\d+", lambda number: str(int(number[0]) + more), sent)
    assert numbers in error.message
    assert error.line == line + more
    assert "write '***'" in (error.hint or "")


@pytest.mark.parametrize("rule", ["***", "- - -", " ---", "```\n---\n```", "| a |\n|---|"])
def test_other_rules_in_instructions_are_text(rule: str) -> None:
    file = parsed(f"# User\n\nWhere?\n\n---\n\nParis.\n\n{rule}\n\nBe strict.\n")
    assert [turn.section.text for turn in file.turns] == ["Where?"]


def test_a_rule_in_fenced_code_cuts_nothing() -> None:
    file = parsed("# 👤\n\nQ\n\n---\n\nA\n```\n---\n```\n")
    assert file.instructions is not None
    assert file.instructions.text == "A\n```\n---\n```"


def test_turns_alternate_after_a_system_text() -> None:
    assert turns("Be brief.\n\n# 👤\nA\n# 🤖\nB\n# 👤 C\n---\nE\n") == [
        ("system", "Be brief."),
        ("user", "A"),
        ("assistant", "B"),
        ("user", "C"),
    ]


def test_a_system_marker_is_the_same_as_text_before_the_first_turn() -> None:
    assert turns("# ⚙️\nS\n# 👤\nA\n---\nE") == turns("S\n# 👤\nA\n---\nE")


@pytest.mark.parametrize("marker", ["# 👤", "# 👤\ufe0f", "   # 👤", "# 👤   "])
def test_a_marker_may_be_indented_or_have_a_variation_selector(marker: str) -> None:
    assert turns(f"{marker}\nA\n---\nE") == [("user", "A")]


@pytest.mark.parametrize("line", ["#👤 x", "    # 👤 x", "I like # 👤 x", "## 👤"])
def test_what_is_not_a_marker_is_text(line: str) -> None:
    assert turns(f"# 👤\nA\n{line}\n---\nE") == [("user", f"A\n{line}")]


def test_a_marker_in_fenced_code_is_text() -> None:
    assert turns("# 👤\n~~~\n# 🤖\n~~~\n---\nE") == [("user", "~~~\n# 🤖\n~~~")]


def test_sections_are_trimmed_and_kept_to_the_byte_inside() -> None:
    assert turns("# 👤\n\n\ufeff  A  \n\n\n   B\u3000\n \n---\nE") == [("user", "A  \n\n\n   B")]


@pytest.mark.parametrize("space", ["\x1c", "\x85"])
def test_control_characters_are_not_trimmed(space: str) -> None:
    assert turns(f"# 👤\nA{space}\n---\nE") == [("user", f"A{space}")]


def test_an_empty_evaluation_is_not_an_evaluation() -> None:
    assert parsed("# 👤\nA\n---").instructions is None


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("", "no user message", 1),
        ("only text\n---\nE", "no user message", 1),
        ("# 🤖\nA\n# 👤\nB\n---\nE", "must start with a user", 1),
        ("S\n# 🤖\nA\n# 👤\nB\n---\nE", "must start with a user", 2),
        ("# 👤\nA\n# 👤\nB\n---\nE", "two user messages", 3),
        ("# 👤\nA\n# 🤖\nB\n# 🤖\nC\n# 👤\nD\n---\nE", "two assistant messages", 5),
        ("# 👤\nA\n# 🤖\n\n# 👤\nB\n---\nE", "assistant turn is empty", 3),
        ("# 👤\nA\n# 🤖\nB\n---\nE", "ends with a fixed answer", 3),
        ("# 👤\nA\n# ⚙️\nS\n---\nE", "can be only one system text", 3),
        ("# 👤\nA\n", "nothing says how to judge", 1),
        ("# 👤\n```\nA\n---\nE\n", "never closed", 2),
    ],
)
def test_a_wrong_structure_is_reported_with_its_line(text: str, message: str, line: int) -> None:
    error = problem(text)
    assert message in error.message
    assert error.line == line


def test_an_empty_assistant_turn_may_be_meant_to_be_filled() -> None:
    hint = problem("# 👤\nA\n# 🤖\n\n# 👤\nB\n---\nE").hint
    assert hint == "write what it said, or '# 🤖 @name' for a turn that the candidate fills"


# --- comments


@pytest.mark.parametrize(
    "commented",
    [
        "# 👤\n\nHello <!-- c -->\n\n---\n\nE\n",
        "# 👤\n\n<!-- c -->\n\nHello\n\n---\n\nE\n",
        "<!-- # 👤\n---\n-->\n# 👤\n\nHello<!-- a --><!-- b -->\n\n---\n\nE\n",
        "# 👤\n\nHello\n<!-- c\n\n---\n\n -->\n---\n\nE\n",
    ],
)
def test_comments_reach_nobody(commented: str) -> None:
    file = parsed(commented)
    assert [(turn.role, turn.section.text) for turn in file.turns] == [("user", "Hello")]
    assert file.instructions is not None
    assert file.instructions.text == "E"


def test_a_comment_between_blank_lines_takes_one_with_it() -> None:
    assert turns("# 👤\nA\n\n<!-- c -->\n\nB\n---\nE") == [("user", "A\n\nB")]


@pytest.mark.parametrize(
    "text",
    [
        "```\n<!-- c -->\n```",
        "~~~html\n<!-- c\n-->\n~~~",
        "What does `<!-- TODO -->` do in HTML?",
        "Explain `<!--` and ``a ` <!-- b -->`` here.",
        "Code `over\ntwo <!-- c --> lines` is code.",
        "Text:\n\n    <!-- c -->\n    <b>\n\nMore.",
        "Text:\n\n\t<!-- c -->",
    ],
)
def test_a_comment_in_code_is_text(text: str) -> None:
    assert turns(f"# 👤\n{text}\n---\nE") == [("user", text)]


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("A ` <!-- c --> B", "A ` B"),
        (r"A \`<!-- c -->\` B", r"A \`\` B"),
        ("`a` <!-- `b` --> `c`", "`a` `c`"),
        ("`a <!-- c -->\n\nb`", "`a\n\nb`"),
        ("Text\n    <!-- c -->\nmore", "Text\nmore"),
        ("A <!-- `\n--> `<!-- d -->`", "A `<!-- d -->`"),
    ],
)
def test_a_comment_beside_code_is_removed(text: str, sent: str) -> None:
    assert turns(f"# 👤\n{text}\n---\nE") == [("user", sent)]


@pytest.mark.parametrize("told", ["E <!-- c -->", "<!-- a\n\n# User\nb -->\nE", "Like `-->`."])
def test_a_comment_in_instructions_is_text(told: str) -> None:
    file = parsed(f"# 👤\nHello `<!--`\n---\n{told}\n")
    assert file.instructions is not None
    assert file.instructions.text == told
    assert file.turns[0].section.text == "Hello `<!--`"


def test_a_block_of_checks_in_a_comment_is_no_block() -> None:
    file = parsed("# 👤\nHello\n---\nE\n<!--\n~~~checks\n- equals: x\n~~~\n-->\n")
    assert file.checks is None


@pytest.mark.parametrize("text", ["A <!-- c --> B", "A <!-- c\n\nd --> B", "`a` --> <!-- B"])
def test_a_comment_in_a_plain_file_is_text(text: str) -> None:
    file = parsed(f"---\ntemplate: plain\n---\n# 👤\n{text}\n---\nE -->\n")
    assert [turn.section.text for turn in file.turns] == [text]
    prompt = parse_prompt("prompts/p.md", f"---\ntemplate: plain\n---\n{text}\n")
    assert prompt.turns[0].section.text == text


def test_a_comment_that_never_ends_is_text() -> None:
    assert turns("# 👤\nA <!-- b\n---\nE") == [("user", "A <!-- b")]


def test_lines_below_a_comment_keep_their_numbers() -> None:
    section = parsed("# 👤\nA\n<!-- x\ny -->\nB\n---\nE").turns[0].section
    assert (section.text, section.lines) == ("A\nB", (2, 5))


# --- frontmatter


def test_an_unknown_field_has_a_hint() -> None:
    error = problem("---\nid: a\nsystemPromts: [a]\n---\n" + HELLO)
    assert (error.message, error.line) == ("unknown field 'systemPromts'", 3)
    assert error.hint == "did you mean 'systemPrompts'?"


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("tags: [2024]", "'tags' must be a list of texts"),
        ("tags: a", "'tags' must be a list of texts"),
        ("tags: [a, a, _json]", "unknown special tag '_json'"),
        ("tags: [_evaluator]", "'_evaluator' marks judge prompts"),
        ("id: 5", "'id' must be a text"),
        ("attempts: 0", "'attempts' must be a whole number from 1 to 10,000"),
        ("attempts: true", "'attempts' must be a whole number"),
        ("threshold: 1.5", "'threshold' must be a number from 0 to 1"),
        ("template: liquid", "'template' must be 'plain' or 'jinja'"),
        ("systemPrompts: a", "'systemPrompts' must be a list of ids"),
        ("options: {temperature: .nan}", "'temperature' must be a number"),
        ("options: {providerOptions: {x: .inf}}", "not finite"),
        ("options: {stop: [1]}", "'stop' must be a text or a list"),
        ("options: {topK: 1}", "unknown field 'topK'"),
    ],
)
def test_a_field_has_its_type(field: str, message: str) -> None:
    error = problem(test_file("description: x", field))
    assert message in error.message
    assert error.line == 3


def test_a_field_of_the_options_has_its_own_line() -> None:
    error = problem(test_file("description: x", "options:", "  seed: 1", "  topP: 7"))
    assert error.line == 5


def test_a_fence_shown_in_a_fence_is_not_a_block_of_checks() -> None:
    assert parsed(test_file(evaluation="````\n```checks\n```\n````")).instructions is not None


def test_tools_and_a_schema_do_not_go_together() -> None:
    error = problem(test_file("availableTools: [a]", "structuredResponseSchema: b"))
    assert "cannot be combined" in error.message


def test_an_empty_list_of_tools_goes_with_a_schema() -> None:
    assert parsed(test_file("availableTools: []", "structuredResponseSchema: b")).schema == "b"


def test_no_evaluators_differs_from_those_of_the_settings() -> None:
    assert parsed(test_file("evaluators: []")).evaluators == ()
    assert parsed(HELLO).evaluators is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("[]", "an empty list"),
        ("{q: []}", "an empty list"),
        ("{q: {r: s}}", "one text or number"),
        ("{q: [[a]]}", "one text or number"),
        ("[a]", "a mapping from names"),
        ("{q: .nan}", "is not a number"),
        ("{_file: a}", "cannot be the name"),
        ("[{a: [0,1,2,3,4,5,6,7,8,9]}" + ", {}]", ""),
        ("{" + ", ".join(f"n{i}: [0,1,2,3,4,5,6,7,8,9]" for i in range(6)) + "}", "100,000 cases"),
    ],
)
def test_replacements_have_their_shape(value: str, message: str) -> None:
    if not message:
        assert parsed(test_file(f"replacements: {value}")).replacements
        return
    error = problem(test_file(f"replacements: {value}"))
    assert message in error.message
    assert error.line == 2


def test_replacements_that_say_nothing_are_as_none() -> None:
    assert parsed(test_file("replacements:", "tags: [a]")).replacements == ({},)


# --- prompts and names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the prompt is empty"),
        ("Hi\n\n# 👤\n\nx\n", "no user or assistant messages"),
        ("Hi\n\n---\n\nx\n", "not judged"),
        ("---\nid: 5\n---\nX", "'id' must be a text"),
        ("---\nsystemPrompts: []\n---\nX", "unknown field"),
    ],
)
def test_a_system_prompt_is_only_a_system_text(text: str, message: str) -> None:
    with pytest.raises(FileProblem, match=message):
        parse_prompt("prompts/p.md", text)


def test_an_evaluator_prompt_may_have_turns() -> None:
    prompt = parse_prompt("prompts/e.md", "---\ntags: [_evaluator]\n---\nS\n# 👤\nU")
    assert prompt.is_evaluator
    assert [turn.role for turn in prompt.turns] == ["system", "user"]


@pytest.mark.parametrize(
    ("path", "folder", "id"),
    [
        ("tests/a/b.md", None, "a/b"),
        ("data/tests/a/b.md", "data/tests", "a/b"),
        ("a/b.md", ".", "a/b"),
        ("b.md", ".", "b"),
        ("tests/v1.2.md", "tests", "v1.2"),
    ],
)
def test_the_default_id_is_the_path_below_its_folder(
    path: str, folder: str | None, id: str
) -> None:
    assert default_id(path, folder) == id


def test_line_ends_and_a_byte_order_mark_do_not_count() -> None:
    assert normalise(b"\xef\xbb\xbfa\r\nb\rc\n") == "a\nb\nc\n"


def test_what_is_not_utf_8_has_a_line() -> None:
    with pytest.raises(FileProblem, match="not UTF-8: byte 0xe9") as caught:
        normalise(b"a\nb\n\xe9")
    assert caught.value.line == 3


PIECES = [
    "---", "---\n", "# 👤", "# 🤖", "# ⚙️", "# ▶", "<!--", "-->", "```", "~~~checks", "\n", "\r",
    " ", "{{a}}", "{%", "tags:", "[a]", "replacements:", "{a: b}", "text", "\0", "\u2028", "@x",
]  # fmt: skip


def refused_at(parse: Callable[[str, str], object], text: str) -> int | None:
    """The line of the problem; None when there is none."""
    try:
        parse("tests/t.md", text)
    except FileProblem as problem:
        return problem.line or 0
    return None


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=30).map("".join))
def test_any_text_parses_or_is_refused_with_a_line(text: str) -> None:
    for parse in (parse_test, parse_prompt):
        line = refused_at(parse, text)
        assert line is None or 1 <= line <= text.count("\n") + 1


def test_a_test_that_checks_itself_needs_no_evaluation() -> None:
    text = "---\nstructuredResponseSchema: s\n---\n# 👤\n\nHi\n"
    assert parse_test("tests/a.md", text).instructions is None


def test_a_field_of_another_system_is_a_warning() -> None:
    test, collector = read_test(
        "tests/t.md", "---\ntags: [a]\nauthor: me\nstatus: {x: 1}\n---\n" + HELLO
    )
    assert collector.problems == []
    assert test.tags == ("a",)
    assert [
        (warning.message, warning.line, warning.severity) for warning in collector.warnings
    ] == [
        ("the field 'author' has no effect here; it is ignored", 3, "warning"),
        ("the field 'status' has no effect here; it is ignored", 4, "warning"),
    ]


@pytest.mark.parametrize(
    ("field", "hint"),
    [
        ("assert", "write instructions for a judge, or a block '~~~checks', below the last '---'"),
        ("vars", "write 'replacements', or 'dataset' for a file of rows"),
        ("provider", "evalstore.yaml names the models that answer under 'candidates'"),
        ("providers", "evalstore.yaml names the models that answer under 'candidates'"),
        ("prompts", "the question follows a line '# User'; 'systemPrompts' names system prompts"),
        ("metric", "write instructions for a judge, or a block '~~~checks', below the last '---'"),
        ("Scorer", "write instructions for a judge, or a block '~~~checks', below the last '---'"),
        ("author", None),
    ],
)
def test_a_field_of_another_tool_is_answered_with_what_replaces_it(
    field: str, hint: str | None
) -> None:
    _, collector = read_test("tests/t.md", f"---\n{field}: [a]\n---\n" + HELLO)
    assert [warning.hint for warning in collector.warnings] == [hint]


SEEN = "the fields at the start are not frontmatter, so the model would see them"


@pytest.mark.parametrize(
    ("start", "line", "hint"),
    [
        ("tags: [a]\n---\n", 1, "write a line '---' above line 1"),
        ("\n\nid: x\ntags:\n- a\n\n---\n\n", 3, "write a line '---' above line 3"),
        ("id: capital\n---\n", 1, "write a line '---' above line 1"),
        ("dataset: data/a.csv\n---\n", 1, "write a line '---' above line 1"),
        ("tags: [a]\n\n", 1, "write a line '---' above line 1, and one below the fields"),
        ("systemPrompts: [x]\n", 1, "write a line '---' above line 1, and one below the fields"),
        (
            "systemPrompts: [x]\n\nNo heading.\n",
            1,
            "write a line '---' above line 1, and one below the fields",
        ),
    ],
)
def test_fields_without_the_first_rule_are_an_error(start: str, line: int, hint: str) -> None:
    with pytest.raises(FileProblem, match=f"^{SEEN}$") as caught:
        read_test("tests/t.md", start + HELLO)
    assert (caught.value.line, caught.value.hint) == (line, hint)


@pytest.mark.parametrize(
    ("start", "line"),
    [
        ("\n\nauthor: me\ntags:\n- a\n\n---\n\n", 3),
        ("tag: [a]\n# a comment\n---\n", 1),
        ("id: 17\ndescription: a bicycle\n---\n", 1),
        ("tags: red, blue\n---\n", 1),
    ],
)
def test_fields_that_may_be_text_are_a_warning(start: str, line: int) -> None:
    test, collector = read_test("tests/t.md", start + HELLO)
    assert test.tags == ()
    assert [(each.line, each.severity, each.hint) for each in collector.warnings] == [
        (line, "warning", f"write a line '---' above line {line}")
    ]
    with pytest.raises(FileProblem, match=SEEN) as caught:
        parse_prompt("prompts/p.md", f"{start}Be brief.\n")
    assert caught.value.severity == "error", "no warning alone leaves out a prompt"


@pytest.mark.parametrize(
    "start",
    [
        "Note: answer in English.\n\n---\n\n",
        "tags: they group tests.\n\nThey change: nothing.\nA line.\n---\n",
        "| id | tags |\n|---|---|\n| a: 1 | b |\n---\n",
        "Your role: a guide\n---\n",
        "subject: travel\ntone: formal\n---\n",
        "options: [red, blue]\n\n",
        "description: a robot\nanswer: briefly\n\n",
        "",
    ],
)
def test_ordinary_text_above_a_rule_is_no_frontmatter(start: str) -> None:
    _, collector = read_test("tests/t.md", start + HELLO)
    assert collector.warnings == []


def test_a_list_at_the_start_of_a_question_is_no_frontmatter() -> None:
    _, collector = read_test("tests/t.md", "tags: [a, b]\n\nWhich is shorter?\n\n---\nJudge.\n")
    assert collector.warnings == []


@pytest.mark.parametrize("word", ["check", "Checks", "chekcs", "check:", "{checks} here"])
def test_a_block_whose_word_is_nearly_checks_is_text_with_a_warning(word: str) -> None:
    block = f"~~~{word}\n- contains: Hi\n~~~\n"
    test, collector = read_test("tests/t.md", f"# 👤\n\n{block}\n---\n\nJudge.\n\n{block}")
    assert test.checks is None
    assert [
        (warning.message, warning.line, warning.severity, warning.hint)
        for warning in collector.warnings
    ] == [
        (f"the block '{word}' is text for the {reader}, not a block of checks", line, *rest)
        for reader, line, rest in (
            ("candidate", 3, ("warning", "did you mean 'checks'?")),
            ("judge", 11, ("warning", "did you mean 'checks'?")),
        )
    ]


@pytest.mark.parametrize("word", ["", "yaml", "c", "css", "chuck", "cs", "text", "checks"])
def test_other_blocks_of_code_are_no_misspelt_checks(word: str) -> None:
    block = f"~~~{word}\n- contains: Hi\n~~~\n"
    _, collector = read_test("tests/t.md", f"# 👤\n\n{block}\n---\n\nJudge.\n\n{block}")
    assert collector.warnings == []


@pytest.mark.parametrize(
    "name", ["tag", "system_prompts", "systemPrompt", "replacement", "dataSet"]
)
def test_a_slip_in_the_name_of_a_field_is_an_error(name: str) -> None:
    _, collector = read_test("tests/t.md", f"---\n{name}: [a]\n---\n" + HELLO)
    assert [item.message for item in collector.problems] == [f"unknown field '{name}'"]
    assert collector.warnings == []


def test_a_prompt_warns_of_fields_of_another_system() -> None:
    prompt = parse_prompt("prompts/p.md", "---\nauthor: me\n---\nBe brief.")
    assert [warning.line for warning in prompt.warnings] == [2]
