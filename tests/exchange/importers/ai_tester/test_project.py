from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalstore.core.errors import EvalstoreError
from evalstore.exchange.importers.ai_tester import adopt
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.reader import read_workspace
from evalstore.workspace.settings.settings import Participant, QueryModel, read_settings
from tests.builders import HELLO, tree

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = {
    ".env": (
        "# where things are\n"
        "AI_TESTER_SQLITE_DB_PATH=data/sqlite.db\n"
        'export AI_TESTER_CONFIG_PATH="config.yaml"  # what to run\n'
        "AI_TESTER_TESTS_DIR=data/tests\n"
        "AI_TESTER_PROMPTS_DIR=./data/prompts/\n"
        "AI_TESTER_PROVIDERS_DIR=data/providers\n"
        "AI_TESTER_MODELS_DIR=data/models\n"
        "AI_TESTER_CURRENCIES_DIR=data/currencies\n"
        "AI_TESTER_STRUCTURED_SCHEMAS_DIR=data/schemas\n"
        "AI_TESTER_TOOL_DEFINITIONS_DIR=data/tools\n"
        "LOCAL_KEY=sk-local\n"
    ),
    "config.yaml": (
        "candidates:\n"
        "  - {id: 'local/a:free', temperature: 0.7, requiredTags: ['Yes', 007]}\n"
        "candidatesTemperature: 0.3\n"
        "attempts: 2\n"
        "requiredTags1: []\n"
        "prohibitedTags: [slow]\n"
        "evaluators: [{id: local/judge}]\n"
        "evaluationsPerEvaluator: 3\n"
        "maxTestOutputTokens: 4000\n"
        "analysisQueries:\n"
        "  - {description: in dollars, currency: USD}\n"
    ).replace("007", "'007'"),
    "data/tests/sub/hello.md": HELLO,
    "data/prompts/brief.md": "Be brief.\n",
    "data/providers/local.yaml": (
        "code: local\ntype: openai-compatible\nbaseURL: http://h/v1\n"
        "supportsStructuredOutputs: true\n"
    ),
    "data/models/a.yaml": "id: local/a:free\ncode: a\nprovider: local\n",
    "data/models/judge.yaml": "id: local/judge\ncode: judge\nprovider: local\n",
    "data/currencies/USD.yaml": "code: USD\nrates: [{rateInUSD: 1, validFrom: 2020-01-01}]\n",
    "data/schemas/s.yaml": "id: s\ntype: object\n",
    "data/tools/w.yaml": "id: w\nname: w\nparameters: {type: object}\n",
}

WRITTEN = """\
candidates:
- id: local/a:free
  temperature: 0.7
  requiredTags: ['Yes', '007']
candidatesTemperature: 0.3
attempts: 2
requiredTags1: []
prohibitedTags: [slow]
evaluators:
- {id: local/judge}
evaluatorsTemperature: 0.3
evaluationsPerEvaluator: 3
maxTestOutputTokens: 4000
maxEvaluationOutputTokens: 2500
analysisQueries:
- {description: in dollars, currency: USD}
paths:
  tests: data/tests
  prompts: data/prompts
  tools: data/tools
  schemas: data/schemas
  models: data/models
  providers: data/providers
  currencies: data/currencies
"""


def refusal(folder: Path) -> EvalstoreError:
    with pytest.raises(EvalstoreError) as caught:
        adopt(folder)
    assert caught.value.hint
    return caught.value


def test_the_settings_are_carried_over(folder: Path) -> None:
    text, notes = adopt(tree(folder, PROJECT))
    assert text == WRITTEN
    assert notes == [
        "AI_TESTER_SQLITE_DB_PATH: 'evalstore import ai-tester-db FILE' also imports its answers"
    ]
    assert read_settings(text).candidates == (Participant("local/a:free", 0.7, ("Yes", "007")),)


