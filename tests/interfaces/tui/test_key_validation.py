"""Keys and themes of one's own: what may be said, and how it is told when it may not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalstore.core.errors import EvalstoreError, FileProblem, WorkspaceError
from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.appearance import find_problems, normal_keys, read_appearance
from evalstore.planning.options import Location
from evalstore.workspace.settings.settings import BrowserSettings, read_settings
from tests.builders import tree


def problems(text: str) -> list[tuple[int | None, str, str | None]]:
    entries = find_problems("evalstore.yaml", read_settings(text).browser)
    return [(problem.line, problem.message, problem.hint) for problem in entries]


def test_settings_name_a_theme_and_keys() -> None:
    settings = read_settings("browser:\n  theme: nord\n  keys: {quit: 'Q, f10', help: H}\n").browser
    assert settings == BrowserSettings("nord", {"quit": "Q, f10", "help": "H"})
    assert read_settings("").browser == BrowserSettings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("browser: nord", "'browser' must be a mapping"),
        ("browser: {theme: 3}", "'theme' must be a text, not empty"),
        ("browser: {keys: [a]}", "'keys' must be a mapping"),
        ("browser: {keys: {quit: 3}}", "'quit' must be a text, not empty"),
        ("browser: {colours: nord}", "unknown field 'colours'"),
    ],
)
def test_settings_of_another_shape_are_refused(text: str, message: str) -> None:
    with pytest.raises(FileProblem) as caught:
        read_settings(text)
    assert caught.value.message == message


def test_an_unknown_name_is_reported_with_its_line_and_the_nearest_name() -> None:
    text = "browser:\n  theme: nrod\n  keys:\n    histroy.stats: s\n    quit: papedown\n"
    assert problems(text) == [
        (2, "unknown theme 'nrod'", "did you mean 'nord'?"),
        (4, "unknown action 'histroy.stats'", "did you mean 'history.stats'?"),
        (5, "'papedown' is not a key", "did you mean 'pagedown'?"),
    ]


def test_a_key_with_two_meanings_on_one_screen_is_reported() -> None:
    both = "give one of them other keys"
    assert problems("browser: {keys: {history.stats: d}}") == [
        (1, "the key 'd' would be 'history.compare' and 'history.stats' at once", both)
    ]
    assert problems("browser: {keys: {quit: j}}")
    assert problems("browser: {keys: {quit: ctrl+q}}") == [
        (1, "'ctrl+q' cannot be reassigned", "it always leaves the screen")
    ]


@pytest.mark.parametrize(
    "keys",
    [
        "{history.stats: d, history.compare: s}",
        "{cases.sort: i}",
        "{list.down: 'j,down'}",
        "{quit: '?', help: 'f2,H'}",
        "{list.left: ctrl+left}",
    ],
    ids=["a swap", "another screen", "its own", "a character", "a name"],
)
def test_keys_without_conflict_are_taken(keys: str) -> None:
    assert problems(f"browser: {{keys: {keys}}}") == []


def test_keys_are_read_as_they_are_typed() -> None:
    assert normal_keys("?, ctrl+/ ,G,space") == ("question_mark", "ctrl+slash", "G", "space")


def test_ones_own_stand_over_the_settings(tmp_path: Path) -> None:
    tree(tmp_path, {"evalstore.yaml": "browser: {theme: nord, keys: {quit: Q, help: f2}}"})
    appearance = read_appearance(Location(tmp_path), "gruvbox", ["quit=f10, !"])
    assert appearance.theme == "gruvbox"
    assert appearance.keys == {"quit": "f10,exclamation_mark", "help": "f2"}
    with pytest.raises(EvalstoreError, match="--theme: unknown theme 'grovbox'"):
        read_appearance(Location(tmp_path), "grovbox", [])
    with pytest.raises(EvalstoreError, match="'--key quit' names no keys"):
        read_appearance(Location(tmp_path), None, ["quit"])


def test_settings_that_cannot_be_read_say_nothing_here(tmp_path: Path) -> None:
    tree(tmp_path, {"evalstore.yaml": "browser: {keys: [}"})
    assert read_appearance(Location(tmp_path), None, []).theme is None


def test_check_reports_the_problems_of_browser_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tree(tmp_path, {"evalstore.yaml": "browser:\n  keys: {quti: x}\n"}))
    assert main(["check", "--json"]) == 2
    entries = json.loads(capsys.readouterr().out)["problems"]
    places = [(entry["file"], entry["line"], entry["message"]) for entry in entries]
    assert ("evalstore.yaml", 2, "unknown action 'quti'") in places
    with pytest.raises(WorkspaceError):
        read_appearance(Location(tmp_path), None, [])
