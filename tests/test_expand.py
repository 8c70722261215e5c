from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore import expand, hashing
from evalstore.cases import Drafter
from evalstore.dataset import Dataset
from evalstore.errors import FileProblem, LimitProblem, Problem
from evalstore.expand import expand_prompt, expand_test
from evalstore.library import KEPT_AT_ONCE, Expansion, Library
from evalstore.parse import parse_prompt, parse_test
from evalstore.rows import labels
from evalstore.settings import DEFAULT_PROMPT
from evalstore.values import RUNTIME_NAMES
from tests.builders import HELLO, expanded, ids, library, shown, test_file, told


def problems(text: str) -> list[tuple[int | None, str]]:
    return [(problem.line, problem.message) for problem in expanded(text).problems]


def rows(*frontmatter: str, text: str) -> list[str]:
    return [messages[0][1] for messages in shown(expanded(test_file(*frontmatter, shown=text)))]


# --- rows


def test_lists_combine_with_the_first_key_slowest() -> None:
    found = rows("replacements: {a: [1, 2], b: [x, y]}", text="`{{a}}``{{b}}`")
    assert found == ["1x", "1y", "2x", "2y"]


def test_items_come_one_after_the_other() -> None:
    found = rows(
        "replacements:", "  - {q: p1, r: [x, y]}", "  - {q: [p2, p3], r: z}", text="`{{q}}``{{r}}`"
    )
    assert found == ["p1x", "p1y", "p2z", "p3z"]


def test_equal_rows_count_once() -> None:
    found = rows("replacements:", "  - {q: [a, a, b]}", "  - {q: b}", text="`{{q}}`")
    assert found == ["a", "b"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("440.0", "440.0"),
        ("1.10", "1.10"),
        ("007", "007"),
        ("1e3", "1e3"),
        ("Yes", "Yes"),
        ("2013-04-13", "2013-04-13"),
        ("True", "true"),
        ("~", "null"),
        (".inf", ".inf"),
        ("'  a  '", "a"),
    ],
)
def test_a_scalar_reads_as_written(value: str, text: str) -> None:
    assert rows(f"replacements: {{q: {value}}}", text="`{{q}}`") == [text]


def test_a_scalar_has_its_type_in_an_expression() -> None:
    assert rows("replacements: {n: 1.50, s: '2'}", text="{{ n + 1 }} {{ s * 2 }}") == ["2.5 22"]


@pytest.mark.parametrize("order", [("a: '<`{{b}}`>'", "b: X"), ("b: X", "a: '<`{{b}}`>'")])
def test_values_may_use_earlier_or_later_names(order: tuple[str, str]) -> None:
    assert rows("replacements:", *(f"  {line}" for line in order), text="`{{a}}`") == ["<X>"]


def test_a_label_says_what_differs() -> None:
    text = test_file("replacements: {a: [1, 2], b: [x], c: [p, q]}", shown="`{{a}}{{b}}{{c}}`")
    file = expanded(text).file
    assert file is not None
    assert [case.row for case in file.cases] == ["a=1, c=p", "a=1, c=q", "a=2, c=p", "a=2, c=q"]


@given(st.lists(st.dictionaries(st.sampled_from("ab"), st.text(max_size=2)), max_size=6))
def test_labels_are_unique(values: list[dict[str, str]]) -> None:
    assert len(set(labels(values))) == len(values)


def test_a_row_keeps_its_key_when_the_body_changes() -> None:
    before = expanded(test_file("replacements: {q: [a, b]}", shown="`{{q}}`")).file
    after = expanded(test_file("replacements: {q: [b, a]}", shown="changed `{{q}}`")).file
    assert before is not None
    assert after is not None
    assert [case.key for case in before.cases] == [case.key for case in after.cases][::-1]


