from __future__ import annotations

import pytest

from evalstore.core.errors import FileProblem
from evalstore.core.values import Json, ModelVersion
from evalstore.workspace.model_files import (
    Model,
    ModelPrice,
    Part,
    ProviderFile,
    bare_model,
    provider_options,
    read_currency,
    read_model,
    read_provider,
)

LOCAL = ProviderFile("local", "openai-compatible", "http://127.0.0.1:1/v1", "LOCAL_KEY")


def model(text: str) -> Model:
    return read_model(text, {"local": LOCAL}, "file-name")


def problem(text: str) -> FileProblem:
    with pytest.raises(FileProblem) as caught:
        model(text)
    return caught.value


def test_a_provider_is_read() -> None:
    text = """
code: local
name: Local
type: openai-compatible
baseURL: http://127.0.0.1:1/v1/
apiKeyEnvVar: LOCAL_KEY
supportsStructuredOutputs: true
"""
    assert read_provider(text) == LOCAL


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        ("code: openai", "OPENAI_API_KEY"),
        ("code: mine\ntype: openai", "OPENAI_API_KEY"),
        ("code: openrouter", "OPENROUTER_API_KEY"),
        ("code: openai\napiKeyEnvVar: MY_KEY", "MY_KEY"),
        ("code: openai\nbaseURL: https://proxy.example/v1", None),
        ("code: openrouter\nbaseURL: http://127.0.0.1:9/v1", None),
        ("code: ollama", None),
    ],
)
def test_a_service_at_its_own_address_has_its_usual_key(text: str, variable: str | None) -> None:
    assert read_provider(text).key_variable == variable


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x", "the provider has no 'code'"),
        ("code: x\nbaseUrl: y", "unknown field 'baseUrl'"),
        ("code: x\nbaseURL: localhost", "must start with http"),
        ("- x", "must be a mapping"),
    ],
)
def test_a_wrong_provider_is_refused(text: str, message: str) -> None:
    with pytest.raises(FileProblem, match=message):
        read_provider(text)


def test_the_rate_in_force_is_the_newest_before_the_day() -> None:
    currency = read_currency(
        "code: JPY\nrates:\n  - {rateInUSD: 0.02, validFrom: 2024-01-01}\n"
        "  - {rateInUSD: 0.01, validFrom: 2020-01-01}\n"
    )
    assert [currency.rate(day) for day in ("2019-12-31", "2023-12-31", "2024-01-01")] == [
        None,
        0.01,
        0.02,
    ]


def test_a_model_is_read() -> None:
    described = model("""
id: local/text
code: text
provider: local
providerModelCode: m-text
active: false
capabilities: {input: {text: true, image: false}, output: {tools: false, text: true}}
costs:
  - {costPerCall: 0.5, costPerPromptToken: 0.001, currency: USD, validFrom: 2020-01-01}
""")
    assert (described.id, described.code, described.active) == ("local/text", "m-text", False)
    assert described.costs == (ModelPrice("USD", "2020-01-01", 0.5, 0.001),)
    assert described.lacks(("image", "pdf", "tools")) == ["image", "tools"]


@pytest.mark.parametrize(
    ("text", "id", "code"),
    [
        ("provider: local", "file-name", "file-name"),
        ("provider: local\ncode: c", "c", "c"),
        ("provider: local\ncode: c\nid: i", "i", "c"),
    ],
)
def test_names_a_model_does_not_give_come_from_those_it_gives(
    text: str, id: str, code: str
) -> None:
    assert (model(text).id, model(text).code) == (id, code)


def test_what_does_not_decide_the_answer_is_not_in_the_version() -> None:
    described = model("id: a\ncode: c\nprovider: local")
    other = model("id: b\ncode: c\nprovider: local\ncosts: [{costPerCall: 1}]\nactive: false")
    assert described.version("candidate") == other.version("candidate")


def test_overrides_belong_to_one_part() -> None:
    described = model("""
code: c
provider: local
providerOptions: {a: 1, b: 1}
candidateOverrides: {temperature: 0, providerOptions: {b: 2}}
evaluatorOverrides: {thinking: low, providerModelCode: d}
""")
    assert described.version("candidate") == ModelVersion(
        "openai-compatible", "c", LOCAL.base_url, {"providerOptions": {"a": 1, "b": 2}}
    )
    assert described.version("evaluator").code == "d"
    assert provider_options(described.version("evaluator")) == {
        "a": 1,
        "b": 1,
        "reasoning_effort": "low",
    }
    assert described.temperature("candidate", 0.7) == 0.0
    assert described.temperature("evaluator", 0.7) == 0.7


@pytest.mark.parametrize(
    ("base", "override", "effective"),
    [
        ("{a: 1, b: 1}", "{b: 2, c: 3}", {"a": 1, "b": 2, "c": 3}),
        ("{a: 1}", "{}", {"a": 1}),
        ("{a: {x: 1, y: 1}}", "{a: {x: 2}}", {"a": {"x": 2}}),
    ],
)
@pytest.mark.parametrize("field", ["thinking", "providerOptions", "uniqueProperties"])
@pytest.mark.parametrize("part", ["candidate", "evaluator"])
def test_a_mapping_in_an_override_is_merged_by_key(
    part: Part, field: str, base: str, override: str, effective: Json
) -> None:
    described = model(
        f"code: c\nprovider: local\n{field}: {base}\n{part}Overrides: {{{field}: {override}}}"
    )
    other: Part = "evaluator" if part == "candidate" else "candidate"
    assert (described.version(part).options or {})[field] == effective
    assert (described.version(other).options or {})[field] == described.options[field]


