"""The database of an ai-tester project: its answers and verdicts count for its files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalstore.interfaces.cli.main import main
from tests.builders import tree
from tests.exchange.importers.ai_tester.database import JUDGE, SYSTEM, Database

TEST = (
    "---\ntags: [t]\nsystemPrompts: [sys1]\n{more}---\n\n# 👤\n\n{text}\n\n---\n\n{instructions}\n"
)
FAILED = {"pass": 0}
TOOL = {
    "name": "cityWeather",
    "description": "Get weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
SCHEMA = {"type": "object", "properties": {"total": {"type": "number"}}}
FILES = {
    "evalstore.yaml": (
        "candidates: [local/text]\ncandidatesTemperature: 0.3\n"
        "evaluators: [local/judge]\nevaluatorsTemperature: 0.5\n"
    ),
    "providers/local.yaml": "code: local\nname: Local\ntype: scripted\n",
    "models/text.yaml": (
        "id: local/text\ncode: m-text\nprovider: local\nproviderModelCode: m-text\n"
        "responses: [{answer: asked}]\n"
    ),
    "models/judge.yaml": (
        "id: local/judge\ncode: m-judge\nprovider: local\nproviderModelCode: m-judge\n"
        "responses: [{answer: {pass: true}}]\n"
    ),
    "prompts/sys1.md": f"---\nid: sys1\n---\n\n{SYSTEM}",
    "prompts/_evaluator_default.md": (
        f"---\nid: _evaluator_default\ntags: [_evaluator, _json_mode]\n---\n\n{JUDGE}"
    ),
    "tools/weather.yaml": json.dumps({"id": "weather-tool", **TOOL}),
    "schemas/inv.yaml": json.dumps({"id": "inv", **SCHEMA}),
    "tests/t.md": TEST.format(more="", text="Hello", instructions="Expect greeting"),
}

Document = Callable[..., Any]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tree(tmp_path / "workspace", FILES)


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "sqlite.db")


@pytest.fixture
def document(root: Path, capsys: pytest.CaptureFixture[str]) -> Document:
    def call(*command: str) -> Any:
        main(["-C", str(root), *command, "--json"])
        return json.loads(capsys.readouterr().out)

    return call


def imported(document: Document, database: Database) -> Any:
    return document("import", "ai-tester-db", str(database.path))


def test_answers_and_verdicts_count_for_the_files_as_they_are(
    root: Path, database: Database, document: Document
) -> None:
    session = database.session(database.test("# 👤\n\nHello"), "Hi!")
    database.verdict(session, "Expect greeting", **FAILED, feedback="too short")
    done = imported(document, database)
    assert done["history"] == {"sessions": 1, "verdicts": 1, "new": 2, "displaced": 0, "run": None}
    run = document("run")
    (case,) = run["cases"]
    assert (run["asked"], run["judged"], case["verdict"]) == (0, 0, "fail")
    assert case["feedback"] == "too short"


def test_an_answer_keeps_its_facts(database: Database, document: Document) -> None:
    database.session(database.test("# 👤\n\nHello"), "Hi!")
    imported(document, database)
    (case,) = document("run", "--judge-only")["cases"]
    shown = document("show", case["session"])
    (turn,) = shown["turns"]
    assert turn == {
        "text": "Hi!",
        "latency": 1.5,
        "usage": {"inputTokens": 11, "outputTokens": 7},
    }
    assert (shown["origin"], shown["started"]) == ("import", 1_730_000_000_000_000)


def test_importing_twice_stores_nothing_more(database: Database, document: Document) -> None:
    test = database.test("# 👤\n\nHello")
    for _ in range(2):
        database.verdict(database.session(test, "Hi!"), "Expect greeting")
    assert imported(document, database)["history"]["new"] == 4
    assert imported(document, database)["history"]["new"] == 0


def test_a_store_with_a_history_is_sound(database: Database, document: Document) -> None:
    test = database.test("# 👤\n\nWeather?", tool=TOOL)
    database.verdict(database.session(test, "[]"), "Call it")
    database.session(database.test("# 👤\n\nGo", schema=SCHEMA), "{}")
    imported(document, database)
    assert document("fsck")["problems"] == []


@pytest.mark.parametrize(
    ("more", "fields", "answer"),
    [
        ("availableTools: [weather-tool]\n", {"tool": TOOL}, '[{"name":"x","arguments":{}}]'),
        ("structuredResponseSchema: inv\n", {"schema": SCHEMA}, '{"total": 3}'),
    ],
)
def test_tools_and_schemas_are_those_of_the_files(
    more: str, fields: Any, answer: str, root: Path, database: Database, document: Document
) -> None:
    text = TEST.format(more=more, text="Go", instructions="E")
    tree(root, {"tests/t.md": text})
    database.verdict(database.session(database.test("# 👤\n\nGo", **fields), answer), "E")
    imported(document, database)
    plan = document("run", "-n")
    # Checks that a test implies have never been made there.
    assert (plan["ask"], plan["reuse"]) == (0, 1)
    assert all(item["evaluator"] == "checks" for item in plan["items"])


def test_calls_of_tools_are_calls_again(database: Database, root: Path, document: Document) -> None:
    more = "availableTools: [weather-tool]\n"
    tree(root, {"tests/t.md": TEST.format(more=more, text="Go", instructions="E")})
    answer = '[{"name":"cityWeather","arguments":{"city":"Oslo"}}]'
    database.session(database.test("# 👤\n\nGo", tool=TOOL), answer)
    imported(document, database)
    (case,) = document("run", "--judge-only")["cases"]
    (turn,) = document("show", case["session"])["turns"]
    assert turn["toolCalls"] == [{"name": "cityWeather", "arguments": {"city": "Oslo"}}]


def test_several_turns_and_rows_find_their_cases(
    root: Path, database: Database, document: Document
) -> None:
    text = "---\ntags: [t]\nsystemPrompts: [sys1]\nreplacements: {q: [Q2, Q3]}\n---\n\n"
    text += "# 👤\n\nQ1\n\n# 🤖\n\nR1\n\n# 👤\n\n`{{q}}`\n\n---\n\nE\n"
    tree(root, {"tests/t.md": text})
    database.session(database.test("# 👤\n\nQ1\n\n# 🤖\n\nR1\n\n# 👤\n\nQ3"), "A")
    imported(document, database)
    items = document("run", "-n")["items"]
    assert [item["row"] for item in items if item["kind"] == "ask"] == ["q=Q2"]


def test_answers_to_older_versions_are_kept(database: Database, document: Document) -> None:
    database.session(database.test("# 👤\n\nHello before"), "Hi!")
    assert imported(document, database)["history"]["sessions"] == 1
    assert document("run", "-n")["ask"] == 1


@pytest.mark.parametrize(
    ("content", "fields", "reason"),
    [
        ("# 👤\n\nSee `{{_file:a.png}}`", {}, "shows a file"),
        ("# 👤\n\none\n\n---\n\ntwo", {}, "has '---' in its messages"),
        ("nothing", {}, "has no message"),
        ("# 👤\n\nHello", {"model_version_id": 9}, "session 1 is damaged"),
    ],
)
def test_undecidable_tests_are_left(
    content: str, fields: Any, reason: str, database: Database, document: Document
) -> None:
    database.session(database.test(content), "Hi!", **fields)
    done = imported(document, database)
    assert reason in done["left"][0]["reason"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("provider_model_code = 'm-old'", "no model file has the code 'm-old' at 'local'"),
        ("active = 0", "was called with other options at that time"),
        (
            'runtime_options_json = \'{"thinking": {"effort": "low"}}\'',
            "was called with other options at that time",
        ),
    ],
)
def test_answers_of_other_models_are_left_together(
    change: str, reason: str, database: Database, document: Document
) -> None:
    test = database.test("# 👤\n\nHello")
    database.session(test, "one")
    database.session(test, "two")
    database.execute(f"UPDATE model_versions SET {change} WHERE id = 1")
    (left,) = imported(document, database)["left"]
    assert reason in left["reason"]
    assert left["reason"].endswith("(session 1 and 1 more)")


THINKING = (
    "thinking: {includeThoughts: true}\nproviderOptions: {top_k: 1}\n"
    "candidateOverrides: {thinking: {budgetTokens: 5}}\n"
    "evaluatorOverrides: {providerOptions: {top_k: 2}}\n"
)
BASE = {"thinking": {"includeThoughts": True}, "providerOptions": {"top_k": 1}}
EFFECTIVE = {
    "thinking": {"includeThoughts": True, "budgetTokens": 5},
    "providerOptions": {"top_k": 1},
}
WITH_ROLES = {
    **BASE,
    "candidateOverrides": {"thinking": {"budgetTokens": 5}, "providerOptions": {}},
    "evaluatorOverrides": {"thinking": None, "providerOptions": {"top_k": 2}},
}


def with_options(database: Database, options: Any, **fields: Any) -> int:
    """Another version of the candidate, as the newest databases have them."""
    return database.insert(
        "model_versions",
        model_id=1,
        provider_id=1,
        provider_model_code="m-text",
        runtime_options_json=json.dumps(options),
        active=1,
        **fields,
    )


@pytest.mark.parametrize(
    ("options", "taken"),
    [
        (EFFECTIVE, 1),
        (WITH_ROLES, 1),
        (BASE, 0),
        ({**BASE, "providerOptions": {"top_k": 2}}, 0),
        ({**EFFECTIVE, "providerTools": [{"type": "x"}]}, 0),
        ({**WITH_ROLES, "candidateOverrides": {"thinking": {"budgetTokens": 6}}}, 0),
    ],
    ids=["effective", "by role", "base", "of the other role", "more", "other override"],
)
def test_the_options_of_a_role_tell_whether_an_answer_is_of_the_file(
    options: Any, taken: int, root: Path, database: Database, document: Document
) -> None:
    tree(root, {"models/text.yaml": FILES["models/text.yaml"] + THINKING})
    id = with_options(database, options)
    database.session(database.test("# 👤\n\nHello"), "Hi!", model_version_id=id)
    assert imported(document, database)["history"]["sessions"] == taken
    assert document("run", "-n")["ask"] == 1 - taken


def test_the_options_of_a_judge_are_those_of_its_role(
    root: Path, database: Database, document: Document
) -> None:
    tree(root, {"models/judge.yaml": FILES["models/judge.yaml"] + THINKING})
    options = {**BASE, "providerOptions": {"top_k": 2}}
    change = f"UPDATE model_versions SET runtime_options_json = '{json.dumps(options)}'"
    database.execute(f"{change} WHERE id = 2")
    session = database.session(database.test("# 👤\n\nHello"), "Hi!")
    database.verdict(session, "Expect greeting")
    done = imported(document, database)
    assert (done["history"]["verdicts"], done["left"]) == (1, [])


@pytest.mark.parametrize("last", ["low", "high"])
def test_each_of_two_variants_of_a_model_has_its_own_answers(
    last: str, root: Path, database: Database, document: Document
) -> None:
    first = {"low": "high", "high": "low"}[last]
    for name, effort in (("text", first), ("variant", last)):
        more = f"uniqueProperties: [thinking.effort]\nthinking: {{effort: {effort}}}\n"
        text = FILES["models/text.yaml"].replace("local/text", f"local/{effort}") + more
        tree(root, {f"models/{name}.yaml": text})
    settings = FILES["evalstore.yaml"].replace("[local/text]", "[local/low, local/high]")
    tree(root, {"evalstore.yaml": settings})
    test = database.test("# 👤\n\nHello")
    for effort in ("low", "high"):
        id = with_options(database, {"providerOptions": {}, "thinking": {"effort": effort}})
        database.session(test, f"with {effort}", model_version_id=id)
    assert imported(document, database)["left"] == []
    answers = {}
    for case in document("run", "--judge-only")["cases"]:
        (turn,) = document("show", case["session"])["turns"]
        answers[case["model"]] = turn["text"]
    assert answers == {"local/low": "with low", "local/high": "with high"}


def test_an_extra_identifier_distinguishes_variants(
    root: Path, database: Database, document: Document
) -> None:
    database.execute("ALTER TABLE model_versions ADD extra_identifier text")
    text = FILES["models/text.yaml"]
    tree(root, {"models/b.yaml": text.replace("local/text", "b") + "extraIdentifier: digest-2\n"})
    test = database.test("# 👤\n\nHello")
    for extra in ("digest-1", "digest-2", None):
        id = with_options(database, {"providerOptions": {}}, extra_identifier=extra)
        database.session(test, f"from {extra}", model_version_id=id)
    done = imported(document, database)
    assert done["history"]["sessions"] == 2
    assert [item["reason"] for item in done["left"]] == [
        "the models 'b' and 'local/text' were called with other options at that time (session 1)"
    ]


def test_an_answer_of_one_of_two_models_that_nobody_can_tell_is_left(
    root: Path, database: Database, document: Document
) -> None:
    text = FILES["models/text.yaml"].replace("local/text", "b") + "thinking: low\n"
    tree(root, {"models/b.yaml": text})
    database.execute("ALTER TABLE model_versions DROP COLUMN runtime_options_json")
    database.session(database.test("# 👤\n\nHello"), "Hi!")
    (left,) = imported(document, database)["left"]
    assert left["reason"] == "the source does not name the model: 'b' or 'local/text' (session 1)"
    tree(root, {"models/b.yaml": text + "active: false\n"})
    assert imported(document, database)["history"]["sessions"] == 1


def test_columns_that_came_later_may_be_missing(database: Database, document: Document) -> None:
    database.session(database.test("# 👤\n\nHello"), "Hi!")
    database.execute("ALTER TABLE model_versions DROP COLUMN runtime_options_json")
    database.execute("ALTER TABLE model_versions DROP COLUMN active")
    database.execute("DROP TABLE tool_versions")
    database.execute("DROP TABLE test_to_tool_version_rels")
    assert imported(document, database)["history"]["sessions"] == 1


def test_what_is_switched_off_does_not_count(database: Database, document: Document) -> None:
    for table in ("sessions", "session_evaluations"):
        database.execute(f"ALTER TABLE {table} ADD active integer DEFAULT true NOT NULL")
    test = database.test("# 👤\n\nHello")
    session = database.session(test, "Hi!")
    database.session(test, "cut", active=0)
    database.verdict(session, "Expect greeting", **FAILED, active=0)
    done = imported(document, database)
    assert (done["history"]["sessions"], done["history"]["verdicts"], done["left"]) == (1, 0, [])
    assert [item["reason"] for item in done["warnings"]] == [
        "1 session skipped: inactive ('active' is false)"
    ]


@pytest.mark.parametrize(("there", "here"), [("tool-calls", "tool_calls"), ("unknown", None)])
def test_why_an_answer_ended_is_kept(
    database: Database, document: Document, there: str, here: str | None
) -> None:
    database.execute("ALTER TABLE sessions ADD finish_reason text")
    database.session(database.test("# 👤\n\nHello"), "Hi!", finish_reason=there)
    imported(document, database)
    (case,) = document("run", "--judge-only")["cases"]
    (turn,) = document("show", case["session"])["turns"]
    assert turn.get("finishReason") == here


def test_another_file_is_refused(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree(tmp_path, {"notes.db": "no database"})
    assert main(["-C", str(root), "import", "ai-tester-db", str(tmp_path / "notes.db")]) == 2
    assert "cannot be read as ai-tester's database" in capsys.readouterr().err
