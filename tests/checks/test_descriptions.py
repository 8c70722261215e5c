"""The descriptions of check types agree with what the types read and judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evalstore.checks.base import STEPS, CheckArguments, CheckExample, CheckSetting, CheckType
from evalstore.checks.check_verdict import HeldConversation, judge_by_checks
from evalstore.checks.descriptions import DESCRIPTIONS, common_settings, describe_check
from evalstore.checks.parser import _NESTED, COMMON, known_kinds, read_check, split
from evalstore.checks.parser import _OWN as KINDS
from evalstore.core.errors import FileProblem
from evalstore.core.values import Json, Reply, ToolCall, Usage
from evalstore.files.yaml12 import read_yaml

EXAMPLES = [
    pytest.param(name, example, id=example.check)
    for name, description in DESCRIPTIONS.items()
    for example in description.examples
]
OWN = [
    (name, setting)
    for name, description in DESCRIPTIONS.items()
    for setting in description.settings
]
SETTINGS = [*OWN, *(("contains", setting) for setting in common_settings(KINDS["contains"]))]
ODD: tuple[Json, ...] = (-5, "a word", True, [[1]], [{"a": 1}], {"x": {"y": 1}})


def of_settings(
    settings: Iterable[tuple[str, CheckSetting]], holds: Callable[[CheckSetting], object]
) -> list[Any]:
    """Parameters for the settings of which something holds."""
    return [
        pytest.param(name, setting, id=f"{name}.{setting.name}")
        for name, setting in settings
        if holds(setting)
    ]


def words_of(setting: CheckSetting) -> Sequence[Json]:
    """The words of a setting that is a choice."""
    words: Sequence[Json] = setting.type.schema.get("enum", ())
    return words


def refused(setting: CheckSetting) -> list[Json]:
    """Values that the schema of a setting refuses."""
    schema = {**setting.type.schema, "$defs": {"check": {"type": ["object", "string"]}}}
    jsonschema.Draft202012Validator.check_schema(schema)
    validator: Any = jsonschema.Draft202012Validator(schema)
    return [value for value in ODD if not validator.is_valid(value)]


def written(example: CheckExample) -> Json:
    """An example as its author's YAML says it."""
    return read_yaml(example.check).value


def conversations(answer: Json) -> list[HeldConversation]:
    """The answer of an example, or several, as a candidate gave them."""
    if isinstance(answer, list):
        return [HeldConversation((Reply(text),)) for text in answer]
    if isinstance(answer, str):
        return [HeldConversation((Reply(answer),))]
    calls = answer.get("toolCalls", ())
    reply = Reply(
        answer.get("text"),
        tuple(ToolCall(call["name"], call["arguments"]) for call in calls),
        answer.get("finishReason"),
        latency=answer.get("latency", 0.0),
        usage=Usage(0, answer["tokens"]) if "tokens" in answer else Usage(),
    )
    return [HeldConversation((reply,), usd=answer.get("cost"))]


def test_every_type_is_described_with_an_example() -> None:
    new = KINDS.keys() - DESCRIPTIONS.keys()
    assert not new, "describe it in evalstore/checks/descriptions.yaml, then run 'make docs'"
    assert DESCRIPTIONS.keys() == KINDS.keys()
    assert [name for name, description in DESCRIPTIONS.items() if not description.examples] == []


def test_the_page_of_test_files_names_every_type() -> None:
    page = (Path(__file__).parents[2] / "docs/formats/checks.md").read_text("utf-8")
    assert [name for name in KINDS if f"`{name}`" not in page] == []


