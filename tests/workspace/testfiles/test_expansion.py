from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.core.errors import FileProblem
from evalstore.core.values import RUNTIME_NAMES
from evalstore.workspace.testfiles.expansion import expand_test
from evalstore.workspace.testfiles.parser import parse_prompt, parse_test, read_test
from evalstore.workspace.testfiles.replacements import labels
from evalstore.workspace.testfiles.template_filling import expand_prompt
from tests.builders import HELLO, expanded, ids, instructions_of, library, shown, test_file


def problems(text: str) -> list[tuple[int | None, str]]:
    return [(problem.line, problem.message) for problem in expanded(text).problems]


def rows(*frontmatter: str, text: str) -> list[str]:
    return [messages[0][1] for messages in shown(expanded(test_file(*frontmatter, shown=text)))]


# --- rows


def test_lists_combine_with_the_first_key_slowest() -> None:
    values = rows("replacements: {a: [1, 2], b: [x, y]}", text="`{{a}}``{{b}}`")
    assert values == ["1x", "1y", "2x", "2y"]


def test_items_come_one_after_the_other() -> None:
    values = rows(
        "replacements:", "  - {q: p1, r: [x, y]}", "  - {q: [p2, p3], r: z}", text="`{{q}}``{{r}}`"
    )
    assert values == ["p1x", "p1y", "p2z", "p3z"]


def test_equal_rows_count_once() -> None:
    values = rows("replacements:", "  - {q: [a, a, b]}", "  - {q: b}", text="`{{q}}`")
    assert values == ["a", "b"]


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


CITY = ("replacements: {cityName: Oslo, days: 03, user-name: Bo}",)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("{{ item.cityName }} {{ item.days }}", "Oslo 03"),
        ("{{ item.days + 1 }}", "4"),
        ('{{ item["user-name"] }}', "Bo"),
        ("{{ item.cityName | upper }}", "OSLO"),
        ("{{ item }}", '{"cityName": "Oslo", "days": 3, "user-name": "Bo"}'),
        ("{% for name in item %}{{ name }} {% endfor %}", "cityName days user-name"),
        ("{{ 'keys' in item }}", "false"),
    ],
)
def test_without_data_item_has_the_values_of_the_replacements(text: str, result: str) -> None:
    file = test_file(*CITY, shown=text, evaluation="{{cityName}}{{days}}{{user-name}}")
    assert shown(expanded(file)) == [[("user", result)]]


def test_a_check_finds_the_values_of_the_replacements_in_item() -> None:
    evaluation = (
        "~~~checks\n- expr: item['cityName'] in answer\n- contains: '{{ item.cityName }}'\n~~~"
    )
    expansion = expanded(test_file("replacements: {cityName: Oslo}", evaluation=evaluation))
    assert expansion.file is not None, expansion.problems
    checks = json.loads(expansion.contents[str(expansion.file.cases[0].evaluation)][1])["checks"]
    assert checks[0]["values"] == {"item": {"cityName": "Oslo"}}
    assert checks[1]["expected"] == ["Oslo"]


def test_what_item_mentions_counts_as_used() -> None:
    file = "replacements: {a: x, b: y}"
    assert expanded(test_file(file, shown="{{ item }}")).problems == []
    (problem,) = expanded(test_file(file, shown="{{ item.a }}")).problems
    assert problem.message == "replacement 'b' is never used"


def test_a_replacement_called_item_is_that() -> None:
    assert shown(expanded(test_file("replacements: {item: kayak}", shown="a {{item}}"))) == [
        [("user", "a kayak")]
    ]


@pytest.mark.parametrize("text", ["{{ item }}", "{{ item.x }}", '{{ item["x"] }}'])
def test_without_any_values_there_is_no_item(text: str) -> None:
    (problem,) = expanded(test_file(shown=text)).problems
    hint = "'item' is a row of 'dataset:' or 'replacements:', and the file has neither"
    assert (problem.message, problem.hint) == ("'item' is not defined", hint)


def test_item_knows_only_the_names_of_the_replacements() -> None:
    (problem, _) = expanded(
        test_file("replacements: {city: Oslo}", shown="{{ item.town }}")
    ).problems
    assert problem.message == "'item.town' is not defined"


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
        (test_file(evaluation="{{later}}"), 7, "'later' is not defined"),
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
def test_a_wrong_name_is_reported_with_its_line(text: str, line: int, message: str) -> None:
    assert problems(text) == [(line, message)]


def test_all_wrong_names_are_reported_at_once() -> None:
    assert len(problems(test_file("replacements: {z: a}", shown="{{x}}", evaluation="{{y}}"))) == 3