# --- wrong names


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (test_file("replacements: {zz: [a, b]}"), 2, "replacement 'zz' is never used"),
        (test_file(shown="a\n{{later}}"), 4, "'later' is not defined"),
        (test_file(told="{{later}}"), 7, "'later' is not defined"),
        (
            test_file("replacements: {name: a}", shown="`{{Name}} {{name}}`"),
            6,
            "'Name' is not defined",
        ),
        (test_file("replacements: {q: '{{r}}'}", shown="{{q}}"), 2, "'r' is not defined"),
        (
            test_file("replacements:", "  - {q: a, r: b}", "  - {q: c}", shown="{{q}}{{r}}"),
            4,
            "this row has no value for 'r'",
        ),
        (
            test_file("replacements: {a: '{{b}}', b: '{{a}}'}", shown="{{a}}"),
            2,
            "the replacements refer to one another in a circle: a -> b -> a",
        ),
    ],
)
def test_a_wrong_name_is_told_with_its_line(text: str, line: int, message: str) -> None:
    assert problems(text) == [(line, message)]


def test_all_wrong_names_are_told_at_once() -> None:
    assert len(problems(test_file("replacements: {z: a}", shown="{{x}}", told="{{y}}"))) == 3


def test_a_reserved_name_stays_text_with_a_warning() -> None:
    expansion = expanded(test_file(shown="{{_foo}}", told="{{_actualResponse}}"))
    assert {problem.severity for problem in expansion.problems} == {"warning"}
    assert shown(expansion) == [[("user", "{{_foo}}")]]
    assert told(expansion) == ["{{_actualResponse}}"]


def test_a_plain_file_is_shown_as_it_is() -> None:
    assert rows("template: plain", text="{{q}} {% x %} {{_file:a}}") == [
        "{{q}} {% x %} {{_file:a}}"
    ]


# --- references


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        (
            "systemPrompts: [helpfull]",
            "there is no system prompt 'helpfull'",
            "did you mean 'helpful'?",
        ),
        ("availableTools: [wether]", "there is no tool 'wether'", "did you mean 'weather'?"),
        ("structuredResponseSchema: x", "there is no schema 'x'", "the schemas are invoice"),
    ],
)
def test_an_unknown_id_has_a_hint(line: str, message: str, hint: str) -> None:
    known = library(prompts={"helpful": ("1",)}, tools={"weather": "2"}, schemas={"invoice": "3"})
    (problem,) = expanded(test_file(line), known).problems
    assert (problem.message, problem.hint, problem.line) == (message, hint, 2)


def test_null_among_the_system_prompts_means_also_without() -> None:
    text = test_file("systemPrompts: [a, null]")
    file = expanded(text, library(prompts={"a": ("1", "2")})).file
    assert file is not None
    assert file.cases[0].prompts == ("1", "2", None)


def test_equal_system_prompts_count_once() -> None:
    known = library(prompts={"a": ("1", "2"), "b": ("2", "3")})
    file = expanded(test_file("systemPrompts: [b, a, null, b]"), known).file
    assert file is not None
    assert file.cases[0].prompts == ("2", "3", "1", None)


def test_a_file_becomes_a_part_in_its_place() -> None:
    known = library({"docs/a.txt": b"alpha"})
    text = test_file(shown="Read `{{_file:./docs//a.txt}}` now")
    expansion = expanded(text, known)
    (id,) = expansion.files
    assert shown(expansion)[0][0][1] == [
        {"text": "Read "},
        {"file": id, "path": "docs/a.txt", "mediaType": "text/plain"},
        {"text": " now"},
    ]


def test_a_file_may_come_from_a_replacement_and_stand_in_the_instructions() -> None:
    text = test_file("replacements: {d: 'A `{{_file:a}}`'}", shown="`{{d}}`", told="`{{d}}`")
    expansion = expanded(text, library({"a": b"x"}))
    assert told(expansion)[0] == shown(expansion)[0][0][1]


@pytest.mark.parametrize("head", ["{{_file:p.png}}\n", "# 👤\nA\n# 🤖\n{{_file:p.png}}\n"])
def test_only_users_show_pictures(head: str) -> None:
    (problem,) = expanded(head + HELLO, library({"p.png": b"x"})).problems
    assert problem.message == "'p.png' (image/png) can only be shown in a user message"


def test_other_messages_may_show_texts() -> None:
    expansion = expanded("See {{_file:a}}\n" + HELLO, library({"a": b"x"}))
    assert expansion.file is not None