def test_nothing_is_moved_and_everything_is_found(folder: Path) -> None:
    tree(folder, PROJECT)
    tree(folder, {"evalstore.yaml": adopt(folder)[0]})
    reading = read_workspace(WorkspaceFolder(folder))
    assert reading.problems == []
    assert list(reading.files) == ["data/tests/sub/hello.md"]
    assert list(reading.models) == ["local/a:free", "local/judge"]
    assert list(reading.currencies) == ["USD"]
    assert reading.names.keys() == {"prompts", "tools", "schemas"}
    assert {name for names in reading.names.values() for name in names} == {
        "brief", "_evaluator_default", "w", "s",
    }  # fmt: skip


def test_the_workspace_may_lie_above_the_project(folder: Path, tmp_path: Path) -> None:
    tree(folder, PROJECT)
    assert "  tests: workspace/data/tests\n" in adopt(folder, tmp_path)[0]


def test_the_workspace_may_not_lie_beside_the_project(folder: Path, tmp_path: Path) -> None:
    tree(folder, PROJECT)
    with pytest.raises(EvalstoreError, match="outside the workspace 'beside'"):
        adopt(folder, tmp_path / "beside")


def test_local_variables_win(folder: Path) -> None:
    tree(folder, {**PROJECT, ".env.local": "AI_TESTER_TESTS_DIR=other\n"})
    text, notes = adopt(folder)
    assert "  tests: other\n" in text
    assert "the folder 'other' does not exist" in notes


def test_what_has_no_place_is_noted(folder: Path) -> None:
    config = "candidates: [{id: 'local/a:free', weight: 2}]\nverbose: true\n"
    text, notes = adopt(tree(folder, {**PROJECT, "config.yaml": config}))
    assert "weight" not in text
    assert "'verbose' is left out: evalstore has no such setting" in notes
    assert "'weight' of 'local/a:free' in 'candidates' is left out" in notes


def test_models_are_named_by_provider_and_code(folder: Path) -> None:
    config = (
        "candidates:\n"
        "  - {provider: local, model: 'a:free'}\n"
        "  - {provider: local, model: big-1, temperature: 0.5, requiredTags: [x]}\n"
        "  - {provider: vertex, model: gemini-9}\n"
        "analysisQueries:\n"
        "  - {description: d, currency: USD, candidates: [{provider: local, model: big-1}]}\n"
    )
    models = {
        "data/models/old.yaml": (
            "code: old\nprovider: local\nproviderModelCode: big-1\nactive: false\n"
        ),
        "data/models/new.yaml": "code: new\nprovider: local\nproviderModelCode: big-1\n",
        "data/models/a.yaml": "id: local/a\nprovider: local\nproviderModelCode: 'a:free'\n",
        "data/models/broken.yaml": "code: [\n",
    }
    text, notes = adopt(tree(folder, {**PROJECT, "config.yaml": config, **models}))
    settings = read_settings(text)
    assert settings.candidates == (
        Participant("local/a", 0.3),
        Participant("new", 0.5, ("x",)),
        Participant("vertex_ai/gemini-9", 0.3),
    )
    assert "  currency: USD\n  candidates:\n  - {id: new}\n" in text
    assert [note for note in notes if "no model file" in note] == [
        "'vertex_ai/gemini-9' in 'candidates' has no model file: calls use only its name"
    ]


@pytest.mark.parametrize("config", ["candidates: []\n", "candidatesTemperature: null\n"])
def test_what_a_configuration_leaves_out_is_as_in_ai_tester(folder: Path, config: str) -> None:
    settings = read_settings(adopt(tree(folder, {**PROJECT, "config.yaml": config}))[0])
    assert (settings.candidates_temperature, settings.evaluators_temperature) == (0.3, 0.3)
    assert (settings.attempts, settings.evaluations_per_evaluator) == (1, 3)
    assert (settings.required_tags1, settings.required_tags2) == ((), ())
    assert settings.prohibited_tags == ("skip", "example")
    assert settings.max_test_output_tokens == 7000
    assert settings.max_evaluation_output_tokens == 2500
    assert settings.timeout == 120