def test_a_reserved_name_stays_text_with_a_warning() -> None:
    expansion = expanded(test_file(shown="{{_foo}}", evaluation="{{_actualResponse}}"))
    assert {problem.severity for problem in expansion.problems} == {"warning"}
    assert shown(expansion) == [[("user", "{{_foo}}")]]
    assert instructions_of(expansion) == ["{{_actualResponse}}"]


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
            "unknown system prompt 'helpfull'",
            "did you mean 'helpful'?",
        ),
        ("availableTools: [wether]", "unknown tool 'wether'", "did you mean 'weather'?"),
        ("structuredResponseSchema: x", "unknown schema 'x'", "the schemas are invoice"),
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
    text = test_file("replacements: {d: 'A `{{_file:a}}`'}", shown="`{{d}}`", evaluation="`{{d}}`")
    expansion = expanded(text, library({"a": b"x"}))
    assert instructions_of(expansion)[0] == shown(expansion)[0][0][1]


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
    actual = ids(test_file("replacements: {a: [x, y]}", evaluation="`{{a}}`"))
    assert len({tests for tests, _ in actual}) == 1
    assert len({evaluation for _, evaluation in actual}) == 2


def test_an_empty_evaluation_is_not_an_evaluation() -> None:
    assert instructions_of(expanded(test_file(evaluation=""))) == [None]


