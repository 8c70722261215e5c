"""A browser for all tests of a module, and the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from evalstore.cli.main import main
from tests.html_report.pages import Page, browsing


class Output(NamedTuple):
    """What a command printed."""

    stdout: str
    stderr: str


Evalstore = Callable[..., Output]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab of a browser."""
    with browsing(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def evalstore(capsys: pytest.CaptureFixture[str]) -> Evalstore:
    """Run one command that ends with `exit_code`."""

    def run(*arguments: str, exit_code: int = 0) -> Output:
        capsys.readouterr()
        assert main(arguments) == exit_code
        return Output(*capsys.readouterr())

    return run
