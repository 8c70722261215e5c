"""The JSON Schemas agree with the readers: what a schema refuses, its reader refuses too."""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest

from evalstore.checks import parser
from evalstore.checks.base import (
    COUNT,
    TEXT,
    CheckDescription,
    CheckFinding,
    CheckSetting,
    CheckType,
)
from evalstore.checks.descriptions import DESCRIPTIONS
from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.core.values import SPECIAL_TAGS, Json
from evalstore.files.datasets import FIELDS as DATASET_FIELDS
from evalstore.files.datasets import FORMATS, SAMPLE_FIELDS
from evalstore.files.fields import MOST_SAMPLES, OPTIONS, Collector
from evalstore.files.yaml12 import read_yaml, split_frontmatter
from evalstore.providers.script import (
    ERROR_FIELDS,
    ERROR_KINDS,
    TOOL_CALL_FIELDS,
    USAGE_FIELDS,
    check_responses,
)
from evalstore.providers.script import FIELDS as RESPONSE_FIELDS
from evalstore.workspace.index import Index
from evalstore.workspace.model_files import (
    CAPABILITIES,
    COST_FIELDS,
    CURRENCY_FIELDS,
    MODEL_FIELDS,
    OVERRIDE_FIELDS,
    PROVIDER_FIELDS,
    RATE_FIELDS,
    read_currency,
    read_model,
    read_provider,
)
from evalstore.workspace.reader import TOOL_FIELDS, read_definition
from evalstore.workspace.schemas import TITLES, VERSION, load_schema
from evalstore.workspace.settings.remote_names import REMOTE_NAME
from evalstore.workspace.settings.settings import (
    BROWSER_FIELDS,
    CANDIDATE_FIELDS,
    EVALUATOR_FIELDS,
    FOLDERS,
    QUERY_MODEL_FIELDS,
    QUERY_NAMES,
    REMOTE_FIELDS,
    SETTING_NAMES,
    THRESHOLD_FIELDS,
    THRESHOLD_GROUPS,
    AnalysisQuery,
    BrowserSettings,
    Participant,
    QueryModel,
    RemoteSettings,
    Settings,
    Threshold,
    read_settings,
)
from evalstore.workspace.testfiles.conversations import MESSAGE_FIELDS, ROLES
from evalstore.workspace.testfiles.parser import PROMPT_FIELDS, TEST_FIELDS, parse_prompt, read_test

pytestmark = pytest.mark.extended

ROOT = Path(__file__).parents[2]
BODY = "# 👤\n\nHi\n\n---\n\nExpect an answer.\n"


@cache
def validator(kind: str) -> Any:
    """The validator of a schema, which is a schema itself."""
    document = load_schema(kind)
    jsonschema.Draft202012Validator.check_schema(document)
    return jsonschema.Draft202012Validator(document)


def _test(content: dict[str, Json]) -> None:
    body = "---\n\nExpect an answer.\n" if content.get("messages") is not None else BODY
    _, collector = read_test("t.md", f"---\n{json.dumps(content)}\n---\n\n{body}")
    _finish(collector)


def _finish(collector: Collector) -> None:
    """Raise the first problem; a field without effect counts as one."""
    collector.problems += collector.warnings
    collector.finish()


def _model(content: dict[str, Json]) -> None:
    model = read_model(json.dumps(content), {}, "default")
    if problems := check_responses(model.responses):
        raise FileProblem(problems[0][1])


def _checks(content: Json) -> None:
    block = f"# 👤\n\nHi\n\n---\n\nExpect.\n\n~~~checks\n{json.dumps(content)}\n~~~\n"
    test, collector = read_test("t.md", block)
    collector.finish()
    from evalstore.checks.parser import read_check

    for entry in test.checks.entries if test.checks else ():
        read_check(entry.definition)