def test_what_a_configuration_says_is_kept_where_it_says_nothing(folder: Path) -> None:
    config = (
        "candidatesTemperature: 0\nevaluatorsTemperature: 0\nevaluationsPerEvaluator: 1\n"
        "prohibitedTags: []\ncandidates: [{id: 'local/a:free'}]\n"
        "analysisQueries: [{description: d, currency: USD}]\n"
    )
    settings = read_settings(adopt(tree(folder, {**PROJECT, "config.yaml": config}))[0])
    assert (settings.candidates_temperature, settings.evaluators_temperature) == (0, 0)
    assert (settings.evaluations_per_evaluator, settings.prohibited_tags) == (1, ())
    assert settings.candidates[0].prohibited_tags == ()
    assert settings.analysis_queries[0].prohibited_tags == ()


def test_limits_of_the_environment_are_settings(folder: Path) -> None:
    env = (
        "MAX_WAIT_TIME=1500\nMAX_TEST_OUTPUT_TOKENS=8000\nMAX_EVALUATION_OUTPUT_TOKENS=lots\n"
        "MAX_TEST_THINKING_TOKENS=10\n"
    )
    config = "evaluatorsTemperature: 0.2\n"
    text, notes = adopt(
        tree(folder, {**PROJECT, ".env": PROJECT[".env"] + env, "config.yaml": config})
    )
    assert "maxTestOutputTokens: 8000\nmaxEvaluationOutputTokens: 2500\ntimeout: 1.5\n" in text
    assert (
        "MAX_EVALUATION_OUTPUT_TOKENS: 'lots' is left out: it is not a whole number above 0"
        in notes
    )
    assert "no effect in evalstore: MAX_TEST_THINKING_TOKENS" in notes


def test_what_a_configuration_says_comes_before_the_environment(folder: Path) -> None:
    env = PROJECT[".env"] + "MAX_TEST_OUTPUT_TOKENS=1\n"
    text, _ = adopt(tree(folder, {**PROJECT, ".env": env}))
    assert "maxTestOutputTokens: 4000\n" in text


@pytest.mark.parametrize("name", [".env", ".env.local"])
def test_variables_without_effect_are_noted(folder: Path, name: str) -> None:
    more = (
        "GOOGLE_APPLICATION_CREDENTIALS=/k.json\nGOOGLE_API_KEY=key\n"
        "AI_TESTER_OLLAMA_BASE_URL=http://user:word@h:1/api\n"
    )
    tree(folder, PROJECT)
    path = folder / name
    path.write_text((path.read_text() if path.exists() else "") + more)
    _, notes = adopt(folder)
    unused = "AI_TESTER_OLLAMA_BASE_URL, GOOGLE_APPLICATION_CREDENTIALS"
    assert f"no effect in evalstore: {unused}" in notes
    assert "word" not in " ".join(notes)


@pytest.mark.parametrize("setting", ["", "AI_TESTER_CONFIG_PATH=\n"])
def test_the_configuration_has_a_usual_name(folder: Path, setting: str) -> None:
    named = 'export AI_TESTER_CONFIG_PATH="config.yaml"  # what to run\n'
    files = {**PROJECT, ".env": PROJECT[".env"].replace(named, setting)}
    files["ai-tester.config.yaml"] = files.pop("config.yaml")
    assert adopt(tree(folder, files))[0] == WRITTEN


def test_a_project_without_variables_is_known_by_its_configuration(folder: Path) -> None:
    text, _ = adopt(tree(folder, {"ai-tester.config.yaml": "attempts: 2\n", "tests/a.md": HELLO}))
    assert read_settings(text).attempts == 2
    assert "  tests: tests\n" in text


@pytest.mark.parametrize("env", ["", "AI_TESTER_TESTS_DIR=tests\n"])
def test_not_every_folder_is_a_project(folder: Path, env: str) -> None:
    assert "is not an ai-tester project" in str(refusal(tree(folder, {".env": env})))


@pytest.mark.parametrize("outside", ["../shared", "/tmp", "data/../../x"])
def test_folders_outside_are_refused(folder: Path, outside: str) -> None:
    env = PROJECT[".env"].replace("TESTS_DIR=data/tests", f"TESTS_DIR={outside}")
    assert "outside" in str(refusal(tree(folder, {**PROJECT, ".env": env})))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("attempts: 0\n", "config.yaml: 'attempts' must be"),
        ("a: 1\na: 2\n", "config.yaml:2: key 'a'"),
    ],
)
def test_a_wrong_config_is_reported(folder: Path, config: str, message: str) -> None:
    tree(folder, {**PROJECT, "config.yaml": config})
    with pytest.raises(EvalstoreError, match=message):
        adopt(folder)


