"""The browser in a real terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.tui.terminal import PROGRAM, Terminal, terminal

pytestmark = [
    pytest.mark.extended,
    pytest.mark.skipif(not PROGRAM, reason="there is no tmux"),
]


def walk_through_cases(page: Terminal) -> None:
    """From the runs to the cases of the newest, through the filter, and back."""
    page.shows("evalstore › 1 run", "workspace  now")
    page.press("Down", "Enter")
    page.shows("3 cases › 3 ✓ pass, 3 ✗ fail", "city=Oslo")
    page.press("/")
    page.type("verdict:pass model:one")
    page.shows("1 of 3 cases")
    page.press("Enter")
    page.press("Escape")
    page.shows("› 3 cases")
    page.press("g", "n", "n")
    page.shows("It is cold there.")
    page.press("Escape")
    page.shows("evalstore › 1 run")


def walk_through_help(page: Terminal) -> None:
    """To the help, to its end, and back."""
    page.press("?")
    page.shows("help › Runs", "Judge and label")
    page.press("G")
    page.shows("The signs of verdicts", "✓ pass")
    page.press("Escape")
    page.shows("evalstore › 1 run")


def walk_through_commands(page: Terminal) -> None:
    """To the test file that is typed."""
    page.press("C-p")
    page.shows("Statistics", "Reload")
    page.type("weather")
    page.shows("File tests/weather.md")
    page.press("Enter")
    page.shows("workspace › tests/weather.md › 2 of 3 cases")
    page.press("Escape")
    page.shows("evalstore › 1 run")


def walk_through_comparisons(page: Terminal) -> None:
    """From two runs to what differs, to what is to do, and to the statistics and their cases."""
    page.press("Down", "d")
    page.shows("compare › ", "the pass rate of one row changed")
    page.press("Enter")
    page.shows("(other instructions")
    page.press("Escape")
    page.shows("compare › ")
    page.press("Escape")
    page.shows("evalstore › 2 runs")
    page.press("w")
    page.shows("pending work › nothing", "Nothing to do")
    page.press("Escape")
    page.shows("evalstore › 2 runs")
    page.press("S")
    page.shows("statistics › ", " of 4 passed")
    page.press("3")
    page.shows("answers $", "  weather")
    page.press("Enter")
    page.shows('tag:"weather"', "› 2 cases ›")
    page.press("/", "Escape")
    page.hides('tag:"weather"')
    page.press("x")
    page.shows("› one -> two")
    page.press("Escape")
    page.shows("› 2 cases ›")
    page.press("Escape")
    page.shows("statistics › ")
    page.press("Escape")
    page.shows("evalstore › 2 runs")


def walk_through_sizes(page: Terminal) -> None:
    """Smaller, far too small, and back."""
    page.resize(40, 12)
    page.hides("enter shows the cases")
    page.shows("workspace  now")
    page.resize(18, 5)
    page.shows("too small")
    page.resize(100, 30)
    page.hides("too small")
    page.shows("workspace  now")


def test_it_is_walked_through_and_leaves_the_terminal_as_it_was(workspace: Path) -> None:
    with terminal(workspace) as page:
        before = page.state()
        page.run("view", COLUMNS="70", LINES="20")  # what is left over from elsewhere is no size
        for walk in (
            walk_through_cases,
            walk_through_help,
            walk_through_commands,
            walk_through_sizes,
        ):
            walk(page)
        assert page.state() != before
        page.press("q")
        assert page.ended() == 0
        assert page.state() == before


def test_it_can_be_left_from_the_cases(workspace: Path) -> None:
    """With `q`, too: another test does."""
    with terminal(workspace, 80, 24) as page:
        page.run("view", "@")
        page.shows("3 cases", "esc Back")
        page.press("C-c")
        page.shows("q quits")
        page.press("C-q")
        assert page.ended() == 0


@pytest.mark.parametrize(
    ("arguments", "variables"), [(("--color", "never"), {}), ((), {"NO_COLOR": "1"})]
)
def test_without_colours_nothing_is_painted(
    workspace: Path, arguments: tuple[str, ...], variables: dict[str, str]
) -> None:
    with terminal(workspace) as page:
        page.run("view", "@", *arguments, **variables)
        page.shows("✗ fail", "✓ pass")
        painted = page.painted()
        assert "\x1b[" in painted
        assert "[38;" not in painted
        assert "[48;" not in painted
        page.press("q")
        assert page.ended() == 0


def test_stderr_may_be_a_file(workspace: Path) -> None:
    with terminal(workspace) as page:
        page.run("view", "@", stderr="log")
        page.shows("✗ fail", "✓ pass")
        page.press("q")
        assert page.ended() == 0
    assert not (workspace / "log").read_bytes()


def test_a_terminal_that_cannot_be_drawn_on_is_reported(workspace: Path) -> None:
    with terminal(workspace) as page:
        page.run("view", TERM="dumb")
        assert page.ended() == 2
        page.shows("error: 'view' needs a terminal with cursor control", "'evalstore log'")
        page.run("view", "--theme", "nrod")
        page.shows("error: --theme: unknown theme 'nrod'", "hint: did you mean 'nord'?")
        assert page.ended() == 2


def test_without_a_workspace_or_the_run_it_does_not_begin(workspace: Path, tmp_path: Path) -> None:
    with terminal(workspace) as page:
        page.run("view", "nosuch")
        assert page.ended() == 2
        page.shows("error: 'nosuch' is not a revision", "hint: write @, @~1, @{monday}")
    (tmp_path / "empty").mkdir()
    with terminal(tmp_path / "empty") as page:
        page.run("view")
        assert page.ended() == 2
        page.shows("error: no evalstore.yaml in 'empty' or above", "hint: run 'evalstore init'")
    with terminal(workspace) as page:
        edit(workspace / "evalstore.yaml", "candidates:", "candidate:")
        page.run("view")
        page.shows("unknown field 'candidate'")  # that can be mended while it is open
        page.press("q")
        assert page.ended() == 0


def test_themes_and_keys_of_ones_own(workspace: Path) -> None:
    with terminal(workspace) as page:
        page.run("view", EVALSTORE_VIEW_THEME="nord", EVALSTORE_VIEW_KEY="quit=f10 help=H,f2")
        page.shows("H Help", "f10 Quit")
        page.press("q", "?", "H")
        page.shows("help › Runs")
        page.press("Escape")
        page.press("F10")
        assert page.ended() == 0


def test_a_failure_is_understood_labelled_edited_and_judged_again(workspace: Path) -> None:
    editor = workspace / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i "s/must be warm/must be short/" "$1"\n')
    editor.chmod(0o755)
    with terminal(workspace) as page:
        page.run("view", EDITOR=str(editor))
        page.shows("evalstore › 1 run", "workspace  now")
        page.press("Enter")
        page.shows("workspace › 3 cases", "city=Oslo")
        page.press("n", "n", "Enter")
        page.shows("It is cold there.", "The answer must be warm.")
        page.press("f")
        page.shows("why")
        page.type("too cold for me")
        page.press("Enter")
        page.shows("(a person)", "too cold for me")
        page.press("e")
        page.shows("run tests/weather.md", "instructions changed")
        page.press("Enter")
        page.shows("complete: 0 new answers")
        page.press("Escape")
        page.hides("run tests/weather.md")
        page.shows("✓ pass  by scripted/judge", "(other instructions")
        page.press("v")
        page.shows("versions", "must be short")
        page.press("Escape")
        page.shows("› scripted/one")
        page.press("Escape")
        page.shows("workspace › 3 cases")
        page.press("Escape")
        page.shows("evalstore › 2 runs")
        walk_through_comparisons(page)
        page.press("q")
        assert page.ended() == 0


@pytest.mark.parametrize("name", ["TERM", "HUP"])
def test_a_termination_signal_restores_the_terminal(workspace: Path, name: str) -> None:
    with terminal(workspace) as page:
        before = page.state()
        page.run("view")
        page.shows("evalstore › 1 run", "workspace  now")
        page.signal(name)
        assert page.ended() == 0
        assert page.state() == before


def test_a_signal_to_go_on_is_not_a_second_start(workspace: Path) -> None:
    with terminal(workspace) as page:
        before = page.state()
        page.run("view")
        page.shows("evalstore › 1 run", "workspace  now")
        page.signal("CONT")
        page.press("Enter")
        page.shows("workspace › 3 cases")
        page.press("C-c")
        page.shows("q quits")
        page.press("q")
        assert page.ended() == 0
        assert page.state() == before


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no terminals")
def test_the_start_is_announced_and_a_closed_terminal_ends_the_browser(workspace: Path) -> None:
    """A process without a controlling terminal gets no `SIGHUP`."""
    outside, inside = os.openpty()
    browser = subprocess.Popen(
        [sys.executable, "-m", "evalstore", "view"],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "TERM": "xterm"},
        start_new_session=True,
    )
    os.close(inside)
    shown = b""
    while b"evalstore" not in shown:
        shown += os.read(outside, 4096)
    assert shown.startswith(b"opening the browser\r\x1b[K")
    os.close(outside)
    try:
        assert browser.wait(timeout=60) == 0
    finally:
        browser.kill()
