"""`completion`: what a shell needs to complete commands and options."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
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


SCRIPT = """\
eval "$({program} completion bash)"
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_evalstore_completion {program}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("evalstore run tests/w", ["tests/weather.md"]),
        ("evalstore status 'tests/weather.md::city=O'", ["tests/weather.md::city=Oslo"]),
        ("evalstore run -m scripted/o", ["scripted/one"]),
        ("evalstore ls cases --tag w", ["weather"]),
        ("evalstore show @", ["@", "@~1", "@work"]),
        ("evalstore ls -o cs", ["csv"]),
        ("evalstore trus", ["trust"]),
    ],
)
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_names_of_the_workspace(
    workspace: Path, words: str, values: list[str]
) -> None:
    program = Path(sys.executable).with_name("evalstore")
    done = subprocess.run(
        ["bash", "--norc", "-c", SCRIPT.format(program=program, words=words)],
        capture_output=True,
        text=True,
        check=False,
        cwd=workspace,
    )
    assert (done.stdout.split(), done.stderr) == (values, "")


@pytest.mark.parametrize(
    ("shell", "option"), [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")]
)
def test_the_script_is_valid_for_its_shell(evalstore: Evalstore, shell: str, option: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = evalstore("completion", shell).stdout
    done = subprocess.run([shell, option], input=script, text=True, check=False)
    assert done.returncode == 0