def test_a_schema_is_checked_without_instructions() -> None:
    file = expanded(
        test_file("structuredResponseSchema: s", evaluation=""), library(schemas={"s": "1"})
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
    text = test_file(f"replacements: {{q: {quoted}}}", shown="x`{{q}}`y", evaluation="x`{{q}}`y")
    expansion = expanded(text)
    assert shown(expansion) == [[("user", f"x{value.strip()}y")]]
    assert instructions_of(expansion) == [f"x{value.strip()}y"]


# --- prompts


def test_a_prompt_has_a_version_for_each_row() -> None:
    prompt = parse_prompt("prompts/p.md", "---\nreplacements: {l: [EN, FR]}\n---\nSpeak `{{l}}`\n")
    actual, expansion = expand_prompt(prompt, library())
    assert len(actual) == 2
    assert not expansion.problems


def test_rows_that_make_equal_prompts_are_one_version() -> None:
    text = "---\nreplacements: {l: [EN, FR, DEU]}\n---\n{{ l | length }} letters\n"
    actual, expansion = expand_prompt(parse_prompt("prompts/p.md", text), library())
    assert [json.loads(expansion.contents[id][1])["messages"][0]["content"] for id in actual] == [
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
    actual, expansion = expand_prompt(prompt, library())
    assert not actual
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
    actual, expansion = expand_prompt(parse_prompt("prompts/e.md", text), library())
    assert not actual
    (problem,) = expansion.problems
    assert (problem.message, problem.line) == ("'_tool' is not defined", 6)
    assert problem.hint == "judge prompts know " + ", ".join(RUNTIME_NAMES)


@pytest.mark.parametrize("name", RUNTIME_NAMES)
def test_a_runtime_name_means_nothing_in_a_test(name: str) -> None:
    expansion = expanded(test_file(shown="{{" + name + "}}", evaluation="Judge."))
    assert shown(expansion) == [[("user", "{{" + name + "}}")]]
    assert [problem.severity for problem in expansion.problems] == ["warning"]


@pytest.mark.parametrize("name", RUNTIME_NAMES)
def test_no_replacement_takes_a_runtime_name(name: str) -> None:
    with pytest.raises(FileProblem, match="cannot be the name"):
        parse_prompt("prompts/e.md", f"---\nreplacements: {{{name}: x}}\n---\nHi")


def test_the_path_of_a_test_is_not_part_of_its_id() -> None:
    item, other = (
        expand_test(parse_test(path, HELLO), library()) for path in ("tests/a.md", "tests/b.md")
    )
    assert item.contents == other.contents


# --- groups


def test_a_group_is_never_taken_for_a_row() -> None:
    text = test_file(
        "group: '{{group}}'",
        "replacements: {group: [a, b]}",
        shown="{{group}}",
        evaluation="~~~checks\n- contains: a\n- {allEqual: , scope: group}\n~~~",
    )
    actual = expanded(text).file
    assert actual is not None
    assert [case.row for case in actual.cases] == ["group=a", "group=b", "all of a", "all of b"]
    assert len({case.key for case in actual.cases}) == 4


def test_each_row_can_show_a_file_of_its_own() -> None:
    text = test_file("replacements: {n: [a, b]}", shown="See `{{_file:docs/`{{n}}`.png}}`")
    expansion = expanded(text, library({"docs/a.png": b"A", "docs/b.png": b"B"}))
    assert [messages[0][1][1]["path"] for messages in shown(expansion)] == [
        "docs/a.png",
        "docs/b.png",
    ]


def test_a_name_in_a_path_that_nobody_defines_is_reported_with_its_line() -> None:
    (problem,) = expanded(test_file(shown="\n{{_file:docs/{{n}}.png}}")).problems
    assert (problem.message, problem.line) == ("'n' is not defined", 4)


# --- names of rows


def test_row_id_names_a_column_or_a_replacement() -> None:
    text = test_file("replacements: {question: [a, b]}", "rowId: qestion", shown="{{question}}")
    assert problems(text) == [
        (3, "'rowId' names 'qestion', which is neither a column nor a replacement")
    ]
    assert expanded(text).problems[0].hint == "did you mean 'question'?"


@pytest.mark.parametrize("name", ["hints", "HINT", "item.hnt"])
def test_the_hint_on_a_column_has_its_name_in_lower_case(name: str) -> None:
    text = test_file("dataset: q.csv", shown=f"{{{{{name}}}}}")
    problem = expanded(text, library(data={"q.csv": "Hint\na\n"})).problems[0]
    meant = "item.hint" if "." in name else "hint"
    assert problem.hint == f"did you mean '{meant}'?"


def test_a_misspelt_dataset_is_the_only_problem_of_a_file() -> None:
    test, collector = read_test("t.md", test_file("datasets: q.csv", shown="{{q}}"))
    assert [problem.message for problem in collector.problems] == ["unknown field 'datasets'"]
    assert expand_test(test, library()).problems == []
    test, _ = read_test("t.md", test_file("tagz: [a]", "replacements: {a: b}", shown="{{q}}"))
    assert expand_test(test, library()).problems != []


def test_a_replacement_that_only_the_ids_of_rows_mention_is_used() -> None:
    text = test_file("replacements: {q: a, nr: 1, id: 'r{{nr}}'}", "rowId: id", shown="{{q}}")
    assert problems(text) == []
    text = test_file("replacements: {q: a, nr: 1, id: 'r'}", "rowId: id", shown="{{q}}")
    assert problems(text) == [(2, "replacement 'nr' is never used")]


def test_row_id_is_a_name_and_not_a_place_in_the_item() -> None:
    text = test_file("replacements: {question: [a, b]}", "rowId: item.question")
    assert [problem.hint for problem in expanded(text).problems][:1] == ["write 'question'"]


def test_row_id_comes_first_in_the_names_of_rows() -> None:
    """Values that distinguish the rows further follow it."""
    text = test_file(
        "replacements: {lang: [en, de], nr: [1, 2]}", "rowId: nr", shown="{{lang}} {{nr}}"
    )
    file = expanded(text).file
    assert file is not None
    assert [case.row for case in file.cases][:2] == ["nr=1, lang=en", "nr=2, lang=en"]


LONG = "https://example.org/{}/a/page/with/a/long/address"


def named(*items: str) -> tuple[list[str], list[tuple[int | None, str]]]:
    """The names of rows with the value `id`, and the problems."""
    head = ["rowId: id", "replacements:", *(f"  - {{{item}}}" for item in items)]
    expansion = expanded(test_file(*head, shown="{{q}}"))
    assert expansion.file is not None
    problems = [(problem.line, problem.message) for problem in expansion.problems]
    return [case.row for case in expansion.file.cases], problems


def test_long_ids_that_differ_in_the_middle_name_their_rows() -> None:
    """Whatever the order of the rows is."""
    first, second = (f"id: '{LONG.format(page)}', q: {page}" for page in "ab")
    names = [f"id={LONG.format(page)}" for page in "ab"]
    assert named(first, second) == (names, [])
    assert named(second, first) == (names[::-1], [])
    longer = [f"id: {'x' * 150}{page}{'x' * 150}, q: {page}" for page in "ab"]
    (one, other), _ = named(*longer)
    assert named(*longer[::-1])[0] == [other, one]
    assert one != other
    assert len(one) == len("id=") + 200


def test_a_repeated_id_is_reported_and_other_rows_keep_theirs() -> None:
    assert named("id: 1, q: a", "id: 2, q: b", "id: 1, q: c") == (
        ["id=1, q=a", "id=2", "id=1, q=c"],
        [(2, "several rows have the id '1'")],
    )


def test_rows_that_combine_one_id_with_lists_are_not_reported() -> None:
    names = ["id=1, q=a", "id=1, q=b", "id=2, q=a", "id=2, q=b"]
    assert named("id: [1, 2], q: [a, b]") == (names, [])
