"""The wheel works outside of the checkout, with nothing but what it asks for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

PROJECT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of what git would hand out."""
    source = tmp_path_factory.mktemp("source") / "evalstore"
    shutil.copytree(
        PROJECT,
        source,
        ignore=shutil.ignore_patterns(".*", "__pycache__", "dist", "build", "*.egg-info"),
    )
    target = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", target, source],
        check=True,
        capture_output=True,
    )
    return next(target.glob("*.whl"))


def needed(name: str, extras: set[str], seen: set[str]) -> Iterator[metadata.Distribution]:
    """A distribution's requirements, and theirs."""
    for text in metadata.distribution(name).requires or ():
        item = Requirement(text)
        if item.marker and not any(
            item.marker.evaluate({"extra": extra}) for extra in extras | {""}
        ):
            continue
        if item.name.lower() not in seen:
            seen.add(item.name.lower())
            yield metadata.distribution(item.name)
            yield from needed(item.name, item.extras, seen)


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command in an environment that has the wheel and what it requires, and no more.

    The requirements are linked from this environment instead of downloaded again.
    """
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=False, symlinks=True)
    site = next((folder / "lib").glob("python*")) / "site-packages"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"),
            *("--disable-pip-version-check", "--target", site, wheel),
        ],
        check=True,
    )
    for distribution in needed("evalstore", set(), {"evalstore"}):
        for top in {file.parts[0] for file in distribution.files or () if file.parts[0] != ".."}:
            source, target = Path(str(distribution.locate_file(top))), site / top
            if not target.exists() and source.exists() and top != "__pycache__":
                target.symlink_to(source)
    return [str(folder / "bin" / "python"), "-I", "-m", "evalstore"]


def run(program: list[str], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return subprocess.run(
        [*program, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wheel_makes_runs_and_explains_a_workspace(program: list[str], tmp_path: Path) -> None:
    assert run(program, tmp_path, "init").returncode == 0
    ran = run(program, tmp_path, "run", "--json")
    assert (ran.returncode, ran.stderr) == (1, "")
    assert json.loads(ran.stdout)["verdicts"] == {
        "pass": 1,
        "fail": 1,
        "undecided": 0,
        "error": 0,
        "pending": 0,
    }
    status = run(program, tmp_path, "status")
    assert status.stdout.startswith("Nothing to do: 2 answers")


def test_the_wheel_carries_the_example(program: list[str], tmp_path: Path) -> None:
    assert run(program, tmp_path, "init", "--example", "ex").returncode == 0
    assert run(program, tmp_path, "-C", "ex", "run", "--fail-on", "none").returncode == 0
    assert run(program, tmp_path, "-C", "ex", "fsck").returncode == 0


def test_the_wheel_has_no_development_tools(program: list[str], tmp_path: Path) -> None:
    tools = "('pytest', 'mypy', 'hypothesis')"
    probe = f"import importlib.util as u; print([n for n in {tools} if u.find_spec(n)])"
    ran = subprocess.run(
        [program[0], "-I", "-c", probe], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert ran.stdout.strip() == "[]"