def test_a_case_says_what_a_model_must_be_able_to_do() -> None:
    known = library({"p.png": b"x"}, tools={"w": "1"})
    file = expanded(test_file("availableTools: [w]", shown="{{_file:p.png}}"), known).file
    assert file is not None
    assert file.cases[0].needs == ("image", "tools")


# --- what changes an id


SAME = {
    "tags": test_file("tags: [a, b]"),
    "id and description": test_file("id: x", "description: y"),
    "comment": "<!-- c -->\n" + HELLO.replace("Hello", "Hello <!-- d -->"),
    "key order": test_file("attempts: 2", "tags: [b]"),
    "trailing blanks": HELLO.replace("---", "---  ").replace("# 👤", "# 👤  "),
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_what_nobody_is_shown_changes_no_id(text: str) -> None:
    assert ids(text) == ids(HELLO)


@pytest.mark.parametrize("tag", ["_json_mode", "_has_tools", "_tools_only"])
def test_a_special_tag_changes_the_test(tag: str) -> None:
    assert ids(test_file(f"tags: [{tag}]"))[0][0] != ids(HELLO)[0][0]


def test_special_tags_are_not_joined_to_the_text() -> None:
    assert ids(test_file(shown="Go_json_mode")) != ids(test_file("tags: [_json_mode]", shown="Go"))


def test_instructions_change_only_the_evaluation() -> None:
    before, after = ids(HELLO)[0], ids(HELLO.replace("greeting", "smile"))[0]
    assert before[0] == after[0]
    assert before[1] != after[1]


def test_one_test_may_have_many_evaluations() -> None:
    found = ids(test_file("replacements: {a: [x, y]}", told="`{{a}}`"))
    assert len({tests for tests, _ in found}) == 1
    assert len({evaluation for _, evaluation in found}) == 2


def test_an_empty_evaluation_is_none() -> None:
    assert told(expanded(test_file(told=""))) == [None]


def test_a_schema_is_checked_without_instructions() -> None:
    file = expanded(
        test_file("structuredResponseSchema: s", told=""), library(schemas={"s": "1"})
    ).file
    assert file is not None
    assert file.cases[0].judged_by == ("checks",)


ORDINARY = st.lists(st.from_regex(r"[a-z][a-z_]{0,5}", fullmatch=True), max_size=3)


@given(st.permutations(["id: x", "description: y", "replacements: {q: [a, b]}"]), ORDINARY)
def test_key_order_and_ordinary_tags_never_change_ids(fields: list[str], tags: list[str]) -> None:
    plain = ids(test_file("replacements: {q: [a, b]}", shown="`{{q}}`"))
    assert ids(test_file(*fields, f"tags: [{', '.join(tags)}]", shown="`{{q}}`")) == plain


TEXT = st.text(alphabet="ab \n-#`👤🤖é", min_size=1, max_size=20)


@given(TEXT)
def test_a_value_never_changes_the_structure(value: str) -> None:
    quoted = '"' + value.replace("\n", "\\n") + '"'
    text = test_file(f"replacements: {{q: {quoted}}}", shown="x`{{q}}`y", told="x`{{q}}`y")
    expansion = expanded(text)
    assert shown(expansion) == [[("user", f"x{value.strip()}y")]]
    assert told(expansion) == [f"x{value.strip()}y"]


# --- prompts


def test_a_prompt_has_a_version_for_each_row() -> None:
    prompt = parse_prompt("prompts/p.md", "---\nreplacements: {l: [EN, FR]}\n---\nSpeak `{{l}}`\n")
    found, expansion = expand_prompt(prompt, library())
    assert len(found) == 2
    assert not expansion.problems


def test_rows_that_make_equal_prompts_are_one_version() -> None:
    text = "---\nreplacements: {l: [EN, FR, DEU]}\n---\n{{ l | length }} letters\n"
    found, expansion = expand_prompt(parse_prompt("prompts/p.md", text), library())
    assert [json.loads(expansion.contents[id][1])["messages"][0]["content"] for id in found] == [
        "2 letters",
        "3 letters",
    ]


def test_an_evaluator_prompt_keeps_its_runtime_names_without_backticks() -> None:
    text = (
        "---\ntags: [_evaluator]\n---\n`{{_evaluationInstructions}}`\n# 👤\n`{{ _actualResponse }}`"
    )
    (id,), expansion = expand_prompt(parse_prompt("prompts/e.md", text), library())
    assert '"{{_evaluationInstructions}}"' in expansion.contents[id][1]
    assert '"{{_actualResponse}}"' in expansion.contents[id][1]


@pytest.mark.parametrize(
    "text",
    [
        "{{_evaluationInstructions}}",
        "{{_evaluationInstructions}} {{_actualResponse|upper}}",
        "{{_evaluationInstructions}} {{_actualResponse}} {{_actual}}",
    ],
)
def test_an_evaluator_prompt_uses_its_runtime_names_as_they_are(text: str) -> None:
    prompt = parse_prompt("prompts/e.md", f"---\ntags: [_evaluator]\n---\n{text}\n")
    found, expansion = expand_prompt(prompt, library())
    assert not found
    assert expansion.problems


def test_an_evaluator_prompt_may_use_every_runtime_name() -> None:
    names = "".join("`{{" + name + "}}` " for name in RUNTIME_NAMES)
    text = (
        f"---\ntags: [_evaluator]\nreplacements: {{x: 'S {{{{_schema}}}}'}}\n---\n{names}{{{{x}}}}"
    )
    (id,), expansion = expand_prompt(parse_prompt("prompts/e.md", text), library())
    filled = "".join("{{" + name + "}} " for name in RUNTIME_NAMES) + "S {{_schema}}"
    assert json.loads(expansion.contents[id][1])["messages"] == [
        {"role": "system", "content": filled}
    ]


def test_an_unknown_runtime_name_is_an_error_that_lists_the_known_ones() -> None:
    text = (
        "---\ntags: [_evaluator]\n---\n{{_evaluationInstructions}}\n{{_actualResponse}}\n{{_tool}}"
    )
    found, expansion = expand_prompt(parse_prompt("prompts/e.md", text), library())
    assert not found
    (problem,) = expansion.problems
    assert (problem.message, problem.line) == ("'_tool' is not defined", 6)
    assert problem.hint == "evaluator prompts know " + ", ".join(RUNTIME_NAMES)


@pytest.mark.parametrize("name", RUNTIME_NAMES)
def test_a_runtime_name_means_nothing_in_a_test(name: str) -> None:
    expansion = expanded(test_file(shown="{{" + name + "}}", told="Judge."))
    assert shown(expansion) == [[("user", "{{" + name + "}}")]]
    assert [problem.severity for problem in expansion.problems] == ["warning"]


@pytest.mark.parametrize("name", RUNTIME_NAMES)
def test_no_replacement_takes_a_runtime_name(name: str) -> None:
    with pytest.raises(FileProblem, match="cannot be the name"):
        parse_prompt("prompts/e.md", f"---\nreplacements: {{{name}: x}}\n---\nHi")


def test_the_path_of_a_test_is_not_part_of_its_id() -> None:
    one, other = (
        expand_test(parse_test(path, HELLO), library()) for path in ("tests/a.md", "tests/b.md")
    )
    assert one.contents == other.contents


# --- groups


def test_a_group_is_never_taken_for_a_row() -> None:
    text = test_file(
        "group: '{{group}}'",
        "replacements: {group: [a, b]}",
        shown="{{group}}",
        told="~~~checks\n- contains: a\n- {allEqual: , scope: group}\n~~~",
    )
    found = expanded(text).file
    assert found is not None
    assert [case.row for case in found.cases] == ["group=a", "group=b", "all of a", "all of b"]
    assert len({case.key for case in found.cases}) == 4


# --- what a file says of its cases


def test_a_file_says_how_often_by_whom_and_from_when_on_its_cases_pass() -> None:
    found = expanded(test_file("id: x", "attempts: 3", "evaluators: [j]", "threshold: 0.5")).file
    assert found is not None
    assert (found.id, found.attempts, found.evaluators, found.threshold) == ("x", 3, ("j",), 0.5)


def test_what_a_file_depends_on_is_kept_with_the_ids_it_had() -> None:
    known = library(
        {"a.txt": b"alpha"},
        prompts={"p": ("1", "2")},
        tools={"w": "3"},
        data={"q.jsonl": '{"q": "a"}\n'},
    )
    head = (
        "systemPrompts: [null, p, gone]",
        "availableTools: [w, gone]",
        "dataset: q.jsonl",
    )
    found = expanded(test_file(*head, shown="{{ q }} {{_file:a.txt}}"), known)
    assert found.dependencies == {
        "dataset:q.jsonl": hashing.hash_bytes(b'{"q": "a"}\n'),
        "prompt:p": ["1", "2"],
        "prompt:gone": [],
        "tool:w": "3",
        "tool:gone": None,
    }
    assert [(one.message, one.line) for one in found.problems] == [
        ("there is no system prompt 'gone'", 2),
        ("there is no tool 'gone'", 3),
    ]


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        (("systemPrompts:", "  - a", "  - gone"), 4),
        (("availableTools:", "  - w", "  - gone"), 4),
    ],
)
def test_an_unknown_id_is_told_with_its_own_line(lines: tuple[str, ...], place: int) -> None:
    known = library(prompts={"a": ("1",)}, tools={"w": "1"})
    (problem,) = expanded(test_file(*lines), known).problems
    assert problem.line == place


