"""The block `checks` of a test file: read, filled with rows, and kept until there is an answer."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from evalstore.checks import check_verdict
from evalstore.checks.check_verdict import HeldConversation, bind_answers
from evalstore.core.errors import FileProblem
from evalstore.core.values import Reply, ToolCall
from tests.builders import expanded, instructions_of, test_file


def block(*lines: str, fence: str = "~~~") -> str:
    return "\n".join([f"{fence}checks", *lines, fence])


def checks(text: str) -> list[list[dict[str, Any]]]:
    """The checks of every case, in canonical form."""
    expansion = expanded(text)
    assert not [problem for problem in expansion.problems if problem.severity == "error"], (
        expansion.problems
    )
    assert expansion.file
    evaluations = [case.evaluation for case in expansion.file.cases]
    contents = [json.loads(expansion.contents[id or ""][1]) for id in evaluations]
    return [content["checks"] for content in contents]


def problems(text: str) -> list[tuple[int | None, str]]:
    try:
        actual = expanded(text).problems
    except FileProblem as problem:
        return [(item.line, item.message) for item in (problem, *problem.others)]
    return [(problem.line, problem.message) for problem in actual if problem.severity == "error"]


def test_a_check_has_its_revision_and_no_defaults() -> None:
    text = test_file(evaluation=block("- contains: Paris"))
    assert checks(text) == [[{"type": "contains", "revision": 1, "expected": ["Paris"]}]]


@pytest.mark.parametrize(
    "line",
    [
        "- {type: contains, expected: Paris}",
        "- {contains: Paris}",
        "- contains: {expected: Paris}",
        "- {contains: Paris, not: false, ignoreCase: false, weight: 1, scope: answer}",
    ],
)
def test_the_ways_to_write_a_check_are_one_check(line: str) -> None:
    assert checks(test_file(evaluation=block(line))) == checks(
        test_file(evaluation=block("- contains: Paris"))
    )


def test_prose_beside_the_block_goes_to_the_evaluator() -> None:
    expansion = expanded(test_file(evaluation=f"Be kind.\n\n{block('- contains: a')}\n\nBe brief."))
    assert instructions_of(expansion) == ["Be kind.\n\nBe brief."]
    assert expansion.file
    assert expansion.file.cases[0].judged_by == ("checks", "models")


def test_without_prose_no_model_judges() -> None:
    expansion = expanded(test_file(evaluation=block("- contains: a")))
    assert not expansion.problems
    assert expansion.file
    assert expansion.file.cases[0].judged_by == ("checks",)


def test_a_block_of_another_word_is_prose() -> None:
    expansion = expanded(test_file(evaluation="~~~yaml\n- contains: a\n~~~"))
    assert instructions_of(expansion) == ["~~~yaml\n- contains: a\n~~~"]


def test_texts_are_filled_with_the_row() -> None:
    text = test_file(
        "replacements: {city: [Oslo, Rome]}",
        shown="{{city}}",
        evaluation=block("- contains: {{city}}!"),
    )
    text = text.replace("{{city}}!", '"{{city}}!"')
    assert [check[0]["expected"] for check in checks(text)] == [["Oslo!"], ["Rome!"]]


@pytest.mark.parametrize("written", ["{{city}}", "{{city}}!"])
def test_braces_without_quotes_are_reported(written: str) -> None:
    text = test_file("replacements: {city: Oslo}", evaluation=block(f"- contains: {written}"))
    with pytest.raises(FileProblem) as raised:
        expanded(text)
    assert "put quotes round" in (raised.value.hint or "")


def test_braces_whose_quotes_are_not_closed_have_no_hint_on_quotes() -> None:
    text = test_file("replacements: {city: Oslo}", evaluation=block('- contains: "{{city}}'))
    with pytest.raises(FileProblem, match=r'the " is not closed$') as raised:
        expanded(text)
    assert raised.value.hint is None


def test_data_changes_no_structure() -> None:
    text = test_file(
        "replacements: {word: 'a]\\n- equals: b'}",
        shown="{{word}}",
        evaluation=block("- contains: '{{word}}'"),
    )
    assert len(checks(text)[0]) == 1


def test_what_looks_like_a_template_in_data_is_not_filled() -> None:
    text = test_file(
        "replacements: {word: '{% raw %}{{ 1 + 1 }}{% endraw %}'}",
        shown="{{word}}",
        evaluation=block("- contains: '{{word}}'"),
    )
    assert checks(text)[0][0]["expected"] == ["{{ 1 + 1 }}"]


@pytest.mark.parametrize(
    ("value", "expected"), [("7", "7"), ("007", "007"), ("1.10", "1.10"), ("1e3", "1e3")]
)
def test_a_lone_name_reads_as_written(value: str, expected: str) -> None:
    text = test_file(
        f"replacements: {{n: {value}}}", shown="{{n}}", evaluation=block("- contains: '{{n}}'")
    )
    assert checks(text)[0][0]["expected"] == [expected]


def test_a_lone_expression_keeps_its_type() -> None:
    text = test_file(
        "replacements: {words: 'a b'}",
        shown="{{words}}",
        evaluation=block("- containsAny: '{{ words.split() }}'"),
    )
    assert checks(text)[0][0]["expected"] == ["a", "b"]


def test_names_in_checks_count_as_used_and_must_be_known() -> None:
    text = test_file("replacements: {a: x}", evaluation=block("- contains: '{{a}}'"))
    assert not problems(text)
    unknown = test_file(evaluation=block("- contains: '{{nobody}}'"))
    assert problems(unknown) == [(8, "'nobody' is not defined")]


def test_any_of_several_checks_is_one_block() -> None:
    text = test_file(evaluation=block("pass: any", "checks:", "- contains: a", "- contains: b"))
    (actual,) = checks(text)[0]
    assert (actual["type"], actual["pass"], len(actual["checks"])) == ("block", "any", 2)


@pytest.mark.parametrize(
    ("when", "judged_by"),
    [
        ("on_pass", ("checks", "models")),
        ("on_fail", ("checks", "models", "on_fail")),
        ("always", ("checks", "models", "always")),
    ],
)
def test_the_block_says_when_models_judge(when: str, judged_by: tuple[str, ...]) -> None:
    inner = block(f"evaluator: {when}", "checks:", "- contains: a")
    actual = expanded(test_file(evaluation=f"Be kind.\n{inner}")).file
    assert actual
    assert actual.cases[0].judged_by == judged_by


def test_when_models_judge_is_not_part_of_their_instructions() -> None:
    def evaluation(when: str) -> str | None:
        inner = block(f"evaluator: {when}", "checks:", "- contains: a")
        actual = expanded(test_file(evaluation=f"Be kind.\n{inner}")).file
        return actual.cases[0].evaluation if actual else ""

    assert evaluation("on_pass") == evaluation("always")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["- contians: a"], "unknown check 'contians'"),
        (["- contains: ''"], "the check 'contains' has an empty 'expected'"),
        (["- contains: []"], "the check 'contains' has an empty 'expected'"),
        (["- {contains: a, ignorecase: true}"], "the check 'contains' has no setting 'ignorecase'"),
        (["- {contains: a, json: true}"], "these are two checks in one: 'contains' and 'json'"),
        (["- {contains: a, normalize: [trimm]}"], "'normalize' has no step 'trimm'"),
        (["- {contains: a, pass: 'much'}"], "'pass' cannot be 'much'"),
        (["- {contains: a, weight: 0}"], "'weight' must be a number above 0"),
        (["- {contains: a, scope: row}"], "'scope' cannot be 'row'"),
        (["contains: a"], "the checks must be a list"),
        (["- - a"], "a check must be 'type: value' or a mapping with a 'type'"),
        ([], "the checks must be a list"),
        (["[]"], "the list of checks is empty"),
        (["pass: most", "checks: [{contains: a}]"], "'pass' must be all, any"),
        (["evaluator: never", "checks: [{contains: a}]"], "'evaluator' must be"),
        (["- jsonSchema: nobody"], "unknown schema 'nobody'"),
        (["- jsonSchema: {type: 1}"], "this is not a JSON Schema"),
        (["- json: false"], "to reverse a check"),
    ],
)
def test_what_is_wrong_is_reported(lines: list[str], message: str) -> None:
    errors = problems(test_file(evaluation=block(*lines)))
    assert errors
    assert message in errors[0][1]


def test_a_problem_has_the_line_of_its_check() -> None:
    text = test_file(evaluation=block("- contains: a", "- contains: ''"))
    assert text.splitlines()[(problems(text)[0][0] or 0) - 1] == "- contains: ''"


@pytest.mark.parametrize(
    "evaluation", ["~~~checks\n- contains: a", block("- json") + "\n" + block("- json")]
)
def test_one_closed_block(evaluation: str) -> None:
    assert len(problems(test_file(evaluation=evaluation))) == 1


def test_when_models_judge_needs_instructions() -> None:
    inner = block("evaluator: always", "checks:", "- contains: a")
    assert "no instructions for a judge" in problems(test_file(evaluation=inner))[0][1]


def test_a_schema_of_the_workspace_is_its_version() -> None:
    expansion = expanded(test_file(evaluation=block("- jsonSchema: nobody")))
    assert "schema:nobody" in expansion.dependencies


# --- what is known only when there is an answer

LATER = test_file(
    "replacements: {word: [a, b], other: [x, y]}",
    shown="{{word}} {{other}}",
    evaluation=block(
        "- {contains: '{{word}}{{ sample.model }}', actual: '{{ sample.output_json.x }}'}"
    ),
)


def test_a_text_that_mentions_the_answer_is_kept_with_the_values_it_uses() -> None:
    actual = checks(LATER)
    assert actual[0][0]["values"] == {"word": "a"}
    assert actual[0] == actual[1]  # `other` is not used: it decides nothing
    assert actual[0] != actual[2]


def test_the_stored_form_is_the_one_that_the_module_shows() -> None:
    text = test_file(
        "replacements: {city: Oslo}",
        shown="Name a shop.\n\n# 🤖 @first\n\n# 👤\n\nWhere in {{city}}?",
        evaluation=block("- {equals: '{{first}} in {{city}}', name: '{{city}}', scope: case}"),
    )
    shown = re.search(r"^    \{$.*?^    \}$", check_verdict.__doc__ or "", re.MULTILINE | re.DOTALL)
    assert shown
    (actual,) = checks(text)[0]
    assert actual == json.loads(shown[0])
    replies = (Reply("Narvesen"), Reply("Narvesen in Oslo"))
    assert bind_answers(actual, [HeldConversation(replies)])[0]["expected"] == ["Narvesen in Oslo"]


def test_a_mapping_from_data_is_a_value_in_a_check_inside_of_another_one_and_in_every_row() -> None:
    mapping = "{{ {'expected': x} if x == 'b' else x }}"
    text = test_file(
        "replacements: {x: [a, b]}",
        shown="{{x}}",
        evaluation=block(f'- {{jsonPath: k, contains: "{mapping}"}}'),
    )
    assert problems(text) == [(11, "'expected' must be a text or a list of texts")]


FROM_DATA = "{{ {'expected': x, 'not': true} }}"
"""A text that evaluates to a mapping, which could be the settings of a check."""


@pytest.mark.parametrize(
    "check",
    [
        f'contains: "{FROM_DATA}", actual: "{{{{ answer }}}}"',
        f'jsonPath: k, contains: "{FROM_DATA}", name: "{{{{ answer }}}}"',
        f'jsonPath: k, check: {{contains: "{FROM_DATA}"}}, name: "{{{{ answer }}}}"',
        f'jsonPath: {{path: k, contains: "{FROM_DATA}"}}, name: "{{{{ answer }}}}"',
        f'jsonPath: {{path: k, check: {{contains: "{FROM_DATA}"}}}}, name: "{{{{ answer }}}}"',
    ],
)
def test_a_mapping_from_data_is_a_value_in_a_check_that_waits_for_the_answer(check: str) -> None:
    text = test_file("replacements: {x: is}", shown="{{x}}", evaluation=block(f"- {{{check}}}"))
    (stored,) = checks(text)[0]
    session = HeldConversation((Reply('{"k": "is"}'),))
    with pytest.raises(FileProblem, match="must be a text or a list of texts"):
        bind_answers(stored, [session])


def test_a_mapping_that_is_read_as_a_value_anyway_is_stored_without_its_place() -> None:
    check = f'- {{jsonEquals: "{FROM_DATA}", name: "{{{{ answer }}}}"}}'
    (stored,) = checks(test_file("replacements: {x: is}", shown="{{x}}", evaluation=block(check)))[
        0
    ]
    assert "data" not in stored
    bound = bind_answers(stored, [HeldConversation((Reply("{}"),))])[0]
    assert bound["expected"] == {"expected": "is", "not": True}


def test_it_is_filled_with_the_answer() -> None:
    answer = Reply('{"x": "am!"}', resolved_model="m")
    bound = bind_answers(checks(LATER)[0][0], [HeldConversation((answer,))])[0]
    assert (bound["expected"], bound["actual"]) == (["am"], "am!")


def test_an_answer_is_never_a_template() -> None:
    answer = Reply(json.dumps({"x": "{{ 1 + 1 }}"}), resolved_model="{{ 2 + 2 }}")
    bound = bind_answers(checks(LATER)[0][0], [HeldConversation((answer,))])[0]
    assert (bound["expected"], bound["actual"]) == (["a{{ 2 + 2 }}"], "{{ 1 + 1 }}")


def test_tool_calls_are_there_by_name_and_arguments() -> None:
    text = test_file(evaluation=block("- {contains: a, actual: '{{ sample.tool_calls[0].name }}'}"))
    answer = Reply(None, tool_calls=(ToolCall("abc", {}),))
    assert bind_answers(checks(text)[0][0], [HeldConversation((answer,))])[0]["actual"] == "abc"


def test_a_replacement_may_be_called_answer() -> None:
    text = test_file(
        "replacements: {answer: '42'}",
        shown="{{answer}}",
        evaluation=block("- contains: '{{answer}}'"),
    )
    assert checks(text)[0][0]["expected"] == ["42"]