@pytest.mark.parametrize(
    ("base", "override", "effective"),
    [
        ("{effort: low}", "high", "high"),
        ("low", "{budget: 1}", {"budget": 1}),
        ("low", "null", None),
    ],
)
def test_a_thinking_override_that_cannot_be_merged_replaces_the_base(
    base: str, override: str, effective: Json
) -> None:
    described = model(
        f"code: c\nprovider: local\nthinking: {base}\nevaluatorOverrides: {{thinking: {override}}}"
    )
    assert (described.version("evaluator").options or {}).get("thinking") == effective


@pytest.mark.parametrize(
    ("thinking", "sent"),
    [
        ("low", {"reasoning_effort": "low"}),
        ("{effort: low}", {"reasoning_effort": "low"}),
        ("{type: enabled}", {"thinking": {"type": "enabled"}}),
        ("{effort: low, budget: 1}", {"thinking": {"effort": "low", "budget": 1}}),
    ],
)
def test_an_effort_is_sent_as_such(thinking: str, sent: dict[str, Json]) -> None:
    described = model(f"code: c\nprovider: local\nthinking: {thinking}")
    assert provider_options(described.version("candidate")) == sent


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("code: c", 1, "model 'c' has no 'provider'"),
        ("code: c\nprovider: lokal", 2, "unknown provider 'lokal'"),
        ("provider: local\ncapabilites: {}", 2, "unknown field 'capabilites'"),
        ("provider: local\ncapabilities:\n  input: {sound: true}", 3, "unknown field 'sound'"),
        ("provider: local\ncapabilities:\n  input: {text: 1}", 3, "'text' must be true or false"),
        ("provider: local\ncosts:\n  - costPerToken: 1", 3, "unknown field 'costPerToken'"),
        ("provider: local\ncosts:\n  - costPerCall: -1", 3, "'costPerCall' must be"),
        ("provider: local\ncosts:\n  - costPerCall: .inf", 3, "'costPerCall' must be"),
        ("provider: local\ncosts:\n  - validFrom: soon", 3, "'validFrom' must be a day"),
        ("provider: local\ncandidateOverrides:\n  temperature: hot", 3, "'temperature' must be"),
        ("provider: local\nproviderOptions: {a: .nan}", 2, "not finite"),
        ("provider: scripted", 1, "has no 'responses'"),
        ("provider: scripted\nresponses: {a: b}", 2, "'responses' must be a list"),
    ],
)
def test_what_is_wrong_is_reported_with_its_line(text: str, line: int, message: str) -> None:
    error = problem(text)
    assert message in error.message
    assert error.line == line


def test_a_model_whose_answers_were_recorded_needs_no_provider_file() -> None:
    described = model("id: acme/m-7b\nprovider: recorded\n")
    assert described.version("candidate") == ModelVersion("recorded", "acme/m-7b")


def test_an_unknown_provider_has_a_hint() -> None:
    assert problem("provider: lokal").hint == "did you mean 'local'?"


@pytest.mark.parametrize("id", ["gpt-4o-mini", "openai/", "nobody/m"])
def test_not_every_name_is_a_model(id: str) -> None:
    assert bare_model(id) is None


def test_a_bare_name_needs_no_file() -> None:
    actual = bare_model("openai/a/b")
    assert actual is not None
    assert (actual.code, actual.provider.type, actual.provider.key_variable) == (
        "a/b",
        "openai",
        "OPENAI_API_KEY",
    )


def test_all_kinds_of_costs_are_read_and_sorted_by_their_day() -> None:
    described = model("""
provider: local
costs:
  - {costPerHour: 4, currency: EUR, validFrom: "2026-01-01"}
  - {costPerPromptToken: 2, costPerCachedPromptToken: 0, costPerCompletionToken: 3}
""")
    assert described.costs == (
        ModelPrice("USD", "0000-00-00", 0.0, 2.0, 3.0, 0.0, 0.0),
        ModelPrice("EUR", "2026-01-01", per_hour=4.0),
    )
    assert [cost.line for cost in described.costs] == [5, 4]


UNIQUE = """
code: c
provider: local
extraIdentifier: eu
uniqueProperties: [thinking.effort, extraIdentifier, candidateOverrides.providerOptions.a]
thinking: {effort: low}
candidateOverrides: {providerOptions: {a: 1}}
"""


def test_unique_properties_name_settings_and_add_nothing_themselves() -> None:
    described = model(UNIQUE)
    without = model("\n".join(line for line in UNIQUE.split("\n") if "unique" not in line))
    assert described.version("candidate") == without.version("candidate")
    assert described.version("evaluator").options == {
        "thinking": {"effort": "low"},
        "extraIdentifier": "eu",
    }


def test_an_extra_identifier_distinguishes_models_and_is_not_sent() -> None:
    item, other = model(UNIQUE), model(UNIQUE.replace("eu", "us"))
    assert item.version("candidate") != other.version("candidate")
    assert provider_options(item.version("candidate")) == {"a": 1, "reasoning_effort": "low"}


@pytest.mark.parametrize("path", ["thinking.budget", "costs", "code"])
def test_a_unique_property_that_is_not_set_is_reported(path: str) -> None:
    error = problem(
        f"code: c\nprovider: local\nthinking: {{effort: low}}\nuniqueProperties: [{path}]"
    )
    assert error.message == f"'uniqueProperties' names '{path}', which is not set"
    assert error.line == 4


def test_unique_properties_may_be_a_mapping_as_before() -> None:
    described = model("code: c\nprovider: local\nuniqueProperties: {region: eu}")
    assert described.version("candidate").options == {"uniqueProperties": {"region": "eu"}}


@pytest.mark.parametrize("place", ["", "candidateOverrides:\n  "])
def test_provider_tools_are_a_list_of_mappings(place: str) -> None:
    error = problem(f"code: c\nprovider: local\n{place}providerTools: {{web: true}}")
    assert "'providerTools' must be a list" in error.message