READERS: dict[str, Callable[[Any], object]] = {
    "frontmatter": _test,
    "prompt": lambda content: parse_prompt("p.md", f"---\n{json.dumps(content)}\n---\n\nBe.\n"),
    "settings": lambda content: read_settings(json.dumps(content)),
    "model": _model,
    "provider": lambda content: read_provider(json.dumps(content)),
    "currency": lambda content: read_currency(json.dumps(content)),
    "tool": lambda content: read_definition("tools", json.dumps(content), "t", Index()),
    "checks": _checks,
}
LEAST: dict[str, dict[str, Json]] = {
    "frontmatter": {"tags": ["a"]},
    "prompt": {"tags": ["a"]},
    "settings": {"attempts": 1},
    "model": {"provider": "openai"},
    "provider": {"code": "desk"},
    "currency": {"code": "EUR"},
    "tool": {"name": "look"},
}
FIELDS = {
    "frontmatter": TEST_FIELDS,
    "prompt": PROMPT_FIELDS,
    "settings": SETTING_NAMES,
    "model": MODEL_FIELDS,
    "provider": PROVIDER_FIELDS,
    "currency": CURRENCY_FIELDS,
    "tool": TOOL_FIELDS,
}
VALUES: tuple[Json, ...] = (
    *(None, True, False, 0, 1, 2, 3, -1, 0.5, 1.5, 1025, 10_001, 100_000, 2_000_000_000),
    *("", " ", "a", "majority", "any", ">= 0.5", ">= 2", "30d", "0x", "jinja", "{{ x }}"),
    *("https://example.org", "ftp://x", "NAME", "a b", "2024-01-31"),
    *([], [1], ["a"], [""], [None], ["_json_mode"], ["_none"], [["a"]], [{"id": "a"}]),
    *([{"a": 1}], [{"role": "user", "content": "Hi"}], [{"role": "tool", "content": "Hi"}]),
    *([{"answer": "a"}], [{"answer": "a", "error": 500}], [{"error": 200}], [{"times": 0}]),
    *([{"id": "a", "temperature": 3}], [{"rateInUSD": 1}], [{"rateInUSD": -1}]),
    *([{"costPerCall": 1}], [{"costPerCall": -1}], [{"validFrom": "soon"}], [{"unknown": 1}]),
    *([{"description": "a"}], [{"description": "a", "candidates": [{"temperature": 1}]}]),
    *({}, {"a": 1}, {"a": "b"}, {"a": ["b"]}, {"a": []}, {"a": {"b": 1}}, {"a": None}),
    *({"temperature": 1}, {"temperature": 3}, {"topP": 2}, {"stop": "a"}, {"stop": [1]}),
    *({"path": "a"}, {"path": 1}, {"path": "a", "limit": 0}, {"path": "a", "format": "xml"}),
    *({"path": "a", "sample": {"n": 1}}, {"path": "a", "delimiter": ";;"}, {"limit": 1}),
    *({"theme": 1}, {"keys": {"a": "b"}}, {"keys": {"a": 1}}, {"tests": "a"}, {"tests": 1}),
    *({"input": {"text": True}}, {"input": {"text": 1}}, {"output": {"smell": True}}),
    {"$permute": {"names": ["a"], "list": ["x"]}},
    {"$permute": {"names": ["a"]}},
)


def accepts(kind: str, content: Json) -> bool:
    """Whether the reader of a kind of file takes a document."""
    try:
        READERS[kind](content)
    except (FileProblem, EvalstoreError):
        return False
    return True


@cache
def refused_by_the_schema(kind: str, field: str) -> list[Json]:
    """The values of a field that the schema of a kind of file refuses."""
    strict = validator(kind)
    return [value for value in VALUES if not strict.is_valid({**LEAST[kind], field: value})]


@pytest.mark.parametrize("kind", FIELDS)
def test_every_field_of_a_reader_is_in_its_schema(kind: str) -> None:
    document = load_schema(kind)
    assert document["properties"].keys() == set(FIELDS[kind])


@pytest.mark.parametrize(
    ("kind", "field"), [(kind, field) for kind, names in FIELDS.items() for field in names]
)
def test_what_a_schema_refuses_is_refused_by_the_reader(kind: str, field: str) -> None:
    accepted = [
        value
        for value in refused_by_the_schema(kind, field)
        if accepts(kind, {**LEAST[kind], field: value})
    ]
    assert accepted == []


LOOSE = {
    *(f"frontmatter.{name}" for name in ("id", "description")),
    *("prompt.id", "prompt.description"),
    *(f"model.{name}" for name in ("name", "description", "tags", "thinking")),
    *("provider.name", "provider.description", "currency.name", "currency.symbol", "tool.tags"),
}
"""Fields for which any value or text will do."""


