"""A run with `--lf` or `--refresh` says first what it uses again."""

from __future__ import annotations

from tests.interfaces.cli.conftest import Echo, Evalstore
from tests.interfaces.cli.status.test_explained_cases import write


def test_a_run_says_first_what_it_uses_again(echo: Echo, evalstore: Evalstore) -> None:
    write("20 euros")
    write(file="tests/u.md")
    assert "reused" not in evalstore("run").stderr
    assert evalstore("run", "--lf").stderr.startswith(
        "only cases that did not pass in their last run: 0 answers asked, 1 reused\n"
    )
    assert evalstore("run", "--refresh").stderr.startswith(
        "stored answers are asked for again: 2 answers asked, 0 reused\n"
    )