def test_a_missing_config_is_reported(folder: Path) -> None:
    tree(folder, {".env": PROJECT[".env"]})
    with pytest.raises(EvalstoreError, match=r"config\.yaml: cannot be read"):
        adopt(folder)


def test_a_model_without_an_id_is_called_by_its_provider_and_name(folder: Path) -> None:
    config = (
        "candidates: [{id: openai/gpt-9-2030}, {id: local/a}]\nevaluators: [{id: local/judge}]\n"
    )
    files = {
        "data/models/gpt.yaml": "code: gpt-9\nprovider: openai\nproviderModelCode: gpt-9-2030\n",
        "data/models/a.yaml": "id: local/a\nprovider: local\nproviderModelCode: a\n",
    }
    text, _ = adopt(tree(folder, {**PROJECT, "config.yaml": config, **files}))
    settings = read_settings(text)
    assert [candidate.id for candidate in settings.candidates] == ["gpt-9", "local/a"]
    assert [evaluator.id for evaluator in settings.evaluators] == ["local/judge"]


def test_an_id_without_a_model_file_is_left_out_and_noted(folder: Path) -> None:
    config = (
        "candidates: [{id: 'ollama/phi:14b/default'}, {id: 'local/a:free'}]\n"
        "evaluators: [{id: openai/other, temperature: 0.5}]\n"
    )
    text, notes = adopt(tree(folder, {**PROJECT, "config.yaml": config}))
    settings = read_settings(text)
    assert [candidate.id for candidate in settings.candidates] == ["local/a:free"]
    assert settings.evaluators == ()
    assert [note for note in notes if "model file" in note] == [
        "'ollama/phi:14b/default' in 'candidates' is left out: no model file has this id",
        "'openai/other' in 'evaluators' is left out: no model file has this id",
    ]


def test_a_query_keeps_only_models_with_a_file_and_never_becomes_wider(folder: Path) -> None:
    config = (
        "analysisQueries:\n"
        "  - {description: some, candidates: [{id: openai/other}, {id: 'local/a:free'}]}\n"
        "  - {description: none, currency: USD, evaluators: [{id: openai/other}]}\n"
        "  - {description: all, candidates: []}\n"
    )
    text, notes = adopt(tree(folder, {**PROJECT, "config.yaml": config}))
    query, everything = read_settings(text).analysis_queries
    assert [candidate.id for candidate in query.candidates] == ["local/a:free"]
    assert (everything.description, everything.candidates) == ("all", ())
    assert [note for note in notes if "query" in note] == [
        "'openai/other' in 'candidates' of the query 'some' is left out: no model file has this id",
        "'openai/other' in 'evaluators' of the query 'none' is left out: no model file has this id",
        "the query 'none' is left out: none of its evaluators has a model file",
    ]


@pytest.mark.parametrize("list_name", ["candidates", "evaluators"])
def test_tags_of_models_in_a_query_are_left_out_and_noted(folder: Path, list_name: str) -> None:
    model = "{id: local/judge, temperature: 0.5, requiredTags: [a], prohibitedTags: [b]}"
    config = (
        "analysisQueries:\n"
        f"  - {{description: d, currency: USD, requiredTags1: [c], {list_name}: [{model}]}}\n"
    )
    text, notes = adopt(tree(folder, {**PROJECT, "config.yaml": config}))
    (query,) = read_settings(text).analysis_queries
    assert query.required_tags1 == ("c",)
    assert getattr(query, list_name) == (QueryModel("local/judge", 0.5),)
    why = "is left out: a query has tags for all its models"
    assert [note for note in notes if "of 'local/judge'" in note] == [
        f"'{field}' of 'local/judge' in '{list_name}' of the query 'd' {why}"
        for field in ("requiredTags", "prohibitedTags")
    ]


