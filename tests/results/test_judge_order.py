"""Judges are in one order, that of the settings, wherever their verdicts are listed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evalstore.interfaces.cli.main import main
from tests.builders import tree
from tests.interfaces.cli.conftest import JUDGE, ONE, WEATHER

NAMES = ("scripted/strict", "scripted/kind", "scripted/odd")


def test_the_judges_of_every_answer_are_in_the_order_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tree(
        tmp_path,
        {
            "evalstore.yaml": f"candidates: [scripted/one]\nevaluators: [{', '.join(NAMES)}]\n",
            "models/one.yaml": ONE,
            "tests/weather.md": WEATHER,
            **{
                f"models/{name.rpartition('/')[2]}.yaml": JUDGE.replace("scripted/judge", name)
                for name in NAMES
            },
        },
    )
    for again in ((), ("--refresh",)):
        main(["run", "--quiet", *again])
        capsys.readouterr()
        for city in ("Oslo", "Rome"):
            assert main(["show", f"tests/weather.md::city={city}"]) == 0
            judges = re.findall(r"^\w+  by (\S+)", capsys.readouterr().out, re.MULTILINE)
            assert judges[: len(NAMES)] == [*NAMES]