@pytest.mark.parametrize(
    ("kind", "field"), [(kind, field) for kind, names in FIELDS.items() for field in names]
)
def test_a_schema_refuses_something_for_each_field(kind: str, field: str) -> None:
    refused = refused_by_the_schema(kind, field)
    assert bool(refused) or f"{kind}.{field}" in LOOSE


@pytest.mark.parametrize("kind", LEAST)
def test_a_required_field_is_required_by_both(kind: str) -> None:
    for name in load_schema(kind).get("required", ()):
        content = {key: value for key, value in LEAST[kind].items() if key != name}
        assert not validator(kind).is_valid(content)
        assert not accepts(kind, content)
    assert validator(kind).is_valid(LEAST[kind])
    assert accepts(kind, LEAST[kind])


PLACES: tuple[tuple[str, tuple[str | int, ...]], ...] = (
    *((kind, ()) for kind in LEAST),
    *(("frontmatter", (name,)) for name in ("dataset", "options")),
    ("frontmatter", ("messages", 0)),
    *(("settings", (name, 0)) for name in ("candidates", "evaluators", "analysisQueries")),
    *(("settings", (name,)) for name in ("paths", "browser")),
    ("model", ("costs", 0)),
    ("model", ("responses", 0)),
    ("model", ("candidateOverrides",)),
    ("model", ("capabilities",)),
    ("model", ("capabilities", "input")),
    ("currency", ("rates", 0)),
)
FILLED: dict[tuple[str | int, ...], Json] = {
    ("dataset",): {"path": "a"},
    ("messages", 0): {"role": "user", "content": "Hi"},
    ("candidates", 0): {"id": "a"},
    ("evaluators", 0): {"id": "a"},
    ("analysisQueries", 0): {"description": "a"},
    ("responses", 0): {"answer": "a"},
    ("rates", 0): {"rateInUSD": 1},
}


@pytest.mark.parametrize(("kind", "place"), PLACES, ids=str)
def test_an_unknown_field_is_refused_by_both(kind: str, place: tuple[str | int, ...]) -> None:
    def nested(inner: dict[str, Json]) -> Json:
        value: Json = {**FILLED.get(place, {}), **inner}
        for step in reversed(place):
            value = [value] if isinstance(step, int) else {step: value}
        return {**LEAST[kind], **value}

    assert validator(kind).is_valid(nested({}))
    assert accepts(kind, nested({}))
    assert not validator(kind).is_valid(nested({"zzUnknown": 1}))
    if (kind, place) == ("prompt", ()):  # it is only a warning
        unknown = parse_prompt("p.md", "---\nzzUnknown: 1\n---\n\nBe kind.\n")
        assert [warning.line for warning in unknown.warnings] == [2]
    else:
        assert not accepts(kind, nested({"zzUnknown": 1}))


# --- files


def documents(name: str, text: str) -> Iterator[tuple[str, Json]]:
    """The parts of a file for which there is a schema, as YAML reads them."""
    folder, _, base = name.partition("/")
    kinds = {"models": "model", "providers": "provider", "currencies": "currency", "tools": "tool"}
    if name == "evalstore.yaml":
        yield "settings", read_yaml(text).value
    elif folder in kinds and base.endswith((".yaml", ".yml")):
        yield kinds[folder], read_yaml(text).value
    elif folder in ("tests", "prompts", "cases") and base.endswith(".md"):
        document, body, _ = split_frontmatter(text)
        if document is not None:
            yield "prompt" if folder == "prompts" else "frontmatter", document.value
        yield from (("checks", read_yaml(part).value) for part in blocks(body))


def blocks(body: str) -> Iterator[str]:
    """The blocks of checks of a test."""
    for fence in ("~~~", "```"):
        for part in body.split(f"\n{fence}checks\n")[1:]:
            yield part.partition(f"\n{fence}")[0]


def files() -> Iterator[tuple[str, str]]:
    """The files of the example and of the documentation."""
    from tests.project.test_formats_doc import sections

    example = ROOT / "example"
    for path in sorted(example.rglob("*")):
        if path.suffix in (".md", ".yaml") and path.name != "README.md":
            yield path.relative_to(example).as_posix(), path.read_text(encoding="utf-8")
    for section in sections().values():
        yield from section.items()


