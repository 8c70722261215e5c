"""`--set KEY=VALUE`: a setting for one command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evalstore.core.errors import EvalstoreError
from evalstore.workspace.settings.settings import Settings, read_settings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interfaces.cli.conftest import Evalstore

TEXT = "candidates: [a]\nconcurrency: 2\npaths: {prompts: p}\n"


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("concurrency=7", "concurrency: 7"),
        ("concurrency=null", "confirmAbove: 10"),
        ("concurrency=", "confirmAbove: 10"),
        ("verdict=>= 0.5", "verdict: '>= 0.5'"),
        ("paths.tests=t", "paths: {prompts: p, tests: t}"),
        ("paths={tests: t}", "paths: {tests: t}"),
        ("candidates=[b, {id: c, temperature: 1}]", "candidates: [b, {id: c, temperature: 1}]"),
    ],
)
def test_an_override_takes_the_place_of_a_setting(override: str, expected: str) -> None:
    key = override.partition("=")[0].partition(".")[0]
    kept = "".join(f"{line}\n" for line in TEXT.splitlines() if not line.startswith(f"{key}:"))
    assert read_settings(TEXT, [override]) == read_settings(f"{kept}{expected}\n")


def test_the_last_one_counts_and_an_empty_file_is_fine() -> None:
    settings = read_settings("", ["attempts=2", "attempts=3"])
    assert settings == Settings(attempts=3)


@pytest.mark.parametrize(
    ("override", "message", "hint"),
    [
        (
            "concurency=4",
            "--set concurency: unknown field 'concurency'",
            "did you mean 'concurrency'?",
        ),
        (
            "concurrency=x",
            "--set concurrency: 'concurrency' must be a whole number from 1 to 1,024",
            None,
        ),
        (
            "candidates=[x",
            "--set candidates: the [ is not closed",
            None,
        ),
        (
            "concurrency",
            "--set 'concurrency' is not of the form KEY=VALUE",
            "as in --set concurrency=4",
        ),
        ("=4", "--set '=4' is not of the form KEY=VALUE", "as in --set concurrency=4"),
        ("a..b=4", "--set 'a..b=4' is not of the form KEY=VALUE", "as in --set concurrency=4"),
    ],
)
def test_a_wrong_override_is_reported_by_its_name(
    override: str, message: str, hint: str | None
) -> None:
    with pytest.raises(EvalstoreError) as caught:
        read_settings(TEXT, [override])
    assert (str(caught.value)[: len(message)], caught.value.hint) == (message, hint)


def test_every_command_knows_it(workspace: Path, evalstore: Evalstore, documents: Any) -> None:
    assert documents("run", "--set", "attempts=2")["asked"] == 4
    assert documents("status")["ask"] == 0
    assert documents("status", "--set=attempts=3")["ask"] == 2
    assert documents("status", "--set", "attempts=3", "--set", "prohibitedTags=[x]")["ask"] == 2
    assert evalstore("status", "--set", "prohibitedTags=[weather]").exit_code == 5
    assert evalstore("check", "--set", "attempt=3").stderr == (
        "error: --set attempt: unknown field 'attempt'\nhint: did you mean 'attempts'?\n"
    )


def test_what_is_remembered_of_status_is_not_that_of_other_settings(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("run")
    assert documents("status")["ask"] == 0
    assert documents("status", "--set", "attempts=2")["ask"] == 2
    assert documents("status")["ask"] == 0
