"""Odd calls end with an exit code that is documented, and never with a traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalstore.interfaces.cli.main import commands, main
from tests.hostile.conftest import CALLS

DOCUMENTED = frozenset({0, 1, 2, 3, 4, 5, 6, 130})
ODD = {
    "long": "a" * 5000,
    "long path": "a/" * 2500,
    "not UTF-8": "\udc80",
    "not UTF-8 path": "tests/\udc80.md",
    "huge number": "9" * 30,
    "folder": ".",
    "below a file": "tests/weather.md/x",
    "empty": "",
    "NUL": "a\0b",
    "control characters": "\x1b[31m\r\n\u202e",
}


GROUP: Any = commands()


def parameters() -> list[Any]:
    """The name of each command with each of its parameters that takes a value.

    What `status` and `run` share is taken once.
    """
    actual = {("", param.name): ("", param) for param in GROUP.params if not is_flag(param)}
    for name, command in GROUP.commands.items():
        for param in command.params:
            if not is_flag(param):
                group = "status" if name == "run" else name
                actual.setdefault((group, param.name), (name, param))
    return [pytest.param(*pair, id=f"{pair[0]} {pair[1].opts[-1]}") for pair in actual.values()]


def is_flag(parameter: Any) -> bool:
    return bool(getattr(parameter, "is_flag", False))


def call(name: str, parameter: Any, value: str) -> list[str]:
    """The arguments of a command with a value for one of its parameters."""
    if not name:
        return [parameter.opts[-1], value, "status"]
    arguments = list(CALLS.get(name, ()))
    if parameter.param_type_name == "option":
        return [name, *arguments, parameter.opts[-1], value]
    place = [
        param.name for param in GROUP.commands[name].params if param.param_type_name == "argument"
    ].index(parameter.name)
    return [name, *arguments[:place], "--", value, *arguments[place + 1 :]]


@pytest.mark.parametrize(("name", "parameter"), parameters())
@pytest.mark.usefixtures("after_a_run")
def test_odd_values_are_refused_or_taken(
    name: str, parameter: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    for odd, value in ODD.items():
        exit_code = main(call(name, parameter, value))
        output = capsys.readouterr().err
        assert (exit_code, "Traceback" in output) == (exit_code, False), (odd, output[-2000:])
        assert exit_code in DOCUMENTED, odd


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("log", "\udc80.md"), "error: an argument is not UTF-8\n"),
        (("label", *CALLS["label"], "--as", "\udc80"), "error: an argument is not UTF-8\n"),
        (("diff", "a\0b"), "error: an argument holds a NUL character\n"),
    ],
)
@pytest.mark.usefixtures("workspace")
def test_an_argument_that_no_file_and_no_store_can_hold_is_refused(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["run", "-q"])
    capsys.readouterr()
    assert main(arguments) == 2
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("arguments", [("diff",), ("log",), ("--store",), ("init",)])
@pytest.mark.usefixtures("workspace")
def test_a_name_that_is_too_long_is_reported_in_short(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    rest = ("status",) if arguments == ("--store",) else ()
    assert main([*arguments, "a" * 5000, *rest]) == 2
    output = capsys.readouterr().err
    assert output.startswith("error: '")
    assert output.endswith("…': File name too long\n")
    assert len(output) < 200


@pytest.mark.one_database("the name of a file")
def test_a_store_with_a_name_that_is_too_long_is_reported(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (workspace / "evalstore.yaml").write_text(f"store: {'a' * 5000}\n")
    assert main(["status"]) == 2
    assert capsys.readouterr().err.endswith("…': File name too long\n")