def parts(name: str, text: str, id: str) -> Iterator[Any]:
    """The parts of a file as parameters: the kind of each and what it holds."""
    for kind, content in documents(name, text):
        yield pytest.param(kind, content, id=f"{id}-{kind}")


FILES = [part for name, text in files() for part in parts(name, text, name)]


@pytest.mark.parametrize(("kind", "content"), FILES)
def test_a_valid_file_matches_its_schema(kind: str, content: Json) -> None:
    validator(kind).validate(content)


def test_every_kind_of_file_is_among_the_files() -> None:
    assert {str(parameter.values[0]) for parameter in FILES} == TITLES.keys()


def conformance() -> Iterator[Any]:
    """The valid files of the conformance cases of ai-tester."""
    facts = json.loads((ROOT / "tests/conformance/ai_tester.json").read_text("utf-8"))
    for name, text in facts["shared"].items():
        if isinstance(text, str):
            yield from parts(name, text, name)
    for case in facts["cases"]:
        if "problem" in case["expect"]:
            continue
        for name, text in case["files"].items():
            if isinstance(text, str):
                yield from parts(name, text, f"{case['id']}-{name}")


@pytest.mark.parametrize(("kind", "content"), [*conformance()])
def test_a_conforming_file_matches_its_schema(kind: str, content: Json) -> None:
    validator(kind).validate(content)


# --- checks


def conforming_checks() -> Iterator[Any]:
    """Valid checks of the conformance cases."""
    for file in ("structured", "text_checks"):
        facts = json.loads((ROOT / f"tests/conformance/{file}.json").read_text("utf-8"))
        for case in facts["cases"]:
            value = case.get("checks", [case["check"]] if "check" in case else [])
            valid = [check for check in value if accepts("checks", [check])]
            yield from (pytest.param(check, id=f"{case['id']}-{check}") for check in valid)


@pytest.mark.parametrize("check", [*conforming_checks()])
def test_a_conforming_check_matches_the_schema(check: Json) -> None:
    validator("checks").validate([check])


EXAMPLES = [
    read_yaml(example.check).value
    for description in DESCRIPTIONS.values()
    for example in description.examples
]


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_of_a_check_matches_the_schema(example: Json) -> None:
    validator("checks").validate([example])
    validator("checks").validate({"checks": [example], "pass": "all", "evaluator": "always"})


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_unknown_setting_of_a_check_is_refused_by_both(example: Json) -> None:
    settings = example if isinstance(example, dict) else {"type": example}
    broken = [{**settings, "zzUnknown": 1}]
    assert not validator("checks").is_valid(broken)
    assert not accepts("checks", broken)


@pytest.mark.parametrize(
    "check",
    [
        {"contain": "a"},
        "contain",
        {"type": "contain"},
        {},
        {"length": {"unit": "pages", "max": 1}},
        {"length": {"max": -1}},
        {"contains": "a", "not": "yes"},
        {"regex": "a", "flags": ["loud"]},
        {"contains": "a", "contains2": "b"},
        {"jsonPath": "a", "check": {"contain": "a"}},
        5,
    ],
    ids=str,
)
def test_an_invalid_check_is_refused_by_both(check: Json) -> None:
    assert not validator("checks").is_valid([check])
    assert not accepts("checks", [check])


@pytest.mark.parametrize(
    "check",
    [
        {"contains": "{{city}}", "not": True},
        {"number": "{{ item.year }}", "epsilon": "{{ item.off }}"},
        {"type": "contains", "expected": "a"},
        {"allEqual": None, "scope": "case"},
        {"length": {"max": 3, "not": True}},
        {"jsonPath": "city", "contains": "Oslo", "ignoreCase": True},
        "notEmpty",
        {"notEmpty": True},
    ],
    ids=str,
)
def test_each_way_to_write_a_check_matches_the_schema(check: Json) -> None:
    validator("checks").validate([check])


def schema_at(kind: str, place: str) -> Json:
    """A part of a schema, by the keys and numbers that lead to it."""
    part: Any = load_schema(kind)
    for step in place.split("/") if place else ():
        part = part[int(step) if step.isdecimal() else step]
    return part