def test_a_file_depends_on_its_schema() -> None:
    found = expanded(test_file("structuredResponseSchema: s"), library(schemas={"s": "4"}))
    assert found.dependencies == {"schema:s": "4"}


def test_an_evaluator_prompt_is_no_system_prompt() -> None:
    known = replace(library(), evaluator_prompts={"strict": ("1",)})
    (problem,) = expanded(test_file("systemPrompts: [strict]"), known).problems
    assert problem.hint == "it is an evaluator prompt (tag '_evaluator'), not a system prompt"


def test_data_that_cannot_be_opened_is_a_problem_of_the_file() -> None:
    def fail(_spec: object, _test: str) -> tuple[Dataset, str]:
        raise FileProblem("it is gone", 2, hint="bring it back")

    found = expanded(test_file("dataset: q.jsonl"), replace(library(), open_data=fail))
    assert found.problems == [Problem("tests/t.md", "it is gone", 2, hint="bring it back")]
    assert found.file is None


def test_a_file_that_could_not_be_read_comes_to_nothing() -> None:
    test = replace(parse_test("tests/t.md", HELLO), readable=False)
    assert expand_test(test, library()) == Expansion()


def test_contents_go_to_the_sink_when_there_are_many() -> None:
    taken: dict[str, tuple[str, str]] = {}
    numbers = ", ".join(map(str, range(KEPT_AT_ONCE)))
    text = test_file(f"replacements: {{n: [{numbers}]}}", shown="{{n}}")
    test = parse_test("tests/t.md", text)
    result = expand_test(test, library(), lambda contents, _files: taken.update(contents))
    assert len(taken) == KEPT_AT_ONCE
    assert {**taken, **result.contents} == expand_test(test, library()).contents


