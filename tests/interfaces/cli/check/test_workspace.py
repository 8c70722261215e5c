"""`init`, `check`, `ls`, `fsck`, and what every command shares."""

from __future__ import annotations

import ast
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest

from evalstore.interfaces.cli.command_line import GONE
from evalstore.interfaces.cli.main import commands, main
from evalstore.planning.options import Kind
from tests.builders import HELLO, tree
from tests.exchange.importers.ai_tester.test_project import PROJECT
from tests.interfaces.cli.conftest import WEATHER_WORKSPACE, Evalstore, Ran
from tests.interfaces.cli.run.test_run import edit

SLOW = (
    "litellm",
    "pydantic",
    "textual",
    "sqlmodel",
    "sqlalchemy",
    "alembic",
    "jsonschema",
    "jinja2",
    "yaml",
    "aiohttp",
)


def test_outside_of_a_workspace(
    evalstore: Evalstore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert evalstore("status") == Ran(
        2,
        "",
        f"error: no evalstore.yaml in '{tmp_path.name}' or above\n"
        "hint: run 'evalstore init' first\n",
    )


def test_init_makes_a_workspace_that_runs(
    evalstore: Evalstore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert evalstore("init", "new") == Ran(
        0,
        "wrote evalstore.yaml\nwrote tests/hello.md\nwrote models/parrot.yaml\n"
        "wrote models/judge.yaml\nwrote .gitignore\nwrote .evalstore/store.db\n",
        "Next:\n  cd new\n  evalstore init tests/first.md\n  evalstore run\n  evalstore view\n",
    )
    ran = " ".join(evalstore("-C", "new", "run").stdout.split())
    assert "1 pass, 1 fail" in ran
    assert "(An example: without French in tests/hello.md all pass.)" in ran
    model = tmp_path / "new/models/parrot.yaml"
    script = model.read_text().replace("French, answer: Hello!", "French, answer: Bonjour!")
    model.write_text(script)
    assert evalstore("-C", "new", "status").stdout.startswith("Nothing to do: 2 answers")
    advice = re.findall("add '(.*)'", script)
    model.write_text("\n".join([script, *advice]))
    assert "would ask for 2 answers" in evalstore("-C", "new", "status").stdout
    test = tmp_path / "new/tests/hello.md"
    test.write_text(test.read_text().replace(", French", ""))
    assert evalstore("-C", "new", "run").exit_code == 0
    assert (
        tmp_path / "new/.gitignore"
    ).read_text() == ".evalstore/\n.env\n.env.local\nevalstore-report.html\n"


def test_init_leaves_what_is_there(
    evalstore: Evalstore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evalstore.yaml").write_text("attempts: 2\n")
    (tmp_path / ".gitignore").write_text("*.pyc")
    evalstore("init")
    assert (tmp_path / "evalstore.yaml").read_text() == "attempts: 2\n"
    assert (
        tmp_path / ".gitignore"
    ).read_text() == "*.pyc\n.evalstore/\n.env\n.env.local\nevalstore-report.html\n"


def test_init_completes_what_a_killed_one_began(
    tmp_path: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    evalstore("init", "whole")
    tree(tmp_path / "new", {"tests/hello.md": (tmp_path / "whole/tests/hello.md").read_text()})
    ran = evalstore("init", "new")
    assert ran.exit_code == 0
    assert "kept  tests/hello.md (already exists, left unchanged)\n" in ran.stdout
    assert evalstore("-C", "new", "status").exit_code == 0


def test_init_overwrites_no_link_and_no_byte_of_gitignore(
    tmp_path: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path / "new", {".gitignore": b"\xff\xfe", "tests/a.md": HELLO})
    (tmp_path / "new/tests/hello.md").symlink_to(tmp_path / "outside.md")
    monkeypatch.chdir(tmp_path / "new")
    assert evalstore("init").exit_code == 0
    assert not (tmp_path / "outside.md").exists()
    assert (
        tmp_path / "new/.gitignore"
    ).read_bytes() == b"\xff\xfe\n.evalstore/\n.env\n.env.local\nevalstore-report.html\n"


def test_init_says_what_cannot_be_written(
    tmp_path: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path / "new", {"tests": "a file"})
    monkeypatch.chdir(tmp_path / "new")
    assert evalstore("init") == Ran(
        2, "", "error: tests/hello.md: cannot be written: File exists\n"
    )


def test_init_that_failed_can_be_repeated(
    tmp_path: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path / "new", {"models": "a file"})
    monkeypatch.chdir(tmp_path / "new")
    ran = evalstore("init")
    assert ran == Ran(2, "", "error: models/parrot.yaml: cannot be written: File exists\n")
    (tmp_path / "new/models").unlink()
    assert evalstore("init").exit_code == 0
    assert evalstore("status").exit_code == 0


def test_init_adopts_the_same_project_again(
    tmp_path: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree(tmp_path / "project", PROJECT))
    assert evalstore("init", "--from", ".").exit_code == 0
    ran = evalstore("init", "--from", ".")
    assert (ran.exit_code, ran.stdout) == (
        0,
        "kept  evalstore.yaml (already exists, left unchanged)\n",
    )
    (tmp_path / "project/evalstore.yaml").write_text("attempts: 2\n")
    assert evalstore("init", "--from", ".").exit_code == 2


def test_a_bare_workspace_has_no_tests_and_no_models(
    tmp_path: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert evalstore("init", "--bare").stdout == (
        "wrote evalstore.yaml\nwrote .gitignore\nwrote .evalstore/store.db\n"
    )
    tree(tmp_path, {"source/a.yaml": "prompts: [x]\ntests: [{assert: [{type: is-json}]}]\n"})
    assert evalstore("import", "promptfoo", "source/a.yaml").exit_code == 0
    assert evalstore("check").exit_code == 0
    assert evalstore("ls", "models").stdout == ""


def test_init_with_the_example(
    evalstore: Evalstore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = evalstore("init", "--example", "ex")
    assert ran.exit_code == 0
    assert f"{ran.stdout}{ran.stderr}".endswith(
        "Next:\n  cd ex\n  evalstore run\n  evalstore view\n"
    ), "it has tests already"
    assert evalstore("-C", "ex", "check").exit_code == 0


def test_global_options_stand_before_or_after_the_command(
    workspace: Path, evalstore: Evalstore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert evalstore("-C", "w", "ls") == evalstore("ls", "-C", "w")
    evalstore("run", "-C", "w", "--store", "elsewhere.db")
    assert (tmp_path / "w/elsewhere.db").exists()


def test_check_lists_every_problem(workspace: Path, evalstore: Evalstore) -> None:
    assert evalstore("check") == Ran(0, "1 test file, 2 cases: no errors\n", "")
    edit(workspace / "tests/weather.md", "tags: [weather]", "tags: [weather")
    edit(workspace / "models/one.yaml", "provider: scripted", "provder: scripted")
    ran = evalstore("check")
    assert ran.exit_code == 2
    assert (
        "error: models/one.yaml:2: unknown field 'provder'\nhint: did you mean 'provider'?\n"
        in ran.stderr
    )
    assert "error: tests/weather.md:2:7: the [ is not closed" in ran.stderr
    assert "    tags: [weather\n" in ran.stderr
    assert ran.stdout == "1 test file, 0 cases: 2 errors\n"


def test_a_test_that_names_an_unknown_judge_is_a_warning(
    workspace: Path, evalstore: Evalstore
) -> None:
    named = "tags: [weather]\nevaluators: [scripted/judge, scripted/jugde]"
    edit(workspace / "tests/weather.md", "tags: [weather]", named)
    assert evalstore("check").stderr == (
        "warning: tests/weather.md: 'evaluators': no judge of evalstore.yaml is 'scripted/jugde'\n"
        "hint: did you mean 'scripted/judge'?\n"
    )


def test_check_as_json(workspace: Path, documents: Any) -> None:
    edit(workspace / "tests/weather.md", "{{city}}", "{{town}}")
    document = documents("check")
    assert [
        (problem["file"], problem["line"], problem["severity"]) for problem in document["problems"]
    ] == [
        ("tests/weather.md", 4, "error"),
        ("tests/weather.md", 9, "error"),
    ]


@pytest.mark.parametrize("kind", get_args(Kind))
def test_everything_can_be_listed(
    workspace: Path, evalstore: Evalstore, documents: Any, kind: str
) -> None:
    evalstore("run")
    assert evalstore("ls", kind).exit_code == 0
    assert isinstance(documents("ls", kind)[kind], list)


def test_ls_cases_full(workspace: Path, documents: Any) -> None:
    actual = documents("ls", "cases", "--full")["cases"][0]
    assert actual["messages"] == [[{"role": "user", "content": "How is Oslo?"}]]
    assert (actual["instructions"], actual["checks"], actual["systemPrompts"]) == (
        "The answer must be warm.",
        [],
        [None],
    )


def test_fsck(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    ran = evalstore("fsck")
    assert (ran.exit_code, "all is well" in ran.stdout) == (0, True)
    with sqlite3.connect(workspace / ".evalstore/store.db") as connection:
        connection.execute("UPDATE sessions SET content = replace(content, 'Cold', 'Colder')")
    ran = evalstore("fsck")
    assert (ran.exit_code, "session <id>: its content does not match its id" in ran.stdout) == (
        1,
        True,
    )


def test_a_damaged_store_ends_with_6(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    (workspace / ".evalstore/store.db").write_bytes(
        b"this is not a database, and long enough to see" * 9
    )
    ran = evalstore("status")
    assert (ran.exit_code, ran.stderr.startswith("error: the store ")) == (6, True)


def test_a_newer_store_ends_with_6(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    with sqlite3.connect(workspace / ".evalstore/store.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    ran = evalstore("run")
    assert (ran.exit_code, "is newer than this program" in ran.stderr) == (6, True)


def test_an_empty_tests_folder(workspace: Path, evalstore: Evalstore) -> None:
    (workspace / "tests/weather.md").unlink()
    assert evalstore("run") == Ran(
        2,
        "",
        "error: tests: no test files\n"
        "hint: write a test into 'tests/', such as 'tests/hello.md'\n"
        "1 error in 1 file; nothing was done\n",
    )


@pytest.mark.parametrize("command", GONE)
def test_a_command_that_is_gone_names_what_replaces_it(evalstore: Evalstore, command: str) -> None:
    ran = evalstore(command, "--json")
    now = GONE[command]
    assert ran == Ran(2, "", f"error: 'evalstore {command}' is now 'evalstore {now}'\n")
    program: Any = commands()
    first, *rest = shlex.split(now.partition("'")[0])
    known = program.commands.get(first, program)
    assert {word for word in (first, *rest) if word.startswith("--")} <= {
        name for parameter in known.params for name in parameter.opts
    }


def test_no_command_prints_help(evalstore: Evalstore) -> None:
    assert "Usage: evalstore" in evalstore().stdout + evalstore().stderr


PROBE = """
import gc, sys
from evalstore.__main__ import run
begun = []
gc.callbacks.append(lambda phase, _: phase == "start" and begun.append(phase))
code = run()
print((code, len(begun), set(sys.modules)), file=sys.stderr)
"""


class CommandProcess(NamedTuple):
    """What a command did in a process of its own."""

    exit_code: int
    collections: int
    """How often it looked for garbage."""
    modules: frozenset[str]
    """What it has loaded."""


Probe = Callable[..., CommandProcess]


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Probe:
    """Start a command in a workspace with two runs; each command is started once."""
    folder = tree(tmp_path_factory.mktemp("probed"), WEATHER_WORKSPACE)

    @cache
    def start(*arguments: str) -> CommandProcess:
        if not (folder / ".evalstore").exists():
            for _ in range(2):
                assert main(["-C", str(folder), "run", "-q"]) == 1
        ran = subprocess.run(
            [sys.executable, "-c", PROBE, *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        exit_code, collections, modules = ast.literal_eval(ran.stderr.splitlines()[-1])
        return CommandProcess(exit_code, collections, frozenset(modules))

    return start


@pytest.mark.parametrize("arguments", ["--help", "--version", "run --help"])
def test_help_loads_nothing_slow(probe: Probe, arguments: str) -> None:
    assert probe(*arguments.split()).modules & set(SLOW) == set()


@pytest.mark.parametrize("arguments", ["log", "log tests/weather.md", "grep warm"])
def test_reading_the_store_alone_does_not_load_the_planner(probe: Probe, arguments: str) -> None:
    assert "evalstore.planning.planner" not in probe(*arguments.split()).modules


@pytest.mark.parametrize(
    "arguments", ["log", "log tests/weather.md", "show @", "diff @~1 @", "stats"]
)
def test_reading_the_store_loads_nothing_slow(probe: Probe, arguments: str) -> None:
    process = probe(*arguments.split())
    assert process.exit_code == 0
    slow = {*SLOW, "asyncio", "ssl", "importlib.metadata"} - {"yaml", "jinja2", "jsonschema"}
    assert process.modules & slow == set()
    assert "evalstore.workspace.testfiles.expansion" not in process.modules  # for changed files


@pytest.mark.parametrize("arguments", ["--help", "status", "log", "show @", "stats", "run"])
def test_a_short_command_looks_for_no_garbage(probe: Probe, arguments: str) -> None:
    """It would find nothing, and take a tenth of the time of the command."""
    assert probe(*arguments.split()).collections == 0


def test_every_problem_of_one_file_is_reported_at_once(
    workspace: Path, evalstore: Evalstore
) -> None:
    (workspace / "tests/weather.md").write_text(
        "---\ntag: [x]\navailableTools: [order]\nattempts: three\nreplacements: {unused: 1}\n---\n"
        "# 👤\n\nHow is {{city}}?\n\n---\n\nE\n"
    )
    assert evalstore("check").stderr == (
        "error: tests/weather.md:2: unknown field 'tag'\n"
        "hint: did you mean 'tags'?\n"
        "error: tests/weather.md:3: unknown tool 'order'\n"
        "hint: no tools are defined\n"
        "error: tests/weather.md:4: 'attempts' must be a whole number from 1 to 10,000\n"
        "error: tests/weather.md:5: replacement 'unused' is never used\n"
        "hint: write `{{unused}}` where it belongs, or remove it\n"
        "error: tests/weather.md:9:10: 'city' is not defined\n"
        "    How is {{city}}?\n"
        "             ^\n"
        "hint: the replacements are unused\n"
    )


def test_every_problem_of_the_settings_is_reported_at_once(
    workspace: Path, evalstore: Evalstore
) -> None:
    (workspace / "evalstore.yaml").write_text("candidates: 5\nattempts: x\n")
    assert evalstore("run") == Ran(
        2,
        "",
        "error: evalstore.yaml:1: 'candidates' must be a list of models\n"
        "error: evalstore.yaml:2: 'attempts' must be a whole number from 1 to 10,000\n"
        "2 errors in 1 file; nothing was done\n",
    )


def test_a_wrong_script_is_a_problem_of_its_file(workspace: Path, evalstore: Evalstore) -> None:
    edit(workspace / "models/one.yaml", "answer: Warm.", "answr: Warm.")
    ran = evalstore("check")
    assert ran.exit_code == 2
    assert "error: models/one.yaml:5: response 2: " in ran.stderr


def test_problems_of_the_settings_are_json_too(workspace: Path, documents: Any) -> None:
    (workspace / "evalstore.yaml").write_text("nope: 1\n")
    assert [(problem["file"], problem["line"]) for problem in documents("check")["problems"]] == [
        ("evalstore.yaml", 1)
    ]


def test_a_file_without_a_cut_has_one_problem(workspace: Path, evalstore: Evalstore) -> None:
    edit(workspace / "tests/weather.md", "---\n\nThe answer must be warm.\n", "")
    assert evalstore("check").stderr == (
        "error: tests/weather.md:7: nothing says how to judge the answer\n"
        "hint: write a line '---' and the instructions for the judge below it\n"
    )


def test_unreadable_checks_are_reported_once(workspace: Path, evalstore: Evalstore) -> None:
    wrong = "~~~checks\n- contans: '{{ sample.output_text }} {{city}}'\n~~~"
    edit(workspace / "tests/weather.md", "The answer must be warm.", wrong)
    assert evalstore("check").stderr == (
        "error: tests/weather.md:14: unknown check 'contans'\nhint: did you mean 'contains'?\n"
    )


@pytest.mark.parametrize(
    ("checks", "messages"),
    [
        (
            ["icontains: hi", "contain: a", "equals: {a: 1, bad: 2}", "contains: '{{no}}'"],
            [
                "14: unknown check 'icontains'",
                "15: unknown check 'contain'",
                "16: the check 'equals' has no setting 'a'",
            ],
        ),
        (
            ["equals: {a: 1, bad: 2}", "contains: ''", "contains: '{{city}}'", "length: {max: x}"],
            [
                "14: the check 'equals' has no setting 'a'",
                "15: the check 'contains' has an empty 'expected'",
                "17: 'max' must be a whole number, not 'x'",
            ],
        ),
    ],
    ids=["types", "values"],
)
def test_all_bad_checks_of_a_block_are_reported(
    workspace: Path, evalstore: Evalstore, checks: list[str], messages: list[str]
) -> None:
    block = "\n".join(["~~~checks", *(f"- {check}" for check in checks), "~~~"])
    edit(workspace / "tests/weather.md", "The answer must be warm.", block)
    lines = evalstore("check").stderr.splitlines()
    errors = [line.removeprefix("error: tests/weather.md:") for line in lines]
    assert [line for line in errors if not line.startswith("hint: ")] == messages
    is_about_case = "hint: write {contains: …, ignoreCase: true}" in lines
    assert is_about_case == ("icontains" in messages[0])


def test_an_empty_evaluation_is_a_warning(workspace: Path, evalstore: Evalstore) -> None:
    edit(workspace / "tests/weather.md", "The answer must be warm.", "")
    ran = evalstore("check")
    assert (ran.exit_code, "so it is never judged" in ran.stderr) == (0, True)
    assert "2 answered without a verdict" in evalstore("run").stdout


def test_a_price_without_a_rate_is_a_warning(workspace: Path, evalstore: Evalstore) -> None:
    edit(workspace / "models/one.yaml", "[{costPerPrompt", "[{currency: EUR, costPerPrompt")
    place = "warning: models/one.yaml:6: the price is unknown:"
    ran = evalstore("check")
    assert ran == Ran(
        0,
        "1 test file, 2 cases: no errors, 1 warning\n",
        f"{place} no currency file for 'EUR'\n"
        "hint: write a currency file with the code 'EUR' and its rates in USD\n",
    )
    (workspace / "currencies").mkdir()
    euro = workspace / "currencies/eur.yaml"
    euro.write_text('code: EUR\nrates: [{rateInUSD: 1.1, validFrom: "9999-01-01"}]\n')
    assert f"{place} 'EUR' has no rate for 20" in evalstore("check").stderr
    euro.write_text("code: EUR\nrates: [{rateInUSD: 1.1}]\n")
    assert evalstore("check").stderr == ""


def test_a_session_keeps_the_rate_its_price_was_converted_at(
    workspace: Path, documents: Any
) -> None:
    edit(workspace / "models/one.yaml", "[{costPerPrompt", "[{currency: EUR, costPerPrompt")
    (workspace / "currencies").mkdir()
    (workspace / "currencies/eur.yaml").write_text("code: EUR\nrates: [{rateInUSD: 2}]\n")
    session = documents("run", "--yes")["cases"][0]["session"]
    assert documents("show", session)["cost"] == {
        "usd": 0.06,
        "price": {
            "source": "costs",
            "currency": "EUR",
            "rate": 2.0,
            "inputToken": 0.002,
            "outputToken": 0.02,
        },
    }


MODELS = {
    "models/mini.yaml": "id: mini\nprovider: openai\nproviderModelCode: gpt-4o-mini\n",
    "models/own.yaml": (
        "id: own\nprovider: lm_studio\nactive: false\n"
        "capabilities: {input: {image: true}, output: {tools: false}}\n"
        "costs:\n"
        "  - {costPerPromptToken: 0.000001, costPerCompletionToken: 0.000002, costPerCall: 0.5,"
        " costPerHour: 2, currency: EUR}\n"
    ),
    "currencies/eur.yaml": "code: EUR\nrates: [{rateInUSD: 1.5}]\n",
    "models/stray.yaml": "id: stray\nprovider: lm_studio\n",
}


DECLARED = "capabilities: {input: {image: false}}\n"


@pytest.mark.xdist_group("litellm")  # which takes seconds to load
def test_ls_models_shows_what_they_can_do_and_cost(workspace: Path, evalstore: Evalstore) -> None:
    tree(workspace, MODELS)
    edit(workspace / "evalstore.yaml", "[scripted/one]", "[scripted/one, own]")
    edit(workspace / "evalstore.yaml", "[scripted/judge]", "[scripted/judge, own]")
    ran = evalstore("ls", "models")
    assert (ran.exit_code, ran.stderr.startswith("(?: unknown; the model file can declare it")) == (
        0,
        True,
    )
    lines = [re.split(r"  +", line) for line in ran.stdout.splitlines()]
    head = "MODEL,PROVIDER,CODE,USED AS,CAPABILITIES,$/1M IN,$/1M OUT,$/CALL,PRICE FROM,ACTIVE"
    assert lines[0] == head.split(",")
    mini = lines[1]
    assert (mini[:3], mini[-4:]) == (
        ["mini", "openai", "gpt-4o-mini"],
        ["0.15", "0.6", f"litellm {version('litellm')}", "yes"],
    )
    assert "image" in mini[-5]
    assert mini[-5].endswith(" (litellm)")
    own = "own,lm_studio,own,both,image; no tools,1.5,3,0.75"
    price = "costs (EUR at 1.5) + $3 an hour"
    assert ["; ".join(cell.split(", ")) for cell in lines[2]] == [*own.split(","), price, "no"]
    assert lines[3][:5] == ["scripted/judge", "scripted", "scripted/judge", "judge", "?"]
    assert lines[4][-4:] == ["1,000", "10,000", "costs", "yes"]
    assert lines[5][-5:] == ["?", "0", "0", "local", "yes"]


@pytest.mark.xdist_group("litellm")  # which takes seconds to load
def test_what_a_model_file_leaves_open_is_filled_from_the_table(
    workspace: Path, evalstore: Evalstore
) -> None:
    tree(workspace, {"models/mini.yaml": MODELS["models/mini.yaml"] + DECLARED})
    assert re.search(r"no image; tools, .* \(litellm\)", evalstore("ls", "models").stdout)


@pytest.mark.xdist_group("litellm")  # which takes seconds to load
def test_ls_models_as_json_keeps_what_it_had(workspace: Path, documents: Any) -> None:
    tree(workspace, MODELS)
    mini, own, *_ = documents("ls", "models")["models"]
    assert own == {
        "model": "own",
        "provider": "lm_studio",
        "code": "own",
        "baseURL": None,
        "active": False,
        "used": None,
        "capabilities": {"image": True, "tools": False},
        "knownCapabilities": None,
        "price": {
            "source": "costs",
            "currency": "EUR",
            "rate": 1.5,
            "input": 1.5,
            "cachedInput": None,
            "output": 3.0,
            "call": 0.75,
            "hour": 3.0,
        },
    }
    assert mini["knownCapabilities"]["image"] is True
    assert (mini["price"]["input"], mini["price"]["cachedInput"]) == (0.15, 0.075)


@pytest.mark.parametrize("arguments", [(), ("-q",), ("--color", "never")])
def test_alone_it_prints_its_help(evalstore: Evalstore, arguments: tuple[str, ...]) -> None:
    ran = evalstore(*arguments)
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout == evalstore("--help").stdout