NAMES: list[tuple[str, str, Iterable[str]]] = [
    ("frontmatter", "dataset/anyOf/1", DATASET_FIELDS),
    ("frontmatter", "dataset/anyOf/1/properties/sample", SAMPLE_FIELDS),
    ("frontmatter", "messages/anyOf/1/items", MESSAGE_FIELDS),
    ("frontmatter", "options", OPTIONS),
    ("settings", "candidates/items/anyOf/1", CANDIDATE_FIELDS),
    ("settings", "evaluators/items/anyOf/1", EVALUATOR_FIELDS),
    ("settings", "paths", FOLDERS),
    ("settings", "remotes/additionalProperties/anyOf/1", REMOTE_FIELDS),
    ("settings", "browser", BROWSER_FIELDS),
    ("settings", "thresholds/items", THRESHOLD_FIELDS),
    ("settings", "analysisQueries/items", QUERY_NAMES),
    (
        "settings",
        "analysisQueries/items/properties/candidates/items/anyOf/1",
        QUERY_MODEL_FIELDS,
    ),
    ("model", "candidateOverrides", OVERRIDE_FIELDS),
    ("model", "evaluatorOverrides", OVERRIDE_FIELDS),
    ("model", "capabilities", CAPABILITIES),
    *(("model", f"capabilities/properties/{side}", CAPABILITIES[side]) for side in CAPABILITIES),
    ("model", "costs/items", COST_FIELDS),
    ("model", "responses/items", RESPONSE_FIELDS),
    ("model", "responses/items/properties/toolCalls/items", TOOL_CALL_FIELDS),
    ("model", "responses/items/properties/error/anyOf/2", ERROR_FIELDS),
    ("model", "responses/items/properties/usage", USAGE_FIELDS),
    ("currency", "rates/items", RATE_FIELDS),
]


def name_only(value: object) -> str:
    """Name a test by its texts: the order of a set differs between programs."""
    return value if isinstance(value, str) else ""


@pytest.mark.parametrize(("kind", "place", "names"), NAMES, ids=name_only)
def test_every_field_inside_a_field_is_one_of_its_reader(
    kind: str, place: str, names: Iterable[str]
) -> None:
    assert schema_at(kind, f"properties/{place}/properties").keys() == set(names)


WORDS: list[tuple[str, str, Iterable[Json]]] = [
    ("frontmatter", "dataset/anyOf/1/properties/format/enum", (*FORMATS, None)),
    ("frontmatter", "messages/anyOf/1/items/properties/role/enum", (*ROLES, None)),
    ("frontmatter", "tags/items/anyOf/0/enum", SPECIAL_TAGS),
    ("prompt", "tags/items/anyOf/0/enum", SPECIAL_TAGS),
    ("settings", "thresholds/items/properties/by/items/enum", THRESHOLD_GROUPS),
    ("model", "responses/items/properties/error/anyOf/2/properties/kind/enum", sorted(ERROR_KINDS)),
]


@pytest.mark.parametrize(("kind", "place", "words"), WORDS, ids=name_only)
def test_the_words_of_a_field_are_those_of_its_reader(
    kind: str, place: str, words: Iterable[Json]
) -> None:
    written = schema_at(kind, f"properties/{place}")
    assert len(written) == len({*written})
    assert {*written} == {*words}


def test_limits_of_settings_are_those_of_their_reader() -> None:
    for name in ("attempts", "evaluationsPerEvaluator"):
        assert schema_at("settings", f"properties/{name}/maximum") == MOST_SAMPLES
    pattern = schema_at("settings", "properties/remotes/propertyNames/pattern")
    assert pattern == f"^{REMOTE_NAME}$"


