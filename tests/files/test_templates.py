from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.core.errors import FileProblem
from evalstore.files.templates import FileMention, Filled, Template, compile_text


def compiled(text: str, *known: str, strict: bool = False) -> Template:
    return compile_text(
        text, known, lambda offset: text.count("\n", 0, offset) + 1, strict_reserved=strict
    )


def filled(text: str, **values: Any) -> Filled:
    def lookup(name: str) -> Filled:
        return [str(values[name])]

    return compiled(text, *values).fill(lookup, values.__getitem__)


def refusal(text: str, **values: Any) -> FileProblem:
    with pytest.raises(FileProblem) as caught:
        filled(text, **values)
    assert caught.value.line is not None
    return caught.value


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("`{{q}}`", "a"),
        ("{{q}}", "a"),
        ("{{ q }}", "a"),
        ("`{{ q }}`", "a"),
        ("``{{q}}``", "`a`"),
        ("pre`{{q}}`post", "preapost"),
        ("`{{q}}``{{q}}`", "aa"),
        ("`{{q}}", "`a"),
        ("```\n{{q}}\n```", "```\na\n```"),
        ("`{{q}} {{q}}`", "`a a`"),
        ("x{{# not said #}}y{{q}}", "xya"),
        ("{{ q|upper }}", "A"),
        ("`{{ q|upper }}`", "`A`"),
        ('{{ "}}" }}{{q}}', "}}a"),
        ("{% if q == 'a' %}yes{% endif %}\n", "yes\n"),
        ("{% for n in range(2) %}{{ n }}`{{q}}`{% endfor %}", "0a1a"),
        ("{% raw %}{{q}} {% x %}{% endraw %}{{q}}", "{{q}} {% x %}a"),
        ("{% raw %}{{x}}{% endraw %}{% if q == 'a' %}yes{% endif %}", "{{x}}yes"),
        ("a  {{- q -}}  b", "aab"),
        ("{{ [q, 1, none] }}", '["a", 1, null]'),
    ],
)
def test_a_text_is_filled(text: str, result: str) -> None:
    assert filled(text, q="a") == [result]


@pytest.mark.parametrize(
    "text", ["{{}}", "{{ }}", "{x}", "{{a{b}}", "{{a\nb}}", "{{a", "}}", "{#x}"]
)
def test_what_cannot_be_a_template_stays_text(text: str) -> None:
    assert filled(text) == [text]


def test_values_are_never_read_as_templates() -> None:
    assert filled("`{{q}}`", q="{{x}} {% y %} $& \\1 `") == ["{{x}} {% y %} $& \\1 `"]


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("`{{ item.x }}`", "`v`"),
        ("`{{item.x}}`", "`v`"),
        ("{{ item.x }}", "v"),
        ("`{{ x }}`", "v"),
        ('`{{ item["x"] }}`', "`v`"),
        ("`{{ item.x | upper }}`", "`V`"),
        ("{% if true %}`{{ item.x }}`{% endif %}", "`v`"),
    ],
)
def test_only_a_lone_name_loses_its_backticks(text: str, result: str) -> None:
    values = {"item": {"x": "v"}, "item.x": "v", "x": "v"}
    assert filled(text, **values) == [result]


def test_the_empty_text_fills_to_nothing() -> None:
    assert filled("`{{q}}`", q="") == []


@pytest.mark.parametrize("name", ["user-name", "a.b", "1", "naïve ключ", "_foo", "range"])
def test_a_name_is_looked_up_literally(name: str) -> None:
    assert filled(f"`{{{{{name}}}}}`", **{name: "v"}) == ["v"]


def test_names_are_not_patterns() -> None:
    template = compiled("{{a.b}} {{axb}}", "a.b")
    assert template.names == {"a.b": 1, "axb": 1}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("\n{{later}}", {"later": 2}),
        ("{{user-name}}", {"user-name": 1}),
        ("{{ a ~ b|lower }}", {"a": 1, "b": 1}),
        ("{{ range(3) }}", {}),
        ("x\n{% if a %}{% for b in c %}{{ b }}{% endfor %}{% endif %}", {"a": 2, "c": 2}),
    ],
)
def test_a_text_says_which_names_it_needs(text: str, names: dict[str, int]) -> None:
    assert compiled(text).names == names


def test_unknown_reserved_names_stay_text() -> None:
    template = compiled("`{{_foo}}` {{_bar}}")
    assert (template.reserved, template.names) == ({"_foo": 1, "_bar": 1}, {})
    assert filled("`{{_foo}}` {{_bar}}") == ["`{{_foo}}` {{_bar}}"]


def test_unknown_reserved_names_are_needed_where_they_mean_something() -> None:
    assert compiled("{{_actual}}", strict=True).names == {"_actual": 1}


@pytest.mark.parametrize(
    "text",
    ["a `{{_file:docs/a b.txt}}` c", "a {{_file: docs/a b.txt }} c", "a {{_file:docs/a b.txt}} c"],
)
def test_a_mentioned_file_stands_in_its_place(text: str) -> None:
    assert filled(text) == ["a ", FileMention("docs/a b.txt", 1), " c"]


def test_a_mention_keeps_its_place_in_a_loop() -> None:
    actual = filled("{% for n in [1, 2] %}{{ n }}{{_file:a}}{% endfor %}")
    assert actual == ["1", FileMention("a", 1), "2", FileMention("a", 1)]


