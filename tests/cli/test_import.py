"""`import`: what it writes, keeps and says."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Evalstore


def test_an_unknown_format_is_told_with_the_nearest_one(
    workspace: Path, evalstore: Evalstore
) -> None:
    ran = evalstore("import", "prompfoo", ".")
    assert (ran.exit_code, ran.stderr) == (
        2,
        "error: there is no format 'prompfoo'\nhint: did you mean 'promptfoo'?\n",
    )
