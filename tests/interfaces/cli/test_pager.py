"""Long output in a terminal goes through the pager of the user."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.builders import tree
from tests.interfaces.cli.conftest import WEATHER_WORKSPACE
from tests.interfaces.tui import terminal as terminals
from tests.interfaces.tui.terminal import Terminal, terminal

pytestmark = [
    pytest.mark.extended,
    pytest.mark.skipif(terminals.PROGRAM is None, reason="tmux is not installed"),
    pytest.mark.xdist_group("pager"),
]
MARKS = "sed s/^/paged:/"
"""A pager that shows what goes through it."""


@pytest.fixture(scope="module")
def screen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A terminal in a workspace with more cases than it has lines."""
    values = ", ".join(f"city-{number:03}" for number in range(60))
    question = "# 👤\n\nWhere is {{city}}?\n\n---\n\nOk?\n"
    text = f"---\nreplacements: {{city: [{values}]}}\n---\n{question}"
    folder = tmp_path_factory.mktemp("pager")
    with terminal(tree(folder, {**WEATHER_WORKSPACE, "tests/many.md": text}), 100, 30) as window:
        yield window


def ran(screen: Terminal, *arguments: str, **variables: str) -> tuple[int, str]:
    """Run a command to its end; its exit code, and what can be seen then."""
    _clear(screen)
    screen.run(*arguments, **variables)
    code = screen.ended()
    return code, screen.screen()


def _clear(screen: Terminal) -> None:
    """Make the exit code before go away, for it to be told from the next."""
    screen.type("clear")
    screen.press("Enter")
    screen.hides("code=")


@pytest.mark.skipif(shutil.which("less") is None, reason="less is not installed")
def test_less_shows_the_first_page_and_what_fits_is_only_printed(screen: Terminal) -> None:
    _clear(screen)
    screen.run("ls", "cases")
    assert "city-059" not in screen.shows("city-000", "\n:")
    screen.press("G")
    screen.shows("city-059")
    screen.press("q")
    assert screen.ended() == 0
    code, seen = ran(screen, "ls", "tests")
    assert code == 0
    assert "tests/many.md" in seen


def test_the_pager_is_what_the_environment_names(screen: Terminal) -> None:
    code, seen = ran(screen, "ls", "cases", PAGER=MARKS)
    assert (code, "paged:tests/many.md" in seen) == (0, True)
    code, seen = ran(screen, "ls", "tests", PAGER="cat", EVALSTORE_PAGER=MARKS)
    assert (code, "paged:tests/many.md" in seen) == (0, True)
    code, seen = ran(screen, "ls", "tests", PAGER=MARKS, EVALSTORE_PAGER="cat")
    assert (code, "paged:" in seen, "tests/many.md" in seen) == (0, False, True)


def test_a_pager_that_is_not_installed_is_not_used(screen: Terminal) -> None:
    code, seen = ran(screen, "ls", "tests", PAGER="nowhere-to-be-found -R")
    assert (code, "tests/many.md" in seen, "not found" in seen) == (0, True, False)


def test_what_is_not_for_reading_is_not_paged(screen: Terminal) -> None:
    for arguments in (["check"], ["ls", "tests", "--no-pager"]):
        code, seen = ran(screen, *arguments, PAGER=MARKS)
        assert (code, "paged:" in seen) == (0, False)
    _clear(screen)
    screen.type(f"clear; PAGER='{MARKS}' evalstore ls tests | cat; echo code=$?=")
    screen.press("Enter")
    assert screen.ended() == 0
    assert "paged:" not in screen.screen()


def test_an_error_before_the_first_line_is_reported_without_it(screen: Terminal) -> None:
    code, seen = ran(screen, "show", "@", PAGER=MARKS)
    assert (code, "paged:" in seen, "error: unknown run '@'" in seen) == (2, False, True)


def test_leaving_it_early_ends_the_command(screen: Terminal) -> None:
    code, seen = ran(screen, "ls", "cases", "--json", "--full", PAGER="head -n 1")
    assert (code, "Traceback" in seen, "error" in seen) == (0, False, False)


def test_colours_go_through_it(screen: Terminal) -> None:
    ran(screen, "ls", "tests", PAGER="cat -v", NO_COLOR="")
    assert "^[[" in screen.screen()
    ran(screen, "ls", "tests", PAGER="cat -v", NO_COLOR="1")
    assert "^[[" not in screen.screen()
