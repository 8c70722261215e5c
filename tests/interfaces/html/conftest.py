"""The command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from evalstore.interfaces.cli.main import main


class Output(NamedTuple):
    """What a command printed."""

    stdout: str
    stderr: str


Evalstore = Callable[..., Output]


@pytest.fixture
def evalstore(capsys: pytest.CaptureFixture[str]) -> Evalstore:
    """Run one command that ends with `exit_code`."""

    def run(*arguments: str, exit_code: int = 0) -> Output:
        capsys.readouterr()
        assert main(arguments) == exit_code
        return Output(*capsys.readouterr())

    return run
