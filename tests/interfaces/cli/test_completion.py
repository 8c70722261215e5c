"""`--show-completion`: what a shell needs to complete commands and options."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer

from evalstore.interfaces.cli import main as completion_scripts
from evalstore.interfaces.cli import options
from tests.builders import tree
from tests.interfaces.cli.run.test_run import edit
from tests.zygote import shell_program

if TYPE_CHECKING:
    from tests.interfaces.cli.conftest import Evalstore

pytestmark = pytest.mark.extended


@pytest.fixture(autouse=True)
def _evalstore_of_shells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a shell starts as `evalstore` is a fork."""
    program = shell_program(tmp_path / "programs/evalstore")
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


@pytest.mark.parametrize(
    ("shell", "words"),
    [
        ("bash", "complete -o default -F _evalstore_completion evalstore"),
        ("zsh", "#compdef evalstore"),
        ("fish", "complete --command evalstore"),
    ],
)
def test_it_prints_the_script_of_a_shell(evalstore: Evalstore, shell: str, words: str) -> None:
    ran = evalstore("--show-completion", shell)
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert words in ran.stdout
    assert "_EVALSTORE_COMPLETE=complete_" in ran.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_not_wrapped(
    evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    wide = evalstore("--show-completion", shell).stdout
    monkeypatch.setenv("COLUMNS", "40")
    assert evalstore("--show-completion", shell).stdout == wide


def test_it_wants_a_shell_it_knows(evalstore: Evalstore) -> None:
    assert evalstore("--show-completion", "tcsh").exit_code == 2


@pytest.mark.parametrize(
    ("words", "names"),
    [("evalstore st", {"status", "stats"}), ("evalstore run --keep", {"--keep-going"})],
)
def test_the_script_is_answered(
    monkeypatch: pytest.MonkeyPatch, words: str, names: set[str]
) -> None:
    monkeypatch.setenv("_EVALSTORE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    done = subprocess.run(
        [sys.executable, "-m", "evalstore"], capture_output=True, text=True, check=False
    )
    assert set(done.stdout.split()) == names


SCRIPT = """\
{functions}
COMP_LINE={line}
COMP_POINT=${{#COMP_LINE}}
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_evalstore_completion {program}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def words_of_readline(line: str) -> list[str]:
    """The words of a line as bash has them: blanks, `:` and `=` end one outside quotes."""
    words = re.findall(r"['\"][^'\"]*['\"]?|[:=]+|(?:\\\\.|[^\s:='\"])+", line)
    return [*words, ""] if line.endswith(" ") and line.count("'") % 2 == 0 else words


PROGRAM = Path(sys.executable).with_name("evalstore")
PRINTED = f'eval "$({PROGRAM} --show-completion bash)"'
"""How a user loads the script: the program prints it."""


def completed(line: str, folder: Path, functions: str = completion_scripts.BASH) -> list[str]:
    """What bash offers at the end of a line."""
    words = " ".join(map(shlex.quote, words_of_readline(line)))
    script = SCRIPT.format(
        functions=functions, program="evalstore", line=shlex.quote(line), words=words
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, check=False, cwd=folder
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("evalstore run tests/w", ["tests/weather.md"]),
        ("evalstore status 'tests/weather.md::city=O", ["tests/weather.md::city=Oslo"]),
        ("evalstore status tests/weather.md::city=O", ["Oslo"]),
        ("evalstore status tests/weather.md::", ["city=Oslo", r"city=New\ York"]),
        (r"evalstore status tests/weather.md::city=New\ Y", [r"New\ York"]),
        ("evalstore run -m scripted/o", ["scripted/one"]),
        ("evalstore ls cases --tag w", ["weather"]),
        ("evalstore show @", ["@", "@~1", "@work"]),
        ("evalstore ls -o cs", ["csv"]),
        ("evalstore ls checks containsA", ["containsAll", "containsAny"]),
        ("evalstore check --schema fr", ["frontmatter"]),
    ],
)
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_names_of_the_workspace(
    workspace: Path, line: str, values: list[str]
) -> None:
    edit(workspace / "tests/weather.md", "[Oslo, Rome]", "[Oslo, New York]")
    assert completed(line, workspace) == values


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_completion_uses_the_workspace_that_the_line_names(workspace: Path) -> None:
    line = "evalstore -C w run tests/w"
    assert completed(line, workspace.parent, PRINTED) == ["tests/weather.md"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_completion_uses_the_store_that_the_line_names(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("remote", "add", "origin", "shared")
    evalstore("--store", "other.db", "run")
    evalstore("--store", "other.db", "push")
    names = completed("evalstore show ", workspace)
    assert names == ["@", "@~1", "@work", "origin/@", "tests/weather.md"]
    [run] = set(completed("evalstore --store=other.db show ", workspace)) - set(names)
    assert re.fullmatch("[0-9a-f]{8}", run)


def test_completion_expands_the_home_of_the_user(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words that the shell hands over are as they were typed."""
    monkeypatch.setenv("HOME", str(workspace.parent))
    context = typer.Context(typer.main.get_command(typer.Typer(callback=print)))
    context.params = {"directory": "~/w", "store": "~/o.db", "config": "~/x.yaml"}
    location = options._location(context)
    assert location.directory == workspace
    assert location.config == workspace.parent / "x.yaml"
    assert location.store == str(workspace.parent / "o.db")


TRAPS = r"""['t*', 'x$(touch run)', 'y\$(touch run)', 'z`touch run`', "q'r", 'plain']"""


@pytest.mark.parametrize(
    ("line", "values"),
    [
        (
            "evalstore run tests/weather.md::city=",
            ["plain", r"q\'r", r"t\*", r"x\$\(touch\ run\)", r"z\`touch\ run\`"],
        ),
        (
            'evalstore run "tests/weather.md::city=',
            [f"tests/weather.md::city={name}" for name in ("plain", "q'r", "t*")],
        ),
        (
            "evalstore run 'tests/weather.md::city=",
            [
                f"tests/weather.md::city={name}"
                for name in ("plain", "t*", "x$(touch run)", "z`touch run`")
            ],
        ),
    ],
)
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_no_name_is_expanded_by_bash(workspace: Path, line: str, values: list[str]) -> None:
    edit(workspace / "tests/weather.md", "[Oslo, Rome]", TRAPS)
    (workspace / "tests/weather.md::city=tea").touch()
    assert sorted(completed(line, workspace)) == values


EVALUATED_BY_ZSH = r"""
_arguments() { local action=${1#*'(('}; eval "words=( ${action%'))'} )"; }
eval "$(_EVALSTORE_COMPLETE=complete_zsh _TYPER_COMPLETE_ARGS="$1" "$2")"
printf '%s\n' "${words[@]}"
"""
"""What the completion of zsh does with names, in words that bash reads alike."""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_no_name_is_evaluated_by_zsh(workspace: Path) -> None:
    edit(workspace / "tests/weather.md", "[Oslo, Rome]", TRAPS)
    words = ("evalstore run tests/weather.md::", PROGRAM)
    done = subprocess.run(
        ["bash", "--norc", "-c", EVALUATED_BY_ZSH, "bash", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=workspace,
    )
    assert "city=x$(touch run)" in done.stdout.replace("\\:", ":")
    assert not (workspace / "run").exists()


@pytest.mark.parametrize(
    ("shell", "option"), [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")]
)
def test_the_script_is_valid_for_its_shell(evalstore: Evalstore, shell: str, option: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = evalstore("--show-completion", shell).stdout
    done = subprocess.run([shell, option], input=script, text=True, check=False)
    assert done.returncode == 0


_CITIES = ("Oslo", "Rome")


@pytest.fixture
def plain(workspace: Path) -> Path:
    """A workspace that has a test file without rows, too, with a file to trust."""
    python = "~~~checks\n- python: {file: warm.py, function: judge}\n~~~\n"
    files = {
        "tests/plain.md": f"# 👤\n\nHi.\n\n---\n\n{python}",
        "tests/warm.py": "def judge(answer):\n    return True\n",
    }
    return tree(workspace, files)


OFFERED = [
    ("evalstore label tests/weather.md::", [f"tests/weather.md::city={it}" for it in _CITIES]),
    ("evalstore show tests/weather.md::city=O", ["tests/weather.md::city=Oslo"]),
    ("evalstore run tests/plain.md::", []),
    ("evalstore run tests/plain.md::e", []),
    ("evalstore diff -m scripted/o", ["scripted/one"]),
    ("evalstore view @", ["@", "@work", "@~1"]),
    ("evalstore run --baseline @", ["@", "@~1"]),
    ("evalstore trust t", ["tests/warm.py"]),
    ("evalstore import p", ["promptfoo"]),
    ("evalstore ls sc", ["schemas"]),
    ("evalstore remote ", ["add", "gc", "list", "remove", "show"]),
    ("evalstore doctor -m scripted/o", ["scripted/one"]),
]


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
@pytest.mark.parametrize(("line", "values"), OFFERED)
def test_fish_offers_what_the_program_knows(
    plain: Path, evalstore: Evalstore, line: str, values: list[str]
) -> None:
    script = evalstore("--show-completion", "fish").stdout
    assert sorted(name.partition("\t")[0] for name in offered_by_fish(script, line)) == values


def offered_by_fish(script: str, line: str) -> list[str]:
    """The lines that fish shows, with what describes them."""
    Path("completion.fish").write_text(script)
    words = f"source completion.fish; complete -C {shlex.quote(line)}"
    command = ["fish", "--no-config", "-c", words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(("line", "values"), [OFFERED[0], OFFERED[4], OFFERED[7]])
def test_bash_offers_it_as_well(plain: Path, line: str, values: list[str]) -> None:
    short = [name.removeprefix("tests/weather.md::") for name in values]
    assert [name.replace("\\", "") for name in completed(line, plain) if name] == short


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_summaries_of_commands_are_whole(workspace: Path, evalstore: Evalstore) -> None:
    shown = offered_by_fish(evalstore("--show-completion", "fish").stdout, "evalstore di")
    assert shown == ["diff\tShow what broke, was fixed or changed between two runs."]


def test_files_are_not_offered_as_rows_by_any_shell(evalstore: Evalstore) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "*::*" in evalstore("--show-completion", shell).stdout


HOSTILE = ("a'$(id)'.md", "b$(id).md", "c`id`.md", 'd"x.md', "e f.md")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("word", "offered"), [("'", HOSTILE[1:]), ('"', HOSTILE[4:])], ids=["single", "double"]
)
def test_no_name_ends_the_quote_or_is_expanded_in_it(word: str, offered: tuple[str, ...]) -> None:
    names = shlex.join(HOSTILE)
    line = shlex.quote(f"evalstore show {word}")
    script = (
        f"fake() {{ printf '%s\\n' {names}; }}\n{completion_scripts.BASH}\n"
        f"COMP_LINE={line} COMP_POINT={len('evalstore show ') + 1} COMP_CWORD=2\n"
        f"COMP_WORDS=(evalstore show {shlex.quote(word)})\n"
        "_evalstore_completion fake\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n"
    )
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert tuple(ran.stdout.splitlines()) == offered