def test_a_value_with_a_mention_may_stand_beside_statements() -> None:
    template = compiled("{% if yes %}x{% endif %}{{doc}}", "doc", "yes")

    def typed(name: str) -> Any:
        assert name == "yes"
        return True

    assert template.fill(lambda _: [FileMention("a", 1)], typed) == ["x", FileMention("a", 1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{{q}}}", "neither text nor a placeholder"),
        ("{{# open", "never closed"),
        ("{{ a b }}", "not a template"),
        ("{% if %}", "not a template"),
        ("{% include 'x' %}", "the template fails"),
        ("{% if q %}{{ q", "never closed"),
        ("{{ q|nofilter }}", "No filter named"),
        ("{{ q / 0 }}", "the template fails"),
        ("{{ q.__class__.__mro__ }}", "the template fails"),
        ("{{ 9 ** 9999 }}", "the template fails"),
        ("{{ [1]|random }}", "No filter named"),
        ("{{ " + "(" * 3000 + " }}", "not a template"),
        ('{{ "\\ud800" }}', "the template fails"),
    ],
)
def test_what_fails_is_reported_with_its_line(text: str, message: str) -> None:
    assert message in refusal(text, q=1).message


def test_a_text_that_gets_too_long_is_refused() -> None:
    with pytest.raises(FileProblem, match="longer than 10,000,000"):
        filled("{{ 'x' * 10000001 }}")


PIECES = [
    "{{",
    "}}",
    "{%",
    "%}",
    "{{#",
    "#}}",
    "q",
    "_file:",
    "`",
    "raw",
    "endraw",
    "if",
    "-",
    "\n",
]


def is_filled_or_refused(text: str) -> bool:
    try:
        compiled(text, "q").fill(lambda _: ["v"], lambda _: "v")
    except FileProblem as problem:
        return problem.line is not None
    return True


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=12).map("".join))
def test_any_text_is_filled_or_refused_with_a_line(text: str) -> None:
    assert is_filled_or_refused(text)


def test_a_value_cannot_pass_for_a_mention() -> None:
    text = "{% if true %}`{{q}}`{{_file:a}}{% endif %}"
    assert filled(text, q="\0000:0\0000:") == ["\0000:0\0000:", FileMention("a", 1)]


@given(st.text())
def test_a_value_comes_out_as_it_went_in(value: str) -> None:
    assert filled("[`{{q}}`]", q=value) == [f"[{value}]"]
    assert filled("{% if true %}[`{{q}}`]{% endif %}", q=value) == [f"[{value}]"]


@pytest.mark.parametrize(
    "text",
    [
        "{{ 'x'.upper }}",
        "{{ joiner() }}",
        "{{ q|attr('upper') }}",
        "{{ q.encode() }}",
        "{{ 1e308 * 10 }}",
        "{{ q.ljust(10000000000) }}",
        "{{ '%1000000000s' % q }}",
        "{{ '{:1000000000}'.format(q) }}",
    ],
)
def test_a_value_that_is_not_text_or_too_long_is_refused(text: str) -> None:
    assert "the template fails" in refusal(text, q="a").message


@pytest.mark.parametrize(
    "text",
    [
        "{{ '{0!r}'.format(''.join) }}",
        "{{ '%s' % ''.join }}",
        "{{ q ~ q.upper }}",
        "{{ (q ~ q.upper) | upper }}",
        "{{ q.upper | string }}",
        "{{ [q.upper] | join }}",
        "{{ [q.upper] | pprint }}",
        "{{ {(q ~ q.upper): 1} }}",
        "{{ '%s' % cycler(1) }}",
        "{{ ([1] | map('string')) ~ '' }}",
    ],
)
def test_a_text_never_has_the_address_of_an_object(text: str) -> None:
    message = refusal(text, q="a").message
    assert "name of an object" in message or "JSON" in message or "did you forget" in message


def test_an_address_that_the_author_wrote_is_a_text_like_another() -> None:
    shown = "<object at 0x7f4b32953c60>"
    assert filled("{{ q ~ '' }} `{{q}}`", q=shown) == [f"{shown} {shown}"]
    assert filled("{{ '" + shown + "' ~ q }}", q="a") == [f"{shown}a"]


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("{{ [3, 1] | map('string') }}", '["3", "1"]'),
        ("{{ range(3) }}", "[0, 1, 2]"),
        ("{{ [2, 2] | unique }}", "[2]"),
    ],
)
def test_what_is_made_on_demand_comes_out_as_a_list(text: str, result: str) -> None:
    assert filled(text) == [result]


@pytest.mark.parametrize(
    "text",
    [
        "{{_file:docs/{{n}}.txt}}",
        "`{{_file:docs/`{{n}}`.txt}}`",
        "`{{ _file:docs/{{ n }}.txt }}`",
        "{% if n %}`{{_file:docs/`{{n}}`.txt}}`{% endif %}",
    ],
)
def test_names_in_the_path_of_a_file_are_filled(text: str) -> None:
    assert filled(text, n="a") == [FileMention("docs/a.txt", 1)]


def test_a_path_may_end_with_a_name_and_have_several() -> None:
    assert filled("see {{_file:{{d}}/`{{n}}`}}!", d="docs", n="a.txt") == [
        "see ",
        FileMention("docs/a.txt", 1),
        "!",
    ]


def test_only_names_stand_in_the_path_of_a_file() -> None:
    assert (
        "'n | lower' cannot be used in the path"
        in refusal("{{_file:{{n | lower}}}}", n="A").message
    )


def test_unknown_names_in_the_path_of_a_file_are_needed() -> None:
    assert compiled("\n{{_file:{{n}}.txt}}").names == {"n": 2}


def test_a_file_is_not_part_of_the_path_of_a_file() -> None:
    template = compiled("{{_file:{{n}}}}", "n")
    with pytest.raises(FileProblem, match="cannot mention a file"):
        template.fill(lambda _name: [FileMention("a", 1)], lambda _name: None)
