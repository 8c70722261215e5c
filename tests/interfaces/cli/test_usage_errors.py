"""Wrong options, arguments and values are reported in the words of all other errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evalstore.interfaces.cli.main import commands
from evalstore.interfaces.cli.options import GROUPS
from tests.builders import tree
from tests.interfaces.cli.conftest import Ran
from tests.interfaces.cli.run.test_run import edit

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interfaces.cli.conftest import Evalstore

REPORTS = {
    "statsu": ("unknown command 'statsu'", "did you mean 'stats'?"),
    "zzz": ("unknown command 'zzz'", "'evalstore --help' lists the commands"),
    "run --concurency 3": (
        "unknown option '--concurency'",
        "did you mean '--concurrency'?",
    ),
    "ls --bogus": ("unknown option '--bogus'", "'evalstore ls --help' lists the options"),
    "log -3": ("unknown option '-3'", "write '-n N', such as '-n 3'"),
    "run --quite": ("unknown option '--quite'", "did you mean '--quiet'?"),
    "--colr always ls": ("unknown option '--colr'", "did you mean '--color'?"),
    "--json status": ("unknown option '--json'", "write '--json' after the command"),
    "--color alway ls": ("--color: 'alway' is not a valid value", "did you mean 'always'?"),
    "ls tets": ("KIND: 'tets' is not a valid value", "did you mean 'tests'?"),
    "label x maybe": (
        "pass|fail|none: 'maybe' is not a valid value",
        "the values are fail, none, pass",
    ),
    "run -r x": ("--attempts: must be a whole number", None),
    "run -r 0": ("--attempts: must be at least 1", None),
    "run --limit": ("'--limit' needs a value", "write '--limit N'"),
    "run --json=3": ("'--json' takes no value", "write '--json' alone"),
    "show a b c": ("unexpected argument 'b c'", "usage: evalstore show [OPTIONS] [REV]"),
    "show @~1 tests/t.md": (
        "unexpected argument 'tests/t.md'",
        "a test file in a run is REV:FILE, such as '@~1:tests/t.md'",
    ),
    "eval": ("unknown command 'eval'", "'evalstore run' asks and judges"),
    "eval -c promptfooconfig.yaml": (
        "unknown command 'eval'",
        "'evalstore import promptfoo promptfooconfig.yaml' writes test files for its tests",
    ),
    "redteam run": (
        "unknown command 'redteam'",
        "no tests are generated: 'evalstore init FILE.md' makes a test file",
    ),
    "retry x": ("unknown command 'retry'", "'evalstore run --retry-errors' repeats failed calls"),
    "delete x": ("unknown command 'delete'", "a store only grows: nothing in it is deleted"),
    "run --delay 10": ("unknown option '--delay'", "write '--set requestsPerMinute=N'"),
    "run --no-table": ("unknown option '--no-table'", "'evalstore run --quiet' prints less"),
    "test t.md": ("unknown command 'test'", "'evalstore run' asks and judges"),
    "run --no-cache": (
        "unknown option '--no-cache'",
        "answers are reused; 'evalstore run --refresh' asks again for one run: "
        "the next one counts older answers again, except with '--max-age'",
    ),
    "run --repeat 3": (
        "unknown option '--repeat'",
        "'evalstore run --attempts N' asks each question N times",
    ),
    "run --filter-pattern x": (
        "unknown option '--filter-pattern'",
        "'evalstore run -k EXPR' selects cases by name",
    ),
    "run --max-concurrency 4": (
        "unknown option '--max-concurrency'",
        "'evalstore run --concurrency N' limits concurrent calls",
    ),
    "log --filter x": ("unknown option '--filter'", "'evalstore log --help' lists the options"),
    "diff --models x": ("unknown option '--models'", "did you mean '--model'?"),
    "grep": ("PATTERN is missing", "usage: evalstore grep [OPTIONS] PATTERN"),
}


@pytest.mark.parametrize("command", REPORTS)
def test_a_wrong_command_line_is_an_error_with_a_hint(evalstore: Evalstore, command: str) -> None:
    message, hint = REPORTS[command]
    text = f"error: {message}\n" + (f"hint: {hint}\n" if hint else "")
    assert evalstore(*command.split()) == Ran(2, "", text)


def test_a_configuration_of_promptfoo_is_to_be_imported(
    workspace: Path, evalstore: Evalstore
) -> None:
    assert evalstore("run", "-c", "promptfooconfig.yaml") == Ran(
        2,
        "",
        "error: 'promptfooconfig.yaml' has settings of promptfoo, not of evalstore\n"
        "hint: 'evalstore import promptfoo promptfooconfig.yaml' writes test files for its tests\n",
    )


def test_no_wrong_value_of_any_option_shows_words_of_the_libraries(
    workspace: Path, evalstore: Evalstore
) -> None:
    program: Any = commands()
    tried = 0
    for name in (name for names in GROUPS.values() for name in names):
        for parameter in program.commands[name].params:
            is_value = parameter.param_type_name == "option" and not parameter.is_flag
            if not is_value or parameter.metavar not in (None, "N", "S", "USD"):
                continue
            tried += 1
            ran = evalstore(name, parameter.opts[-1], "x y")
            assert ran.exit_code == 2
            assert ran.stderr.startswith("error: "), (name, ran.stderr)
            for word in ("Value error", "Input should", "Usage:", "Error:", "parse"):
                assert word not in ran.stderr, (name, ran.stderr)
    assert tried >= 20


@pytest.mark.parametrize(
    ("given", "wrong", "instead"),
    [
        ("mini big", "'mini' and 'big' are candidates, not runs", "--model mini --vs big"),
        ("--model mini big", "'big' is a candidate, not a run", "--model mini --vs big"),
        ("@~1 mini", "'mini' is a candidate, not a run", "@~1 --model mini --vs ID"),
        ("--model mini --vs big mini", "'mini' is a candidate, not a run", "--model mini --vs big"),
        ("mini big @", "'mini' and 'big' are candidates, not runs", "@ --model mini --vs big"),
    ],
)
def test_candidates_in_the_place_of_runs_are_told_how_they_are_compared(
    workspace: Path, evalstore: Evalstore, given: str, wrong: str, instead: str
) -> None:
    script = "id: {}\nprovider: scripted\nresponses: [{{answer: yes}}]\n"
    tree(workspace, {f"models/{id}.yaml": script.format(id) for id in ("mini", "big")})
    edit(workspace / "evalstore.yaml", "[scripted/one]", "[mini, big]")
    assert evalstore("diff", *given.split()) == Ran(
        2,
        "",
        f"error: {wrong}\nhint: 'evalstore diff {instead}' compares two candidates of one run\n",
    )


USED = "'prompts/shop.md' is a prompt: name a test file that uses it; its edits are shown there"
NEAREST = {
    "status -t wether": (5, "no case has the tag 'wether'", "did you mean 'weather'?"),
    "run -t zzz": (5, "no case has the tag 'zzz'", "the tags are weather"),
    "ls cases -t wether": (5, "no case has the tag 'wether'", "did you mean 'weather'?"),
    "ls tests -t wether": (5, "no case has the tag 'wether'", "did you mean 'weather'?"),
    "log tests/wether.md": (
        2,
        "no run has a test file 'tests/wether.md'",
        "did you mean 'tests/weather.md'?",
    ),
    "log --failures tests/wether.md": (
        2,
        "no run has a test file 'tests/wether.md'",
        "did you mean 'tests/weather.md'?",
    ),
    "log prompts/shop.md": (2, "no run has a test file 'prompts/shop.md'", USED),
    "diff @ @ -- prompts/shop.md": (2, "test file 'prompts/shop.md' not found", USED),
    "diff -- tests/data/q.csv": (
        2,
        "test file 'tests/data/q.csv' not found",
        USED.replace("prompts/shop.md' is a prompt", "tests/data/q.csv' is a data file"),
    ),
    "run tests/map.txt": (
        2,
        "test file 'tests/map.txt' not found",
        USED.replace("prompts/shop.md' is a prompt", "tests/map.txt' is not a test file"),
    ),
    "diff -- evalstore.yaml": (
        2,
        "test file 'evalstore.yaml' not found",
        "the test files are tests/weather.md",
    ),
    "log prompts/none.md": (
        2,
        "no run has a test file 'prompts/none.md'",
        "the test files are tests/weather.md",
    ),
    "trust models/jugde.yaml": (
        2,
        "file 'models/jugde.yaml' not found",
        "did you mean 'models/judge.yaml'?",
    ),
    "trust checks/exact.py": (
        2,
        "file 'checks/exact.py' not found",
        "did you mean 'checks/exactly.py'?",
    ),
    "run -m scripted/jugde": (
        2,
        "unknown model 'scripted/jugde' (candidates)",
        "did you mean 'scripted/one'?",
    ),
    "run -m gpt-4o-mini": (
        2,
        "unknown model 'gpt-4o-mini' (candidates)",
        "did you mean 'openai/gpt-4o-mini'?",
    ),
    "run -m openai:chat:gpt-4o-mini": (
        2,
        "unknown model 'openai:chat:gpt-4o-mini' (candidates)",
        "write 'openai/gpt-4o-mini'",
    ),
    "run -m zz": (
        2,
        "unknown model 'zz' (candidates)",
        "the models are scripted/one; "
        "'PROVIDER/MODEL', such as 'openai/gpt-5.4-mini', needs no file; "
        "the message of a run is '--message'",
    ),
    "run -m local/big": (
        2,
        "unknown model 'local/big' (candidates)",
        "a model of the provider file 'local' needs a model file "
        "with 'provider: local', 'code: big' and 'id: local/big'",
    ),
    "run -m ome": (
        2,
        "unknown model 'ome' (candidates)",
        "did you mean 'scripted/one'?",
    ),
    "run --judge-only -J juge": (
        2,
        "unknown model 'juge' (evaluators)",
        "did you mean 'scripted/judge'?",
    ),
    "run --judge-only -J scripted/ones": (
        2,
        "unknown model 'scripted/ones' (evaluators)",
        "did you mean 'scripted/judge'?",
    ),
    "diff @ @ -m scripted/om": (
        2,
        "'scripted/om' is not a candidate of run <short>",
        "did you mean 'scripted/one'?",
    ),
    "label tests/weather.md::city=Roma pass": (
        5,
        "no row is called 'tests/weather.md::city=Roma'",
        "did you mean 'city=Rome'?",
    ),
    "label tests/weather.md::city pass": (
        5,
        "'tests/weather.md::city' is a part of 2 rows",
        "name one of them: 'city=Oslo', 'city=Rome'",
    ),
    "show @:tests/wether.md": (
        2,
        "run <short> has no test file 'tests/wether.md'",
        "did you mean 'tests/weather.md'?",
    ),
    "show @:tests/nope.md": (
        2,
        "run <short> has no test file 'tests/nope.md'",
        "the test files are tests/weather.md",
    ),
    "label tests/nope.md pass": (
        2,
        "test file 'tests/nope.md' not found",
        "the test files are tests/weather.md",
    ),
    "status tests/other/wether.txt": (
        2,
        "test file 'tests/other/wether.txt' not found",
        "did you mean 'tests/weather.md'?",
    ),
    "show tests/wether": (
        2,
        "'tests/wether' is not a revision",
        "did you mean 'tests/weather.md'?",
    ),
    "show weather": (2, "'weather' is not a revision", "did you mean 'tests/weather.md'?"),
    "diff wether.md": (2, "'wether.md' is not a revision", "did you mean 'tests/weather.md'?"),
    "diff @ tests/wether.md": (
        2,
        "'tests/wether.md' is not a revision",
        "did you mean 'tests/weather.md'?",
    ),
    **{
        f"stats {file}": (
            2,
            f"'{file}' is not a revision",
            "write a run, such as @; 'evalstore stats --by file' has a row for each test file",
        )
        for file in ("tests/weather.md", "weather.md", "tests/wether.md")
    },
    **{
        f"{command} tests/weather.md": (
            2,
            "'tests/weather.md' is not a revision",
            "write a run, such as @; 'evalstore show tests/weather.md' shows the results of the "
            "test file",
        )
        for command in ("report", "export")
    },
    "report weather.html": (
        2,
        "'weather.html' is not a revision",
        "'evalstore report -o weather.html' writes a file",
    ),
    "show tests/new.md": (
        2,
        "run <short> has no test file 'tests/new.md'",
        "the workspace has it now: 'evalstore show @work:tests/new.md' shows it",
    ),
    **{
        f"show tests/weather.md::{row}": (
            5,
            f"run <short> has no row 'tests/weather.md::{row}'",
            "the workspace has it now: evalstore show @work:tests/weather.md::city=Bern",
        )
        for row in ("city=Bern", "ber")
    },
    "fsck --remote tests/maps.txt": (
        6,
        "the bundle 'ROOT/tests/maps.txt' cannot be read: No such file or directory",
        "did you mean 'map.txt'?",
    ),
    "pull .evalstore/stor.db": (
        6,
        "no store at 'ROOT/.evalstore/stor.db'",
        "did you mean 'store.db'?",
    ),
    "-c evalstor.yaml status": (
        2,
        "evalstor.yaml: cannot be read: No such file or directory",
        "did you mean 'evalstore.yaml'?",
    ),
    "-C test status": (2, "folder 'test' not found", "did you mean 'tests'?"),
    "stats -o run.csv": (
        2,
        "--output: 'run.csv' is not a valid value",
        "write '-o csv > run.csv'",
    ),
    **{
        f"report -o run.{suffix}": (
            2,
            f"'run.{suffix}' is not the name of an HTML file",
            "end the name with .html; 'evalstore report' also writes Markdown, to names with .md",
        )
        for suffix in ("pdf", "docx", "txt", "PDF")
    },
    **{
        f"report -o run.{suffix}": (
            2,
            f"'run.{suffix}' is not the name of an HTML file",
            "end the name with .html; 'evalstore report' also writes Markdown, to names with .md; "
            f"'evalstore export -o run.{suffix}' writes the results for other programs",
        )
        for suffix in ("xml", "junit.xml", "json", "csv")
    },
    **{
        f"{command} -o run.{suffix}": (
            2,
            f"the suffix of 'run.{suffix}' names no format",
            f"'evalstore report -o run.{suffix}' writes a page",
        )
        for command in ("export", "run")
        for suffix in ("html", "htm")
    },
}


@pytest.mark.parametrize("command", NEAREST)
def test_a_wrong_tag_file_model_or_row_is_compared_with_those_that_exist(
    workspace: Path, evalstore: Evalstore, command: str
) -> None:
    code = "def check(answer):\n    return True\n"
    files = {"checks/exactly.py": code, "prompts/shop.md": "Be kind.\n", "tests/map.txt": "x"}
    provider = "code: local\ntype: openai\nbaseURL: http://127.0.0.1:1\n"
    tree(workspace, {**files, "tests/data/q.csv": "q\na\n", "providers/local.yaml": provider})
    evalstore("run")
    if "new.md" in command:
        tree(workspace, {"tests/new.md": (workspace / "tests/weather.md").read_text()})
    if "ber" in command.lower():
        edit(workspace / "tests/weather.md", "[Oslo, Rome]", "[Oslo, Rome, Bern]")
    exit_code, message, hint = NEAREST[command]
    message = message.replace("ROOT", str(workspace))
    assert evalstore(*command.split()) == Ran(exit_code, "", f"error: {message}\nhint: {hint}\n")
    assert not list(workspace.glob("run.*"))


def test_a_warning_names_a_wrong_tag_that_changes_nothing(
    workspace: Path, evalstore: Evalstore
) -> None:
    warning = "warning: no case has the tag 'wether': did you mean 'weather'?\n"
    assert evalstore("status", "--exclude-tag", "wether").stderr.startswith(warning)
    assert evalstore("run", "--exclude-tag", "wether").stderr.startswith(warning)
    assert evalstore("status", "-t", "weather", "-t", "wether").stderr.startswith(warning)
    assert "warning" not in evalstore("status", "-t", "weather").stderr


def test_an_error_of_the_command_line_has_the_colours_of_the_environment(
    evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("--color", "always", "ls")
    assert evalstore("statsu").stderr.startswith("error: ")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert evalstore("statsu").stderr.startswith("\x1b[31merror:")


def test_a_candidate_of_a_provider_file_needs_a_model_file(
    workspace: Path, evalstore: Evalstore
) -> None:
    settings = workspace / "evalstore.yaml"
    settings.write_text(settings.read_text().replace("[scripted", "[local/big, scripted", 1))
    tree(workspace, {"providers/local.yaml": "code: local\nbaseURL: http://127.0.0.1:1\n"})
    needed = "'provider: local', 'code: big' and 'id: local/big'"
    assert (
        f"the provider file 'local' needs a model file with {needed}" in evalstore("check").stderr
    )
    model = "provider: local\ncode: big\nid: local/big\n"
    tree(workspace, {"models/big.yaml": model})
    assert evalstore("check").exit_code == 0


@pytest.mark.parametrize(
    ("variable", "value", "command", "message"),
    [
        ("EVALSTORE_RUN_CONCURRENCY", "x", ["run"], "must be a whole number"),
        ("EVALSTORE_RUN_CONCURRENCY", "0", ["run"], "must be at least 1"),
        ("EVALSTORE_COLOR", "x", ["status"], "'x' is not a valid value"),
        ("EVALSTORE_VIEW_PORT", "x", ["view", "--web"], "must be a whole number"),
    ],
)
def test_a_wrong_value_of_a_variable_names_the_variable(
    workspace: Path,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
    command: list[str],
    message: str,
) -> None:
    monkeypatch.setenv(variable, value)
    ran = evalstore(*command)
    assert ran.exit_code == 2
    assert ran.stderr.splitlines()[0] == f"error: {variable}: {message}"


def test_a_wrong_value_beside_a_variable_names_the_option(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSTORE_RUN_CONCURRENCY", "2")
    assert evalstore("run", "-j", "x").stderr == "error: --concurrency: must be a whole number\n"


def test_a_provider_file_with_an_error_is_not_also_reported_as_missing(
    workspace: Path, evalstore: Evalstore
) -> None:
    files = {
        "providers/desk.yaml": "code: desk\ntype: openai\nbaseUrl: http://127.0.0.1:1\n",
        "models/mine.yaml": "id: mine\nprovider: desk\ncode: big\n",
    }
    tree(workspace, files)
    lines = evalstore("check").stderr.splitlines()
    assert [line.partition(" ")[2] for line in lines if line.startswith("error: ")] == [
        "providers/desk.yaml:3: unknown field 'baseUrl'"
    ]
    assert evalstore("doctor", "-m", "mine").stderr == (
        "error: unknown model 'mine' (-m)\n"
        "hint: its file may have errors: 'evalstore check' lists them\n"
    )
    tree(workspace, {"providers/desk.yaml": "code: dest\ntype: openai\n"})
    assert evalstore("check").stderr == (
        "error: models/mine.yaml:2: unknown provider 'desk'\nhint: did you mean 'dest'?\n"
    )