def test_the_steps_of_a_normalization_are_described() -> None:
    (setting,) = (each for each in common_settings(KINDS["contains"]) if each.name == "normalize")
    assert setting.type.schema["anyOf"][0]["enum"] == [*STEPS]
    assert all(f"`{step}`" in setting.description for step in STEPS)


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_an_example_is_of_its_type(name: str, example: CheckExample) -> None:
    assert read_check(written(example))["type"] == name


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_the_answers_of_an_example_pass_and_fail(name: str, example: CheckExample) -> None:
    if name in ("python", "judge"):
        assert example.passing is example.failing is None
        return
    check = read_check(written(example))
    verdicts = [
        judge_by_checks([check], conversations(answer), {}).verdict
        for answer in (example.passing, example.failing)
    ]
    assert verdicts == ["pass", "fail"]


@cache
def settings_read(name: str) -> frozenset[str]:
    """The names of the settings that a type reads in its examples."""
    names: set[str] = set()
    for example in DESCRIPTIONS[name].examples:
        _, settings = split(written(example), None)
        own = {key: settings[key] for key in settings if key not in COMMON or name == "judge"}
        arguments = CheckArguments(own, nested=_NESTED)
        KINDS[name].read(arguments)
        names |= set(arguments._known)
    return frozenset(names)


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_the_settings_are_those_that_are_read(name: str) -> None:
    assert {setting.name for setting in DESCRIPTIONS[name].settings} == settings_read(name)
    main = KINDS[name].main
    assert main is None or main in settings_read(name)


def with_setting(name: str, setting: CheckSetting, value: Json) -> Json:
    """The first example of a type in which the setting can be used, with a value for it."""
    kind, settings = split(written(DESCRIPTIONS[name].examples[0]), None)
    return {"type": kind, **settings, setting.name: value}


@pytest.mark.parametrize(
    ("name", "setting"), of_settings(SETTINGS, lambda setting: setting.default is not None)
)
def test_a_default_is_what_an_absent_setting_means(name: str, setting: CheckSetting) -> None:
    _, settings = split(written(DESCRIPTIONS[name].examples[0]), None)
    settings.pop(setting.name, None)
    absent = {"type": name, **settings}
    assert read_check({**absent, setting.name: setting.default}) == read_check(absent)


@pytest.mark.parametrize(("name", "setting"), of_settings(OWN, lambda setting: setting.required))
def test_a_required_setting_cannot_be_left_out(name: str, setting: CheckSetting) -> None:
    _, settings = split(written(DESCRIPTIONS[name].examples[0]), None)
    absent = {key: value for key, value in settings.items() if key != setting.name}
    with pytest.raises(FileProblem):
        read_check({"type": name, **absent})


@pytest.mark.parametrize(("name", "setting"), of_settings(SETTINGS, words_of))
def test_every_word_of_a_choice_can_be_written(name: str, setting: CheckSetting) -> None:
    for word in words_of(setting):
        if name in ("allSame", "monotonic", "allEqual") and word == "answer":
            continue
        read_check(with_setting(name, setting, word))
    with pytest.raises(FileProblem):
        read_check(with_setting(name, setting, "another word"))


@pytest.mark.parametrize(("name", "setting"), of_settings(SETTINGS, refused))
def test_a_value_that_the_schema_refuses_is_refused(name: str, setting: CheckSetting) -> None:
    for value in refused(setting):
        with pytest.raises(FileProblem):
            read_check(with_setting(name, setting, value))


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_the_values_of_examples_match_the_schemas(name: str, example: CheckExample) -> None:
    _, settings = split(written(example), None)
    schemas = {
        setting.name: setting.type.schema
        for setting in (*DESCRIPTIONS[name].settings, *common_settings(KINDS[name]))
    }
    described = settings.keys() & schemas.keys()
    assert described or not settings
    for key in described:
        schema = {**schemas[key], "$defs": {"check": {}}}
        jsonschema.Draft202012Validator(schema).validate(settings[key])


def test_a_plugin_without_a_description_is_listed_with_its_example() -> None:
    kind = CheckType(1, lambda _arguments: {}, lambda _check, _subject: None, example="7")  # type: ignore[arg-type,return-value]
    assert describe_check("mine", kind).examples == (CheckExample("mine: 7"),)
    assert known_kinds().keys() >= KINDS.keys()
