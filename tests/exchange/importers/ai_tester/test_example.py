"""A project laid out as ai-tester's own example is: adopted whole, with one error of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalstore.interfaces.cli.main import main
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.reader import read_workspace
from tests.builders import tree

EXAMPLE: dict[str, str | bytes] = {
    ".env": (
        "# The database of one developer\n"
        "AI_TESTER_SQLITE_DB_PATH=data/sqlite.db\n\n"
        "AI_TESTER_LOGS_DIR=.local/_logs\n"
        "AI_TESTER_TESTS_DIR=data/tests\n"
        "AI_TESTER_PROMPTS_DIR=data/prompts\n"
        "AI_TESTER_PROVIDERS_DIR=data/providers\n"
        "AI_TESTER_MODELS_DIR=data/models\n"
        "AI_TESTER_CURRENCIES_DIR=data/currencies\n"
        "AI_TESTER_STRUCTURED_SCHEMAS_DIR=data/structured-schemas\n"
        "AI_TESTER_TOOL_DEFINITIONS_DIR=data/tool-definitions\n"
        "MAX_WAIT_TIME=240000\n"
        "MAX_TEST_OUTPUT_TOKENS=6000\n"
    ),
    ".env.local": "OPENAI_API_KEY=of-the-project\nGOOGLE_VERTEX_AI_REGION=us-central1\n",
    "ai-tester.config.yaml": (
        "candidatesTemperature: 0.2\n"
        "candidates:\n"
        "  - id: ollama/tiny:3b-q4/default\n"
        "  - id: openai/gpt-9-2030-01-02/reasoning-low\n"
        "  - id: openrouter/gpt-9/default\n"
        "attempts: 1\n"
        "requiredTags1:\n  - lang_en\n"
        "evaluatorsTemperature: 0.4\n"
        "evaluationsPerEvaluator: 2\n"
        "evaluators:\n"
        "  - id: openai/gpt-9-2030-01-02/reasoning-low\n"
        "  - id: vertex/gemini-9/default\n"
        "analysisQueries:\n"
        "  - description: In yen\n    currency: JPY\n"
        "  - description: Tiny only\n    currency: JPY\n    requiredTags2:\n      - math\n"
        "    candidates:\n      - id: ollama/tiny:3b-q4/default\n"
    ),
    "package.json": '{"scripts": {"start": "ai-tester"}}',
    "data/README.md": "Shared with the team.\n",
    "data/providers/openai.yaml": "code: openai\nname: OpenAI\ntype: openai\n",
    "data/providers/openrouter.yaml": (
        "code: openrouter\nname: OpenRouter\ntype: openai-compatible\n"
        "baseURL: https://openrouter.ai/api/v1\napiKeyEnvVar: OPENROUTER_API_KEY\n"
        "supportsStructuredOutputs: true\n"
    ),
    "data/models/openai/gpt-9.yaml": (
        "id: openai/gpt-9-2030-01-02/reasoning-low\ncode: gpt-9\nprovider: openai\n"
        "providerModelCode: gpt-9-2030-01-02\nuniqueProperties:\n  - thinking.effort\n"
        "thinking:\n  effort: low\n"
        "capabilities:\n"
        "  input:\n    text: true\n    image: true\n    file: true\n    pdf: true\n"
        "  output:\n    text: true\n    structured: true\n    tools: true\n    reasoning: true\n"
        "costs:\n  - costPerCall: 0\n    costPerPromptToken: 0.0000002\n"
        "    costPerCompletionToken: 0.0000008\n    costPerHour: 0\n    currency: USD\n"
        "    validFrom: 2030-01-02\n"
    ),
    "data/models/openrouter/gpt-9.yaml": (
        "id: openrouter/gpt-9/default\ncode: gpt-9-openrouter\nprovider: openrouter\n"
        "providerModelCode: openai/gpt-9\n"
    ),
    "data/currencies/USD.yaml": "code: USD\nrates:\n  - rateInUSD: 1\n    validFrom: 2025-01-01\n",
    "data/currencies/JPY.yaml": (
        "code: JPY\nrates:\n  - rateInUSD: 0.006\n    validFrom: 2025-01-01\n"
    ),
    "data/prompts/README.md": "Prompts go here.\n",
    "data/prompts/_evaluator-default.md": (
        "---\nid: _evaluator_default\ntags:\n  - lang_en # not filtered\n\n  - _evaluator\n"
        "  - _json_mode\n# ------\n# A note\n---\n\nJudge the response.\n\n```json\n"
        '{\n\t"pass": true\n}\n```\n\n`{{_evaluationInstructions}}`\n\n'
        "# 👤\n\nThe response:\n\n`{{_actualResponse}}`\n"
    ),
    "data/prompts/trade-en.md": "---\nid: trade-en\ntags:\n  - lang_en\n---\n\nOnly trade.\n",
    "data/prompts/helpful-en.md": "---\nid: helpful-en\ntags:\n  - lang_en\n---\n\nHelp.\n",
    "data/structured-schemas/bill.yaml": (
        "id: bill-schema\ntype: object\ndescription: A bill.\nproperties:\n"
        "  day:\n    type: string\n    format: date\n  total:\n    type: number\n"
        "  currency:\n    type: string\n    pattern: '^[A-Z]{3}$'\nrequired:\n  - total\n"
    ),
    "data/tool-definitions/tide.yaml": (
        "id: tide-table\n\nname: tideTable\ndescription: The tides of a port.\nparameters:\n"
        "  type: object\n  properties:\n    port:\n      type: string\n  required:\n    - port\n"
    ),
    "data/tests/README.md": "Tests go here.\n",
    "data/tests/0001-off-topic-en.md": (
        "---\ntags:\n  - off_topic\n  - lang_en\nsystemPrompts:\n  - trade-en\n\n"
        "replacements:\n  question:\n    - How was your day?\n    - Do you like tea?\n---\n\n"
        "# 👤\n\nHello!\n\n# 🤖\n\nHello!\n\n# 👤\n\n`{{question}}`\n\n---\n\n"
        'The question was: "`{{question}}`". The candidate must decline.\n'
    ),
    "data/tests/0002-compare-en.md": (
        "---\ntags:\n  - lang_en\n  - math\nsystemPrompts:\n  - trade-en\n  - helpful-en\n\n"
        "replacements:\n"
        "  - comparison: |\n      A: 0.3\n      B: 0.2999\n    answer: A (0.3)\n"
        "  - comparison:\n      - |\n        A: 1,000.5\n        B: 1000.5\n"
        "      - |\n        A: 7\n        B: 7.0\n    answer: that they are equal\n"
        "---\n\n# 👤\n\nWhich is greater?\n\n`{{comparison}}`\n\n---\n\n"
        "Choices:\n\n`{{comparison}}`\n\nThe answer is `{{answer}}`.\n"
    ),
    "data/tests/0003-family-en.md": (
        "---\ntags:\n  - reasoning\n  - lang_en\nsystemPrompts:\n  - helpful-en\n\n"
        "replacements:\n  - question: Who is Ann's brother?\n    answer: Yes\n"
        "  - question: Is Ann a baker?\n    answer: unknown\n---\n\n"
        "# 👤\n\nAnn has a brother.\n\nQuestion: `{{question}}`\n\n---\n\nIt is `{{answer}}`.\n"
    ),
    "data/tests/0004-bill/en.md": (
        "---\ntags:\n  # Language\n  - lang_en\n\n  - documents\n\n"
        "systemPrompts:\n  - helpful-en\n\nstructuredResponseSchema: bill-schema\n\nreplacements:\n"
        '  - document: <document path="`{{_file:0004-bill/docs/one.jpg}}`">one.jpg</document>\n'
        "    day: 2031-04-05\n    total: 440.0\n    currency: null\n---\n\n"
        "# 👤\n\nRead this:\n\n`{{document}}`\n\n---\n\n"
        "- **day**: `{{day}}`\n- **total**: `{{total}}`\n- **currency**: `{{currency}}`\n"
    ),
    "data/tests/0004-bill/docs/one.jpg": b"\xff\xd8\xff\xe0 a picture",
    "data/tests/0005-tide.md": (
        "---\ntags:\n  - lang_en\n\n  - tool-use\n\n"
        "systemPrompts:\n  - an-expert-that-is-missing\n\n"
        "availableTools:\n  - tide-table\n\nreplacements:\n"
        "  - port: Bergen\n    hint: ''\n  - port: Bergen\n    hint: I live in Norway.\n---\n\n"
        "# 👤\n\nWhen is high tide in `{{port}}`?\n`{{hint}}`\n\n---\n\n"
        "It MUST call `tideTable` with `port`: `{{port}}`\n"
    ),
}

NOTES = [
    "AI_TESTER_SQLITE_DB_PATH: 'evalstore import ai-tester-db FILE' also imports its answers",
    "no effect in evalstore: AI_TESTER_LOGS_DIR, GOOGLE_VERTEX_AI_REGION",
    "'ollama/tiny:3b-q4/default' in 'candidates' is left out: no model file has this id",
    "'vertex/gemini-9/default' in 'evaluators' is left out: no model file has this id",
    "'ollama/tiny:3b-q4/default' in 'candidates' of the query 'Tiny only' is left out: "
    "no model file has this id",
    "the query 'Tiny only' is left out: none of its candidates has a model file",
]


@pytest.fixture
def project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tree(folder, EXAMPLE))
    return folder


def test_all_that_is_left_out_is_noted(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--from", ".", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == NOTES


def test_the_example_has_one_error_of_its_own(project: Path) -> None:
    assert main(["init", "--from", "."]) == 0
    workspace = WorkspaceFolder(project)
    reading = read_workspace(workspace)
    assert [(problem.file, problem.line, problem.message) for problem in reading.problems] == [
        (
            "data/tests/0005-tide.md",
            8,
            "unknown system prompt 'an-expert-that-is-missing'",
        )
    ]
    assert [len(file.cases) for file in reading.files.values()] == [2, 3, 2, 1]
    gpt = "openai/gpt-9-2030-01-02/reasoning-low"
    assert [candidate.id for candidate in workspace.settings.candidates] == [
        gpt,
        "openrouter/gpt-9/default",
    ]
    assert [evaluator.id for evaluator in workspace.settings.evaluators] == [gpt]
    assert workspace.settings.prohibited_tags == ("skip", "example")
    assert workspace.settings.max_test_output_tokens == 6000
    assert [
        analysis_query.description for analysis_query in workspace.settings.analysis_queries
    ] == ["In yen"]
    assert reading.models[gpt].provider.key_variable == "OPENAI_API_KEY"


def test_check_of_the_example_ends_with_that_error_alone(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["init", "--from", "."])
    capsys.readouterr()
    monkeypatch.setenv("OPENROUTER_API_KEY", "a key")
    assert main(["check"]) == 2
    output = capsys.readouterr()
    assert output.err.count("error: ") == 1
    assert "data/tests/0005-tide.md:8: unknown system prompt" in output.err
    assert output.out.endswith("1 error\n")
