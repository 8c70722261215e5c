"""`import`: what it writes, keeps and says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evalstore.files.yaml12 import write_yaml
from tests.builders import tree
from tests.exchange.importers.langbite import library as langbite_library
from tests.interfaces.cli.conftest import Evalstore, Ran
from tests.interfaces.cli.test_documents import schema_of


def test_an_unknown_format_is_reported_with_the_nearest_one(
    workspace: Path, evalstore: Evalstore
) -> None:
    ran = evalstore("import", "prompfoo", ".")
    assert (ran.exit_code, ran.stderr) == (
        2,
        "error: unknown format 'prompfoo'\nhint: did you mean 'promptfoo'?\n",
    )


SAMPLES = (
    '{"input": "Capital of Norway?", "ideal": "Oslo", "completion": "Oslo."}\n'
    '{"input": "Capital of Italy?", "ideal": ["Rome", "Roma"]}\n'
    '{"input": "Capital of Peru?"}\n'
)


@pytest.fixture
def samples(workspace: Path) -> Path:
    tree(workspace, {"source/capitals.jsonl": SAMPLES})
    return workspace


def test_it_says_what_it_wrote_and_what_it_left(samples: Path, evalstore: Evalstore) -> None:
    assert evalstore("import", "openai-evals", "source/capitals.jsonl") == Ran(
        1,
        "           TEST FILES  OTHER FILES\nwritten             1            1\n"
        "unchanged           0            0\n2 rows in all\n"
        "wrote tests/capitals/capitals.jsonl\nwrote tests/capitals/capitals.md\n"
        "not imported:\n"
        "  source/capitals.jsonl:3: the row has no 'ideal'\n"
        "imported with a difference:\n"
        "  source/capitals.jsonl: no eval says how these samples are judged: 'Match' is used\n",
        "Next: 'evalstore check' reads what was written, 'evalstore run' asks and judges.\n",
    )


def test_importing_twice_is_importing_once(samples: Path, documents: Any) -> None:
    first = documents("import", "openai-evals", "source/capitals.jsonl")
    again = documents("import", "openai-evals", "source/capitals.jsonl")
    assert first["written"] == ["tests/capitals/capitals.jsonl", "tests/capitals/capitals.md"]
    assert (again["written"], again["unchanged"]) == ([], first["written"])


def test_a_linked_folder_leads_no_file_out(samples: Path, evalstore: Evalstore) -> None:
    outside = samples.parent / "outside"
    outside.mkdir()
    (samples / "tests/capitals").symlink_to(outside)
    ran = evalstore("import", "openai-evals", "source/capitals.jsonl")
    assert (ran.exit_code, ran.stderr) == (
        2,
        f"error: tests/capitals: leads to '{outside}', which is outside the workspace\n"
        "hint: copy it into the workspace, or allow it with '--allow-outside'\n",
    )
    assert list(outside.iterdir()) == []


def test_forced_writing_replaces_a_link_and_not_what_it_names(
    samples: Path, evalstore: Evalstore
) -> None:
    outside = samples.parent / "outside.md"
    outside.write_text("mine")
    tree(samples, {"tests/capitals/other.md": "x"})
    (samples / "tests/capitals/capitals.md").symlink_to(outside)
    evalstore("import", "openai-evals", "source/capitals.jsonl", "--force")
    assert outside.read_text() == "mine"
    assert (samples / "tests/capitals/capitals.md").read_text().startswith("---\n")


@pytest.mark.parametrize(("force", "kept"), [((), 1), (("--force",), 0)])
def test_an_edited_file_is_kept_unless_forced(
    samples: Path, documents: Any, force: tuple[str, ...], kept: int
) -> None:
    documents("import", "openai-evals", "source/capitals.jsonl")
    edited = samples / "tests/capitals/capitals.md"
    edited.write_text(edited.read_text() + "\n")
    document = documents("import", *force, "openai-evals", "source/capitals.jsonl")
    assert len(document["kept"]) == kept
    assert edited.read_text().endswith("\n\n") == bool(kept)


def test_a_dry_run_writes_nothing(samples: Path, documents: Any) -> None:
    document = documents("import", "-n", "openai-evals", "source/capitals.jsonl", "--into", "a/b")
    assert document["written"] == ["tests/a/b/capitals.jsonl", "tests/a/b/capitals.md"]
    assert not (samples / "tests/a").exists()


def test_it_has_its_shape(samples: Path, documents: Any) -> None:
    document = documents("import", "openai-evals", "source/capitals.jsonl")
    assert document["left"]
    jsonschema.Draft202012Validator(schema_of(["import"])).validate(document)


def test_what_belongs_into_the_settings_is_printed_to_be_pasted(
    workspace: Path, evalstore: Evalstore
) -> None:
    text = "prompts: [x]\nproviders: [openai:gpt-4o]\ntests: [{assert: [{type: is-json}]}]\n"
    tree(workspace, {"source/promptfooconfig.yaml": text})
    ran = evalstore("import", "promptfoo", "source")
    assert ran.exit_code == 0
    assert ran.stdout.endswith("add to evalstore.yaml:\n  candidates: [openai/gpt-4o]\n")


def test_a_configuration_that_cannot_be_read_is_one_error(
    workspace: Path, evalstore: Evalstore
) -> None:
    source = workspace / "source/promptfooconfig.yaml"
    tree(workspace, {"source/promptfooconfig.yaml": PROMPTFOO + ONE})
    evalstore("import", "promptfoo", "source")
    source.write_text("prompts: [\n")
    ran = evalstore("import", "promptfoo", "source")
    assert ran == Ran(
        2,
        "",
        "error: source/promptfooconfig.yaml:1: 'promptfooconfig.yaml': the [ is not closed\n",
    )


def test_the_grader_of_a_configuration_is_an_evaluator(
    workspace: Path, evalstore: Evalstore
) -> None:
    text = (
        "prompts: [x]\ntests: [{assert: [{type: llm-rubric, value: It is polite.}]}]\n"
        "defaultTest: {options: {provider: openai:gpt-4o}}\n"
    )
    tree(workspace, {"source/promptfooconfig.yaml": text})
    assert "evaluators: [openai/gpt-4o]" in evalstore("import", "promptfoo", "source").stdout


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("openai-evals", "none.jsonl"), "error: file or folder 'none.jsonl' not found"),
        (
            ("openai-evals", "source/capitals.jsonl", "--into", "../x"),
            "error: '../x' is not a folder inside the tests folder",
        ),
        (("openai-evals", "evalstore.yaml"), "error: no evals in 'evalstore.yaml'"),
    ],
)
def test_what_cannot_be_imported_is_an_error(
    samples: Path, evalstore: Evalstore, argv: tuple[str, ...], message: str
) -> None:
    ran = evalstore("import", *argv)
    assert ran.stderr.startswith(message)
    assert ran.exit_code == 2


def test_imported_tests_run(samples: Path, documents: Any) -> None:
    documents("import", "openai-evals", "source/capitals.jsonl")
    responses = (
        "responses:\n  - {when: Norway, answer: 'Oslo, of course'}\n  - {answer: 'It is Rome'}\n"
    )
    (samples / "models/one.yaml").write_text(f"id: scripted/one\nprovider: scripted\n{responses}")
    document = documents("run", "tests/capitals")
    assert [case["verdict"] for case in document["cases"]] == ["pass", "fail"]


def test_recorded_answers_are_judged_without_a_call(samples: Path, documents: Any) -> None:
    row = '{"input": [{"role": "user", "content": "Hi"}], "completion": "Warm", "ideal": "Warm"}\n'
    tree(samples, {"source/s.jsonl": row})
    documents("import", "evalsone", "source/s.jsonl")
    document = documents("run", "tests/s")
    assert [(case["model"], case["verdict"]) for case in document["cases"]] == [
        ("recorded", "pass")
    ]
    assert document["cost"] == 0


def judging(workspace: Path, answer: str) -> None:
    """Let the judge say one thing."""
    text = f"id: scripted/judge\nprovider: scripted\nresponses: [{{answer: {answer!r}}}]\n"
    (workspace / "models/judge.yaml").write_text(text)


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ('{"reasoning": "It is right.", "choice": "A"}', "pass"),
        ('{"reasoning": "", "choice": "B"}', "fail"),
        ("Hm?", "fail"),  # the lowest score, as there
    ],
)
def test_a_model_grades_as_in_openai_evals(
    workspace: Path, documents: Any, reply: str, verdict: str
) -> None:
    spec = (
        "fact:\n  prompt: 'Question: {input} Expert: {ideal} Answer: {completion}'\n"
        "  choice_strings: AB\n  choice_scores: {A: 1.0, B: 0.0}\n  eval_type: cot_classify\n"
        "  input_outputs: {input: completion}\n"
    )
    args = "{samples_jsonl: s.jsonl, modelgraded_spec: fact}"
    files = {
        "source/evals/e.yaml": f"e.v0:\n  class: c:ModelBasedClassify\n  args: {args}\n",
        "source/modelgraded/fact.yaml": spec,
        "source/data/s.jsonl": '{"input": "Hi", "ideal": "Yo", "completion": "Yo."}\n',
    }
    tree(workspace, files)
    documents("import", "openai-evals", "source")
    judging(workspace, reply)
    (case,) = documents("run", "tests/source")["cases"]
    assert (case["model"], case["verdict"]) == ("recorded", verdict)


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ('{"reasoning": "", "score": "SCORE: 4"}', "pass"),
        ('{"reasoning": "", "score": "SCORE: 2"}', "fail"),
        ('{"reasoning": "", "score": "4 of 5"}', "undecided"),
        ("SCORE: 4", "undecided"),
    ],
)
def test_a_model_grades_as_in_nemo(
    workspace: Path, documents: Any, reply: str, verdict: str
) -> None:
    content = "Rate 1 to 5. Q: {{item.q}} A: {{sample.output_text}}"
    metric = {
        "type": "llm-judge",
        "params": {
            "template": {"messages": [{"role": "user", "content": content}]},
            "scores": {"s": {"parser": {"type": "regex", "pattern": "SCORE: (\\d)"}}},
        },
    }
    task = {
        "params": {"template": {"messages": [{"role": "user", "content": "{{item.q}}"}]}},
        "dataset": {"rows": [{"q": "How is Rome?"}]},
        "metrics": {"m": metric},
    }
    tree(workspace, {"source/job.json": json.dumps({"tasks": {"t": task}})})
    documents("import", "nemo", "source")
    judging(workspace, reply)
    (case,) = documents("run", "tests/source")["cases"]
    assert (case["model"], case["verdict"]) == ("scripted/one", verdict)


def test_a_rubric_of_promptfoo_is_judged(workspace: Path, documents: Any) -> None:
    text = (
        "prompts: ['How is {{city}}?']\ntests:\n  - vars: {city: [Rome, Oslo]}\n"
        "    assert: [{type: llm-rubric, value: must be warm}]\n"
    )
    tree(workspace, {"source/promptfooconfig.yaml": text})
    documents("import", "promptfoo", "source")
    document = documents("run", "tests/source")
    assert [case["verdict"] for case in document["cases"]] == ["pass", "fail"]


def test_recorded_answers_to_a_test_that_is_not_there_are_reported(
    samples: Path, documents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evalstore.exchange.importers import evalsone
    from evalstore.exchange.importers.base import Imported, JudgedAnswer

    answer = JudgedAnswer("tests/a.md", {}, "openai/gpt-4", (("Hi",),), 0, "pass")
    monkeypatch.setattr(evalsone, "read", lambda _paths, _options: Imported(recorded=[answer]))
    (left,) = documents("import", "--sessions", "evalsone", "source")["left"]
    assert left["reason"] == "the test file was edited since the import, or was not written"


def test_answers_that_a_test_has_no_conversation_for_are_reported(
    samples: Path, documents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evalstore.exchange.importers import evalsone
    from evalstore.exchange.importers.base import Imported, JudgedAnswer

    files = {"tests/a.md": "# 👤\n\nHi\n\n---\n\nThe answer must be warm.\n".encode()}
    answer = JudgedAnswer("tests/a.md", {}, "openai/gpt-4", (("Hi",), ("Yo",)), 0, "pass")
    imported = Imported(files=files, recorded=[answer])
    monkeypatch.setattr(evalsone, "read", lambda _paths, _options: imported)
    document = documents("import", "--sessions", "evalsone", "source")
    reasons = [item["reason"] for item in document["left"]]
    assert reasons == [
        "it has answers to 2 conversations, the test has 1 (2 answers are not stored)"
    ]


TYPICAL = {
    "traces.json": ("otel", '{"resourceSpans": []}'),
    "traces.jsonl": ("otel", '{"resourceSpans": []}\n' * 2),
    "log.json": ("inspect", '{"version": 2, "status": "success", "eval": {\n "eval_id": "x"}}'),
    "log.eval": ("inspect", ""),
    "results.json": ("promptfoo", '{"evalId": "eval-x", "results": {}}'),
    "results.jsonl": ("promptfoo", '{"gradingResult": {"componentResults": []}}\n'),
}
"""Maps the names of files to their format and content."""


@pytest.mark.parametrize(
    ("argument", "message", "hint"),
    [
        (
            "source/capitals.jsonl",
            "the format of 'source/capitals.jsonl' is missing",
            "type 'evalstore import FORMAT source/capitals.jsonl'; the formats are lve, langbite, "
            "openai-evals, evalsone, nemo, promptfoo, ai-tester-db, otel, inspect",
        ),
        (
            "other",
            "the format of 'other' is missing",
            "type 'evalstore import promptfoo other'",
        ),
        *(
            (
                f"source/{name}",
                f"the format of 'source/{name}' is missing",
                f"type 'evalstore import {format} source/{name}'",
            )
            for name, (format, _) in TYPICAL.items()
        ),
        ("lve", "the format 'lve' needs a path", "type 'evalstore import lve PATH'"),
    ],
)
def test_a_format_that_is_missing_is_named(
    samples: Path, evalstore: Evalstore, argument: str, message: str, hint: str
) -> None:
    tree(samples, {"other/promptfooconfig.yaml": ""})
    tree(samples, {f"source/{name}": text for name, (_, text) in TYPICAL.items()})
    assert evalstore("import", argument) == Ran(2, "", f"error: {message}\nhint: {hint}\n")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("ai-tester", "project"), "unknown format 'ai-tester'"),
        (("ai-tester", "project/ai-tester.config.yaml"), "unknown format 'ai-tester'"),
        (("ai-tester-db", "project"), "'project' is a folder, not a regular file"),
        (("project",), "the format of 'project' is missing"),
        (("with-database",), "the format of 'with-database' is missing"),
        (("ai-tester",), "unknown format 'ai-tester'"),
    ],
)
def test_a_project_of_ai_tester_is_sent_to_init(
    samples: Path, evalstore: Evalstore, command: tuple[str, ...], message: str
) -> None:
    tree(samples, {"project/ai-tester.config.yaml": "", "with-database/sqlite.db": ""})
    *_, last = command
    folder = "DIR" if command == ("ai-tester",) else last.split("/")[0]
    hint = (
        f"type 'evalstore init --from {folder}' for the files of an ai-tester project, "
        "and 'evalstore import ai-tester-db FILE' for its database"
    )
    assert evalstore("import", *command) == Ran(2, "", f"error: {message}\nhint: {hint}\n")


JOB = json.dumps(
    {
        "config": {
            "tasks": {
                "qa": {
                    "params": {"template": "Q: {{item.q}}"},
                    "metrics": {
                        "m": {
                            "type": "string-check",
                            "params": {"check": ["{{sample.output_text}}", "equals", "{{item.a}}"]},
                        }
                    },
                    "dataset": {"files_url": "rows.jsonl"},
                }
            }
        },
        "target": {"model": {"api_endpoint": {"url": "http://h/v1", "model_id": "big"}}},
    }
)
ROWS = '{"q": "Who?", "a": "me"}\n'


def test_a_test_that_check_would_refuse_is_not_written(
    workspace: Path, documents: Any, evalstore: Evalstore
) -> None:
    tree(workspace, {"source/job.json": JOB.replace("rows.jsonl", "hf://datasets/me/rows")})
    document = documents("import", "nemo", "source/job.json")
    assert [item for item in document["written"] if item.startswith("tests/")] == []
    assert [item["reason"] for item in document["left"]] == [
        "it is not written, as 'check' would refuse it: nothing is downloaded, and no folder is "
        "known for 'hf://'"
    ]
    assert [path.name for path in (workspace / "tests/job").iterdir()] == [".imported.json"]


def test_a_model_that_is_there_already_stays_as_it_is(
    workspace: Path, documents: Any, evalstore: Evalstore
) -> None:
    mine = "id: big\nprovider: openai\n"
    tree(workspace, {"source/job.json": JOB, "source/rows.jsonl": ROWS, "models/zz.yaml": mine})
    document = documents("import", "nemo", "source/job.json")
    assert "models/job/big.yaml" not in document["written"]
    assert [warning["reason"] for warning in document["warnings"]] == [
        "there is a model 'big' in 'models/zz.yaml', which is left unchanged"
    ]
    assert (workspace / "models/zz.yaml").read_text("utf-8") == mine


def test_two_imports_do_not_share_ids(
    workspace: Path, documents: Any, evalstore: Evalstore
) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    first = json.loads(JOB)
    first["config"]["tasks"]["qa"]["params"]["template"] = {
        "messages": [{"role": "user", "content": "Q"}],
        "tools": [tool],
    }
    tree(workspace, {"source/job.json": json.dumps(first), "source/rows.jsonl": ROWS})
    documents("import", "nemo", "source/job.json", "--into", "one")
    tree(workspace, {"source/job.json": json.dumps(first).replace('"object"', '"object", "x": 1')})
    documents("import", "nemo", "source/job.json", "--into", "two")
    assert evalstore("check").stderr == ""


def test_tolerances_are_thresholds_that_the_workspace_takes(
    workspace: Path, documents: Any, evalstore: Evalstore
) -> None:
    tree(
        workspace,
        {
            "source/prompts_en_us.csv": langbite_library.table(langbite_library.prompt()),
            "source/model.json": json.dumps(langbite_library.model()),
        },
    )
    document = documents("import", "langbite", "source")
    assert document["warnings"] == []
    with Path("evalstore.yaml").open("a") as settings:
        settings.write(write_yaml({"thresholds": document["settings"]["thresholds"]}))
    assert "threshold" not in evalstore("check").stderr


def test_a_dry_run_lists_what_it_would_write(samples: Path, evalstore: Evalstore) -> None:
    shown = evalstore("import", "openai-evals", "source/capitals.jsonl", "--dry-run").stdout
    assert "would write tests/capitals/capitals.md\n" in shown
    assert not (samples / "tests/capitals").exists()


PROMPTFOO = "prompts: ['{{q}}']\nproviders: [openai:gpt-4o]\ntests:\n"
ONE = "  - {vars: {q: a}, assert: [{type: equals, value: x}]}\n"
TWO = "  - {vars: {q: b}, assert: [{type: is-json}]}\n"


def test_tests_that_are_gone_from_the_source_are_named_and_kept(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    tree(workspace, {"source/promptfooconfig.yaml": PROMPTFOO + ONE + TWO})
    assert "gone" not in documents("import", "promptfoo", "source")
    tree(workspace, {"source/promptfooconfig.yaml": PROMPTFOO + ONE})
    shown = evalstore("import", "promptfoo", "source").stdout
    assert "from an earlier import, not in this source: tests/source/is-json.md\n" in shown
    assert (workspace / "tests/source/is-json.md").exists()
    (workspace / "tests/source/is-json.md").unlink()
    assert "is-json.md" not in evalstore("import", "promptfoo", "source").stdout


def test_printed_settings_say_what_they_replace(workspace: Path, evalstore: Evalstore) -> None:
    tree(workspace, {"source/promptfooconfig.yaml": PROMPTFOO + ONE})
    (workspace / "evalstore.yaml").write_text("candidates: []\n")
    said = evalstore("import", "promptfoo", "source").stderr
    assert "(evalstore.yaml has 'candidates' already: replace what is there)" in said


def test_printed_settings_can_be_pasted_into_a_bare_workspace(
    workspace: Path, evalstore: Evalstore
) -> None:
    (workspace / "evalstore.yaml").unlink()
    evalstore("init", "--bare")
    tree(workspace, {"source/promptfooconfig.yaml": PROMPTFOO + ONE})
    ran = evalstore("import", "promptfoo", "source")
    assert "already: replace" not in ran.stderr
    block = ran.stdout.partition("add to evalstore.yaml:\n")[2].splitlines()
    with (workspace / "evalstore.yaml").open("a") as settings:
        settings.writelines(f"{line[2:]}\n" for line in block if line.startswith("  "))
    assert evalstore("check").exit_code == 0
    assert "candidates: [openai/gpt-4o]\n" in (workspace / "evalstore.yaml").read_text()


def test_samples_beside_the_working_folder_are_found(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    spec = "class: evals.elsuite.basic.match:Match\n  args: {samples_jsonl: mine/s.jsonl}\n"
    row = json.dumps({"input": "Q?", "ideal": "x"})
    tree(workspace, {"registry/evals/e.yaml": f"e:\n  {spec}", "mine/s.jsonl": row})
    (left,) = documents("import", "openai-evals", "registry")["left"]
    assert "'--allow-outside' allows it" in left["reason"]
    document = documents("import", "openai-evals", "registry", "--allow-outside")
    assert (document["rows"], document["left"]) == (1, [])


def test_samples_are_found_by_their_path_from_the_working_folder(
    workspace: Path, documents: Any
) -> None:
    spec = "class: evals.elsuite.basic.match:Match\n  args: {samples_jsonl: registry/x/s.jsonl}\n"
    row = json.dumps({"input": "Q?", "ideal": "x"})
    tree(workspace, {"registry/evals/e.yaml": f"e:\n  {spec}", "registry/x/s.jsonl": row})
    document = documents("import", "openai-evals", "registry")
    assert (document["rows"], document["left"]) == (1, [])


def test_a_name_that_no_samples_can_have_is_reported(workspace: Path, documents: Any) -> None:
    name = "n" * 300
    spec = f"class: evals.elsuite.basic.match:Match\n  args: {{samples_jsonl: {name}}}\n"
    tree(workspace, {"registry/evals/e.yaml": f"e:\n  {spec}"})
    (left,) = documents("import", "openai-evals", "registry")["left"]
    assert "has no file" in left["reason"]
