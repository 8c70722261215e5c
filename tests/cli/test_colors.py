"""Colours follow `--color`, else the variables that other programs follow, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Evalstore


@pytest.mark.parametrize(
    ("variables", "option", "is_colored"),
    [
        ({}, "auto", False),
        ({"FORCE_COLOR": "1"}, "auto", True),
        ({"CLICOLOR_FORCE": "1"}, "auto", True),
        ({"CLICOLOR_FORCE": "0"}, "auto", False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, "auto", False),
        ({"FORCE_COLOR": "1"}, "never", False),
        ({"NO_COLOR": "1"}, "always", True),
    ],
)
def test_colours_are_chosen(
    workspace: Path,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    option: str,
    is_colored: bool,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in evalstore("ls", "tests", "--color", option).stdout) is is_colored