def field_texts(owner: type) -> dict[str, str]:
    """The strings below the fields of a class, by the name of the setting."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(definition, ast.ClassDef)
    texts: dict[str, str] = {}
    for node, below in zip(definition.body, definition.body[1:], strict=False):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            name = re.sub(r"_([a-z])", lambda match: match[1].upper(), node.target.id)
            texts[name] = " ".join(str(below.value.value).replace("`", "'").split())
    return texts


@pytest.mark.parametrize(
    ("owner", "place"),
    [
        (Settings, ""),
        (Participant, "properties/candidates/items/anyOf/1/"),
        (Participant, "properties/evaluators/items/anyOf/1/"),
        (RemoteSettings, "properties/remotes/additionalProperties/anyOf/1/"),
        (BrowserSettings, "properties/browser/"),
        (Threshold, "properties/thresholds/items/"),
        (AnalysisQuery, "properties/analysisQueries/items/"),
        (QueryModel, "properties/analysisQueries/items/properties/candidates/items/anyOf/1/"),
        (QueryModel, "properties/analysisQueries/items/properties/evaluators/items/anyOf/1/"),
    ],
)
def test_settings_are_described_by_the_words_beside_their_fields(owner: type, place: str) -> None:
    texts = field_texts(owner)
    described = schema_at("settings", f"{place}properties")
    known = described.keys() & texts.keys()
    assert known
    assert {name: described[name]["description"] for name in known} == {
        name: texts[name] for name in known
    }


def test_every_setting_is_described_beside_its_field() -> None:
    assert field_texts(Settings).keys() == set(SETTING_NAMES)


@pytest.mark.parametrize("main", ["expected", None])
def test_a_check_of_a_package_is_closed_only_when_it_is_described(
    monkeypatch: pytest.MonkeyPatch, main: str | None
) -> None:
    value = () if main is None else (CheckSetting(main, TEXT, "what it rhymes with"),)
    settings = (*value, CheckSetting("lines", COUNT, "how many", 2))
    plain = CheckType(1, lambda _: {}, lambda _check, _subject: CheckFinding(1.0), main=main)
    described = replace(plain, description=CheckDescription("it rhymes", settings))
    kinds = {"plain": plain, "described": described}
    monkeypatch.setattr(parser, "_plugged_in", lambda: kinds)
    strict = jsonschema.Draft202012Validator(load_schema("checks"))
    for name in kinds:
        assert strict.is_valid([{name: {"lines": 3}}, {name: None, "lines": 3}])
    assert strict.is_valid([{"plain": {"other": 3}}, {"plain": None, "other": 3}])
    assert not strict.is_valid([{"described": None, "other": 3}])
    assert not strict.is_valid([{"described": {"lines": "many"}}])


def fields_of(schema: Json, root: Json, path: str) -> Iterator[tuple[str, Json]]:
    """The fields that a schema has at any depth; conditions and negations have none."""
    if isinstance(schema, list):
        for number, inner in enumerate(schema):
            yield from fields_of(inner, root, f"{path}[{number}]")
    if not isinstance(schema, dict):
        return
    for name, inner in schema.get("properties", {}).items():
        yield f"{path}/{name}", inner
        yield from fields_of(inner, root, f"{path}/{name}")
    for key in schema.keys() - {"properties", "if", "not", "enum", "const", "default"}:
        yield from fields_of(schema[key], root, f"{path}/{key}")


def find_description(field: Json, root: Json) -> str:
    """The description of a field, or of the definition that it refers to."""
    while "description" not in field and "$ref" in field:
        target = root
        for part in unquote(field["$ref"]).removeprefix("#/").split("/"):
            target = target[part]
        field = target
    return str(field.get("description", ""))


@pytest.mark.parametrize("kind", TITLES)
def test_every_field_has_a_description(kind: str) -> None:
    root = load_schema(kind)
    fields = list(fields_of(root, root, kind))
    assert fields
    assert [path for path, field in fields if not find_description(field, root)] == []


def test_every_schema_has_an_id_of_its_own_that_is_no_address() -> None:
    heads = [{name: load_schema(kind)[name] for name in ("$id", "title")} for kind in TITLES]
    assert heads == [
        {"$id": f"urn:evalstore:schema:{kind}:{VERSION}", "title": f"evalstore: {title}"}
        for kind, title in TITLES.items()
    ]


def test_references_are_found_below_the_id() -> None:
    errors = validator("checks").iter_errors([{"contains": "a"}, {"number": 3, "most": 1}])
    assert [error.validator for error in errors] == ["anyOf"]
    validator("checks").validate([{"contains": "a"}, {"jsonPath": "a", "number": 3}])
