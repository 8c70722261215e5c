"""`completion`: what a shell needs to complete commands and options."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Evalstore


@pytest.mark.parametrize(
    ("shell", "words"),
    [
        ("bash", "complete -o default -F _evalstore_completion evalstore"),
        ("zsh", "#compdef evalstore"),
        ("fish", "complete --command evalstore"),
    ],
)
def test_it_prints_the_script_of_a_shell(evalstore: Evalstore, shell: str, words: str) -> None:
    ran = evalstore("completion", shell)
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert words in ran.stdout
    assert "_EVALSTORE_COMPLETE=complete_" in ran.stdout


def test_it_wants_a_shell_it_knows(evalstore: Evalstore) -> None:
    assert evalstore("completion", "tcsh").exit_code == 2


@pytest.mark.parametrize(
    ("words", "found"),
    [("evalstore st", {"status", "stats"}), ("evalstore run --keep", {"--keep-going"})],
)
def test_the_script_is_answered(
    monkeypatch: pytest.MonkeyPatch, words: str, found: set[str]
) -> None:
    monkeypatch.setenv("_EVALSTORE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    done = subprocess.run(
        [sys.executable, "-m", "evalstore"], capture_output=True, text=True, check=False
    )
    assert set(done.stdout.split()) == found