# --- rows that cannot be filled


def broken_rows(*rows: str) -> list[tuple[int | None, str]]:
    text = test_file("dataset: q.jsonl", shown="{{ 1 // n }}{{ m }}")
    found = expanded(text, library(data={"q.jsonl": "\n".join(rows)}))
    assert found.file is None
    return [(one.line, one.message) for one in found.problems]


GOOD_ROW, ZERO, TEXT_ROW = '{"n": 1, "m": 1}', '{"n": 0, "m": 1}', '{"n": "x", "m": 1}'


def test_a_problem_of_rows_is_told_once_with_the_place_of_the_first() -> None:
    (one,) = broken_rows(GOOD_ROW, ZERO, GOOD_ROW)
    assert one[1].endswith(" (q.jsonl:2)")
    (one,) = broken_rows(GOOD_ROW, ZERO, ZERO)
    assert one[1].endswith(" (q.jsonl:2 and other rows)")
    first, second = broken_rows(TEXT_ROW, ZERO, GOOD_ROW, ZERO)
    assert first[1].endswith(" (q.jsonl:1)")
    assert second[1].endswith(" (q.jsonl:2 and other rows)")


def test_a_dataset_is_named_where_it_makes_too_many_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expand, "MOST_CASES", 1)
    text = test_file("id: x", "dataset: q.jsonl", shown="{{ q }}")
    found = expanded(text, library(data={"q.jsonl": '{"q": "a"}\n{"q": "b"}\n'}))
    assert [(one.line, one.severity) for one in found.problems] == [(3, "error")]


