"""A variable of an option is what the command line would say, which overrides it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interfaces.cli.conftest import Evalstore


def test_a_format_on_the_command_line_overrides_the_variable_of_json(
    workspace: object, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSTORE_LS_JSON", "1")
    assert evalstore("ls", "tags").stdout.startswith("{")
    assert evalstore("ls", "tags", "-o", "csv").stdout.startswith("tag,cases")
    assert evalstore("ls", "tags", "-o", "csv", "--json").stdout.startswith("{")


@pytest.mark.parametrize(
    ("variables", "command"),
    [
        ("CHECK_INTO=a CHECK_FORMAT=sarif", "check --json"),
        ("DIFF_VERSUS=scripted/one", "diff"),
        ("DIFF_PROMPT=a", "diff"),
        ("DIFF_VERSUS=scripted/one", "diff --model scripted/one @~1..@"),
        ("LOG_GRAPH=1", "log tests/weather.md"),
        ("LS_VERDICT=fail LS_MODELS=one LS_GREP=x LS_BROKE=1 LS_SINCE=@", "ls tests"),
        ("LS_SINCE=@", "ls results"),
        ("PULL_BASELINE=@", "pull"),
        ("PULL_FOR_PLAN=1", "pull -n"),
        ("PUSH_WITH_FAILURES=1", "push -n --exclude-tag weather"),
        ("REMOTE_GRACE=3d", "remote show"),
        ("REPORT_MARKDOWN=1", "report -o a.html"),
        ("REPORT_JSON=1", "report --markdown"),
        ("RUN_WORKERS=2 RUN_SCHEDULER=local RUN_BASELINE=@ RUN_SEED=1", "run -q"),
        ("RUN_SCHEDULER=local", "run -q --executor processes"),
        ("RUN_EXPORTS=a.csv RUN_RETRY_ERRORS=1 RUN_WATCH=1", "run -n --refresh"),
        ("RUN_MAX_COST=1 RUN_TAGS=weather RUN_EXPORTS=a.csv", "run --join @"),
        ("VIEW_PORT=80", "view"),
    ],
)
def test_one_that_does_not_suit_the_command_is_as_if_it_were_not_set(
    workspace: Path,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
    variables: str,
    command: str,
) -> None:
    assert evalstore("remote", "add", "origin", "shared").exit_code == 0
    for _ in range(2):
        evalstore("run", "-q")
    evalstore("push")
    evalstore(*command.split())
    without = evalstore(*command.split())
    for variable in variables.split():
        monkeypatch.setenv(*f"EVALSTORE_{variable}".split("="))
    ran = evalstore(*command.split())
    assert (ran.exit_code, ran.stderr) == (without.exit_code, without.stderr)
    assert ran.stdout.splitlines()[:1] == without.stdout.splitlines()[:1]
    assert not Path("a.csv").exists()


def test_an_error_names_the_variable_of_an_option_that_nobody_typed(
    workspace: object, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSTORE_CHECK_JSON", "1")
    ran = evalstore("check", "--format", "sarif")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.endswith("\nhint: EVALSTORE_CHECK_JSON sets '--json'\n")


@pytest.mark.parametrize(
    ("variable", "command", "refused"),
    [
        ("RUN_DRY_RUN", "run --watch", "'--watch' cannot be combined with '--dry-run'"),
        ("RUN_DRY_RUN", "run --join @", "'--dry-run' cannot be combined with '--join'"),
        ("PULL_DRY_RUN", "pull --for-plan", "'--for-plan' cannot be combined with '--dry-run'"),
        ("TRUST_REVOKE", "trust --network a.py", "'--network' cannot be combined with '--revoke'"),
    ],
)
def test_what_would_not_be_done_is_never_done_because_of_it(
    workspace: object,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    command: str,
    refused: str,
) -> None:
    monkeypatch.setenv(f"EVALSTORE_{variable}", "1")
    ran = evalstore(*command.split())
    assert (ran.exit_code, ran.stderr.splitlines()[0]) == (2, f"error: {refused}")
    assert (
        f"EVALSTORE_{variable} sets '--{variable.partition('_')[2].lower().replace('_', '-')}'"
        in (ran.stderr)
    )