def test_an_unknown_field_of_a_query_is_left_out_and_noted(folder: Path) -> None:
    config = "analysisQueries: [{description: d, currency: USD, sortBy: cost}]\n"
    text, notes = adopt(tree(folder, {**PROJECT, "config.yaml": config}))
    assert [
        analysis_query.description for analysis_query in read_settings(text).analysis_queries
    ] == ["d"]
    assert "'sortBy' of the query 'd' is left out: evalstore has no such field" in notes


EXAMPLE = {
    ".env": PROJECT[".env"],
    "config.yaml": (
        "candidates: [{id: openai/gpt-9-2030/low}, {id: router/small}]\n"
        "requiredTags1: [lang_en]\n"
        "evaluators: [{id: openai/gpt-9-2030/low}]\n"
        "evaluationsPerEvaluator: 2\n"
    ),
    "data/providers/openai.yaml": "code: openai\nname: OpenAI\ntype: openai\n",
    "data/providers/router.yaml": (
        "code: router\nname: Router\ntype: openai-compatible\nbaseURL: https://r.example/v1\n"
        "apiKeyEnvVar: ROUTER_KEY\nsupportsStructuredOutputs: true\n"
    ),
    "data/models/openai/gpt.yaml": (
        "id: openai/gpt-9-2030/low\ncode: gpt-9\nprovider: openai\nproviderModelCode: gpt-9-2030\n"
        "extraIdentifier: batch\nuniqueProperties:\n  - thinking.effort\nthinking:\n  effort: low\n"
    ),
    "data/models/router/small.yaml": "id: router/small\ncode: small\nprovider: router\n",
    "data/currencies/USD.yaml": "code: USD\nrates:\n  - rateInUSD: 1\n    validFrom: 2024-01-01\n",
    "data/prompts/helpful.md": "---\nid: helpful\ntags: [lang_en]\n---\n\nHelp.\n",
    "data/prompts/README.md": "# Not a prompt\n",
    "data/schemas/bill.yaml": "id: bill\ntype: object\nproperties:\n  total: {type: number}\n",
    "data/tools/w.yaml": "id: weather\nname: weather\nparameters: {type: object}\n",
    "data/tests/README.md": "# Not a test\n",
    "data/tests/1-talk.md": (
        "---\ntags: [lang_en]\nauthor: somebody\nsystemPrompts: [helpful]\n"
        "replacements:\n  q: [How are you?, Where are you?]\n---\n\n"
        "# 👤\n\n`{{q}}`\n\n---\n\nIt was asked: `{{q}}`\n"
    ),
    "data/tests/2-bill/en.md": (
        "---\ntags: [lang_en]\nsystemPrompts: [helpful]\nstructuredResponseSchema: bill\n"
        "replacements:\n"
        '  - {page: "<page src=\\"`{{_file:2-bill/docs/`{{n}}`.txt}}`\\">", n: one, total: 440.0}\n'
        '  - {page: "<page src=\\"`{{_file:2-bill/docs/`{{n}}`.txt}}`\\">", n: two, total: null}\n'
        "---\n\n# 👤\n\nRead `{{page}}`\n\n---\n\nThe total is `{{total}}`.\n"
    ),
    "data/tests/2-bill/docs/one.txt": "440",
    "data/tests/2-bill/docs/two.txt": "nothing",
    "data/tests/3-weather.md": (
        "---\ntags: [lang_en]\nsystemPrompts:\n  - an-expert-that-is-missing\n"
        "availableTools: [weather]\n---\n\n# 👤\n\nHow is it outside?\n\n---\n\nCalls `weather`.\n"
    ),
}  # fmt: skip
"""A project with all that its documentation shows; one of its system prompts is missing."""


def test_the_only_error_of_a_project_is_its_own(folder: Path) -> None:
    tree(folder, EXAMPLE)
    tree(folder, {"evalstore.yaml": adopt(folder)[0]})
    reading = read_workspace(WorkspaceFolder(folder))
    assert [(error.file, error.line, error.message) for error in reading.errors] == [
        ("data/tests/3-weather.md", 4, "unknown system prompt 'an-expert-that-is-missing'")
    ]
    assert [
        (problem.file, problem.line)
        for problem in reading.problems
        if problem.severity == "warning"
    ] == [("data/tests/1-talk.md", 3)]
    assert [len(file.cases) for file in reading.files.values()] == [2, 2]