def test_all_broken_rows_of_replacements_are_told() -> None:
    numbers = ", ".join(map(str, range(25)))
    text = test_file(f"replacements: {{n: [0, x], m: [{numbers}]}}", shown="{{ 1 // n }}{{ m }}")
    assert len(expanded(text).problems) == 2


def test_a_group_is_named_where_it_has_no_effect() -> None:
    text = test_file("id: x", "group: '{{ g }}'", "replacements: {g: [a, b]}", shown="{{g}}")
    assert problem_of(text).line == 3


def test_an_unknown_prompt_has_those_there_are_as_a_hint() -> None:
    known = library(prompts={"helpful": ("1",)})
    assert problem_of(test_file("systemPrompts: [zzz]"), known).hint == (
        "the system prompts are helpful"
    )


def test_a_schema_is_named_with_its_own_line() -> None:
    assert problem_of(test_file("id: x", "structuredResponseSchema: gone")).line == 3


def test_after_twenty_broken_rows_no_more_are_read() -> None:
    text = test_file("dataset: q.jsonl", shown="{{ 1 // n }}")

    def told_of(zeros: int) -> list[str]:
        data = '{"n": 0}\n' * zeros + '{"n": "x"}\n'
        found = expanded(text, library(data={"q.jsonl": data}))
        return [one.message.rpartition(" (")[2] for one in found.problems]

    assert told_of(19) == ["q.jsonl:1 and other rows)", "q.jsonl:20)"]
    assert told_of(20) == ["q.jsonl:1 and other rows)"]


# --- warnings and problems of groups


def problem_of(text: str, library_: Library | None = None) -> Problem:
    (problem,) = expanded(text, library_).problems
    return problem


def test_a_test_that_nobody_judges_is_a_warning() -> None:
    assert problem_of(test_file(told="")) == Problem(
        "tests/t.md",
        "nothing below '---' says how to evaluate the answer: it is asked, and never judged",
        1,
        severity="warning",
        hint="write the instructions for the evaluator below the line '---'",
    )
    some = test_file("replacements: {e: ['', Judge.]}", told="{{e}}")
    assert problem_of(some).severity == "warning"


GROUP = "~~~checks\n- {allEqual: , scope: group}\n~~~"


def test_a_check_of_a_group_must_be_the_same_for_all_of_it() -> None:
    text = test_file(
        "replacements: {q: [a, b]}",
        shown="{{q}}",
        told="~~~checks\n- {equals: '{{ q }}', scope: group}\n~~~",
    )
    assert problem_of(text) == Problem(
        "tests/t.md",
        "a check of the scope 'group' is not the same for all rows of the group",
        11,
        hint="it can only mention values that all of them have; the field 'group' parts them",
    )


def test_a_group_that_parts_nothing_is_a_warning() -> None:
    head = ("group: '{{ g }}'", "replacements: {g: [a, b]}")
    assert problem_of(test_file(*head, shown="{{g}}")) == Problem(
        "tests/t.md",
        "'group' parts rows that are judged together, but no check has the scope 'group'",
        2,
        severity="warning",
        hint="give one, as in '{allEqual: , scope: group}'",
    )
    same = ("group: 'same'", "replacements: {g: [a, b]}")
    assert problem_of(test_file(*same, shown="{{g}}", told=GROUP)) == Problem(
        "tests/t.md",
        "'group' is the same for all rows, so all of them are one group",
        2,
        severity="warning",
        hint='write what a group has in common, such as "{{ item.template }}"; or leave it out',
    )
    assert expanded(test_file(*head, shown="{{g}}", told=GROUP)).problems == []


# --- problems of prompts


