"""Plain values of options are what typer makes of them, and pydantic is not loaded for them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.exceptions import TyperException

from evalstore.interfaces.cli.command_line import read_plain_values
from evalstore.interfaces.cli.main import commands
from tests.builders import tree

VALUES = (
    *(
        "",
        "a",
        "4",
        "-4",
        "+4",
        " 4",
        "4.0",
        "4.5",
        "0.5",
        "1e3",
        "١",
        "1_000",
        "99999999999",
        "nan",
    ),
    *("table", "TABLE", "json", "pass", "failure", "auto", ".", "nowhere", "é\udcff", "a\0b"),
    *(None, 0, 4, 4.5, True, False, (), ("a", "b"), ["a", "4"], ("a", 4)),
)


def parameters() -> Iterator[Any]:
    """A parameter of each kind that the commands have."""
    program: Any = commands()
    kinds: dict[object, Any] = {}
    for command in (program, *program.commands.values()):
        for parameter in command.params:
            info = parameter.type_descriptor.parameter_info
            kind = str(parameter.type_descriptor.annotation), type(parameter), parameter.nargs
            kinds.setdefault((*kind, parameter.multiple, info.min, info.max), parameter)
    yield from kinds.values()


def read(parameter: Any, value: Any) -> tuple[type, str]:
    try:
        result = parameter.get_runtime_param().coerce(value, param=parameter, ctx=None)
    except (TyperException, ValueError, TypeError) as error:
        return type(error), str(error)
    return type(result), repr(result)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_is_read_as_typer_reads_it(value: Any) -> None:
    for parameter in parameters():
        parameter._runtime_param = None
        expected = read(parameter, value)
        parameter._runtime_param = None
        read_plain_values([parameter])
        assert read(parameter, value) == expected, parameter.name


def test_pydantic_is_not_loaded_for_plain_values(tmp_path: Path) -> None:
    tree(tmp_path, {"evalstore.yaml": "candidates: []\n"})
    code = (
        "import sys; from evalstore.interfaces.cli.main import main;"
        "main(sys.argv[1:]); assert 'pydantic' not in sys.modules"
    )
    line = ["-C", str(tmp_path), "--color", "never", "log", "-n", "3", "-o", "json"]
    ended = subprocess.run([sys.executable, "-c", code, *line], capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b""), ended
