"""A variable of an option is what the command line would say, which overrides it."""

from __future__ import annotations

import pytest

from tests.interfaces.cli.conftest import Evalstore


def test_a_format_on_the_command_line_overrides_the_variable_of_json(
    workspace: object, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSTORE_LS_JSON", "1")
    assert evalstore("ls", "tags").stdout.startswith("{")
    assert evalstore("ls", "tags", "-o", "csv").stdout.startswith("tag,cases")
    assert evalstore("ls", "tags", "-o", "csv", "--json").stdout.startswith("{")


def test_one_that_does_not_suit_the_command_is_an_error(
    workspace: object, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSTORE_PULL_BASELINE", "@")
    ran = evalstore("pull")
    assert (ran.exit_code, ran.stderr) == (2, "error: '--baseline' needs '--for-plan'\n")


def test_what_would_not_be_done_is_never_done_because_of_it(
    workspace: object, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSTORE_RUN_DRY_RUN", "1")
    ran = evalstore("run", "--watch")
    assert ran.exit_code == 2
    assert ran.stderr.startswith("error: '--watch' cannot be combined with '--dry-run'")