def prompt_of(text: str, path: str = "prompts/p.md") -> tuple[tuple[str, ...], Expansion]:
    return expand_prompt(parse_prompt(path, text), library())


def test_special_tags_of_a_prompt_are_part_of_it_and_others_are_not() -> None:
    (id,), expansion = prompt_of("---\ntags: [_json_mode, plain]\n---\nHi\n")
    kind, content = expansion.contents[id]
    assert (kind, json.loads(content)["specialTags"]) == ("prompt", ["_json_mode"])


def test_all_problems_of_a_prompt_are_told_once() -> None:
    text = "---\nreplacements: {n: [0, 1, 0.0, 2], z: a}\n---\n{{ 1 // n }} {{ gone }}\n"
    found, expansion = prompt_of(text)
    assert found == ()
    assert [(one.line, one.message) for one in expansion.problems] == [
        (4, "'gone' is not defined"),
        (2, "replacement 'z' is never used"),
    ]
    text = "---\nreplacements: {n: [1, 0], m: [3, 4]}\n---\n{{ 1 // n }}{{ m }}\n"
    found, expansion = prompt_of(text)
    assert found == ()
    assert len(expansion.problems) == 1


@pytest.mark.parametrize(("problem", "tries"), [(LimitProblem, 1), (FileProblem, 3)])
def test_what_reaches_a_limit_is_not_filled_with_further_rows(
    problem: type[FileProblem], tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled: list[object] = []

    def fail(*given: object) -> None:
        filled.append(given)
        raise problem("it takes too long")

    monkeypatch.setattr(expand, "fill_turn", fail)
    monkeypatch.setattr(Drafter, "draft", fail)
    head = "replacements: {n: [1, 2, 3]}"
    _, expansion = prompt_of(f"---\n{head}\n---\n{{{{n}}}}\n")
    assert len(filled) == tries
    assert [one.message for one in expansion.problems] == ["it takes too long"]
    found = expanded(test_file(head, shown="{{n}}"))
    assert len(filled) == 2 * tries
    assert [one.message for one in found.problems] == ["it takes too long"]


def test_a_prompt_may_show_a_file() -> None:
    prompt = parse_prompt("prompts/p.md", "See {{_file:a.txt}}\n")
    (id,), expansion = expand_prompt(prompt, library({"a.txt": b"alpha"}))
    (file,) = expansion.files
    assert f'"file":"{file}"' in expansion.contents[id][1]
    assert expansion.dependencies == {"file:a.txt": file}


def test_an_evaluator_prompt_that_shows_no_instructions_is_for_tests_without_any() -> None:
    known = replace(library(), evaluator_prompts={"silent": ("1",)}, silent=frozenset({"1"}))
    judge = "~~~checks\n- judge: {prompt: silent}\n~~~"
    assert expanded(test_file(told=judge), known).problems == []
    message = problem_of(test_file(told=f"Be strict.\n\n{judge}"), known).message
    assert message.startswith("the evaluator prompt 'silent' never uses")


def test_warnings_of_the_data_are_warnings_of_the_file() -> None:
    text = test_file("dataset: {path: q.csv}", shown="{{ q }}")
    found = expanded(text, library(data={"q.csv": "q,\na,b\n"}))
    assert [(one.severity, "q.csv" in str(one)) for one in found.problems] == [("warning", True)]
    assert found.file is not None


def test_the_default_prompt_must_show_the_instructions_and_the_answer() -> None:
    def missing(id: str) -> list[tuple[str, str | None]]:
        text = f"---\nid: {id}\ntags: [_evaluator]\n---\nJudge.\n"
        return [(one.message, one.hint) for one in prompt_of(text)[1].problems]

    def problem(name: str) -> tuple[str, str | None]:
        message = f"the evaluator prompt never uses '{name}'"
        return message, f"write `{{{{{name}}}}}` where it belongs"

    assert missing("other") == [problem("_actualResponse")]
    lines = [one.line for one in prompt_of("---\ntags: [_evaluator]\n---\n# 👤\nHi\n")[1].problems]
    assert lines == [4]
    names = ("_evaluationInstructions", "_actualResponse")
    assert sorted(missing(DEFAULT_PROMPT)) == sorted(map(problem, names))
