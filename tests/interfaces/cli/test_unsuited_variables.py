"""A variable of an option that has no meaning in the use at hand is as if it were not set."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from evalstore.interfaces.cli.command_line import RULES
from evalstore.interfaces.cli.main import commands
from evalstore.planning.options import Location
from tests.interfaces.cli.conftest import Evalstore


def read(line: str) -> dict[str, Any]:
    """Return the values of the parameters of a command, as it gets them."""
    name, *arguments = shlex.split(line)
    program: Any = commands()
    nowhere = Location(Path("nowhere"))
    with mock.patch("evalstore.interfaces.cli.commands.sharing.here", return_value=nowhere):
        context = program.commands[name].make_context(
            name, arguments, auto_envvar_prefix=f"EVALSTORE_{name.upper()}"
        )
    values: dict[str, Any] = context.params
    return values


def test_every_rule_is_about_a_parameter_of_its_command() -> None:
    program: Any = commands()
    for command, rules in RULES.items():
        names = {parameter.name for parameter in program.commands[command].params}
        assert rules.keys() <= names


@pytest.mark.parametrize(
    ("variable", "unsuited", "suited"),
    [
        ("CHECK_INTO=a", "check", "check --schema"),
        ("CHECK_FORMAT=sarif", "check --json", "check"),
        ("CHECK_JSON=1", "check --format sarif", "check"),
        ("DIFF_VERSUS=b", "diff", "diff --model a"),
        ("DIFF_VERSUS=b", "diff", "diff --prompt a"),
        ("DIFF_PROMPT=a", "diff", "diff --vs b"),
        ("LABEL_REMOVE=1", "label a pass", "label a"),
        ("LOG_GRAPH=1", "log tests/a.md", "log"),
        ("LOG_GRAPH=1", "log --failures", "log --oneline"),
        ("PULL_BASELINE=@", "pull", "pull --for-plan"),
        ("PULL_FOR_PLAN=1", "pull -n", "pull"),
        ("PUSH_WITH_FAILURES=1", "push --exclude-tag a", "push"),
        ("RUN_WORKERS=2", "run", "run --executor processes"),
        ("RUN_SCHEDULER=local", "run --executor processes", "run --executor dask"),
        ("RUN_EXECUTOR=dask", "run --join @", "run"),
        ("RUN_MAX_COST=1", "run --join @", "run"),
        ("REMOTE_DRY_RUN=1", "remote", "remote gc"),
        ("REMOTE_OUTPUT_FORMAT=csv", "remote gc origin", "remote list"),
        ("STATUS_JSON=1", "status -o csv", "status"),
        ("REMOTE_GRACE=3d", "remote add origin ../team", "remote gc origin"),
        ("REPORT_MARKDOWN=1", "report -o a.html", "report"),
        ("REPORT_JSON=1", "report --markdown", "report"),
        ("RUN_BASELINE=@", "run", "run --fail-on regression"),
        ("RUN_EXPORTS=a.csv", "run -n", "run"),
        ("RUN_REFRESH=1", "run --retry-errors", "run"),
        ("RUN_REMOTE=origin", "run --watch", "run"),
        ("RUN_RETRY_ERRORS=1", "run --refresh", "run"),
        ("RUN_WATCH=1", "run -n", "run"),
        ("SERVE_ALLOW_RUN=1", "serve", "serve --mcp"),
        ("SERVE_MAX_COST=1", "serve --mcp", "serve --mcp --allow-run"),
        ("SERVE_PORT=80", "serve --mcp", "serve"),
        ("STATUS_SEED=1", "status", "status --sample 2"),
        ("TRUST_NETWORK=1", "trust env A b", "trust a.py"),
        ("TRUST_REVOKE=1", "trust --list", "trust a.py"),
        ("TRUST_SHOW=1", "trust a.py", "trust"),
        ("VIEW_PORT=80", "view", "view --web"),
    ],
)
def test_it_is_used_only_where_it_has_a_meaning(
    variable: str, unsuited: str, suited: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = read(unsuited), read(suited)
    name, _, value = variable.partition("=")
    monkeypatch.setenv(f"EVALSTORE_{name}", value)
    assert read(unsuited) == without[0]
    assert read(suited) != without[1]


def test_json_of_a_variable_holds_for_every_action_of_remote(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EVALSTORE_REMOTE_OUTPUT_FORMAT", "json")
    for action in ("gc origin", "add origin ../team", "list"):
        assert read(f"remote {action}")["output_format"] == "json"


def test_what_would_not_be_done_is_never_done_because_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EVALSTORE_PULL_DRY_RUN", "1")
    monkeypatch.setenv("EVALSTORE_RUN_DRY_RUN", "1")
    assert read("pull --for-plan")["dry_run"]
    assert read("run --watch")["dry_run"]


def test_other_uses_of_a_command_go_on(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSTORE_REMOTE_GRACE", "3d")
    monkeypatch.setenv("EVALSTORE_PULL_BASELINE", "@")
    for line in ("remote add origin shared", "push", "remote", "remote show", "pull"):
        ran = evalstore(*line.split())
        assert ran.exit_code == 0, ran.stderr
    evalstore("run", "-q")
    evalstore("run", "-q")
    monkeypatch.setenv("EVALSTORE_DIFF_VERSUS", "scripted/one")
    for revisions in (("@~1", "@"), ("@~1..@",)):
        assert evalstore("diff", "--model", "scripted/one", *revisions).exit_code == 0
    alone = evalstore("diff", "--model", "scripted/one", "@").stdout
    assert alone.startswith("scripted/one -> scripted/one in run ")
    monkeypatch.setenv("EVALSTORE_PUSH_WITH_FAILURES", "1")
    settings = workspace / "evalstore.yaml"
    text = settings.read_text()
    settings.write_text(text.replace("shared", "{address: shared, excludeTags: [weather]}"))
    pushed = evalstore("push")
    assert (pushed.exit_code, pushed.stderr) == (
        0,
        "2 runs stay here: they may show excluded tests\n",
    )
    assert evalstore("push", "--with-failures").exit_code == 2
    settings.write_text(text)
    refused = evalstore("remote", "show", "--grace", "3d")
    assert refused.stderr.startswith("error: 'remote show' has no option '--grace'")
