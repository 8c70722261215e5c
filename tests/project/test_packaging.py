"""The wheel works outside the checkout, with nothing but what it asks for."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.builders import tree

pytestmark = pytest.mark.extended

PROJECT = Path(__file__).parent.parent.parent
SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
PAGES = sorted(
    str(path.relative_to(PROJECT))
    for path in (*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md"))
)


def image_files() -> list[str]:
    """The files and folders that `.dockerignore` does not leave out."""
    lines = (PROJECT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in lines
    return [line.removeprefix("!") for line in lines if line.startswith("!")]


def image_steps() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, each with its arguments on one line."""
    text = (PROJECT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from what `.dockerignore` lets into the build of the image."""
    source = tmp_path_factory.mktemp("source")
    for name in image_files():
        path = PROJECT / name
        if path.is_dir():
            ignored = shutil.ignore_patterns(".evalstore", "__pycache__")
            shutil.copytree(path, source / name, ignore=ignored)
        else:
            (source / name).parent.mkdir(exist_ok=True)
            shutil.copy(path, source / name)
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


def test_the_step_of_the_image_that_runs_the_example_passes_with_the_wheel(
    program: list[str], tmp_path: Path
) -> None:
    (step,) = [rest for name, rest in image_steps() if name == "RUN" and "--example" in rest]
    assert step.count("/tmp/example") == 4
    command = tree(tmp_path, {"bin/evalstore": f'#!/bin/sh\nexec {shlex.join(program)} "$@"\n'})
    (command / "bin/evalstore").chmod(0o755)
    ran = subprocess.run(
        ["sh", "-ec", step.replace("/tmp/example", str(tmp_path / "example"))],
        cwd=tmp_path,
        env={"PATH": f"{command / 'bin'}:{os.environ['PATH']}", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "68 new answers, 3 recorded, 23 new verdicts by checks and 35 by models" in ran.stdout
    assert ran.stdout.rstrip().endswith("all is well")
    assert not (tmp_path / "example").exists()


def test_the_image_installs_extras_that_exist_and_runs_as_nobody_in_particular() -> None:
    steps = image_steps()
    extras = re.findall(r"\[(.+?)\]\"", " ".join(rest for name, rest in steps if name == "RUN"))
    known = SETTINGS["project"]["optional-dependencies"]
    assert [extra for each in extras for extra in each.split(",")] == ["mcp", "similarity"]
    assert {"mcp", "similarity"} <= known.keys()
    assert all((PROJECT / name).exists() for name in image_files())
    names = [name for name, _ in steps]
    assert ("USER", "1000") in steps[: names.index("ENTRYPOINT")]
    assert ("ENTRYPOINT", '["evalstore"]') in steps


def test_the_page_about_installing_lists_every_extra() -> None:
    page = (PROJECT / "docs/install.md").read_text(encoding="utf-8")
    table = page.partition("## Extras")[2].partition("\n\n## ")[0]
    extras = SETTINGS["project"]["optional-dependencies"].keys() - {"dev"}
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == extras


def test_no_file_names_an_index_of_packages() -> None:
    address = re.compile(r"index-url|find-links|pythonhosted|/simple\b|trusted-host")
    names = ["pyproject.toml", "constraints.txt", "Dockerfile", "Makefile", ".ci/run", *PAGES]
    texts = {name: (PROJECT / name).read_text(encoding="utf-8") for name in names}
    assert {
        name: address.findall(text) for name, text in texts.items() if address.search(text)
    } == {}


def test_the_changelog_has_the_form_of_keep_a_changelog() -> None:
    text = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert text.startswith("# Changelog\n")
    assert "https://keepachangelog.com/en/1.1.0/" in text
    versions = re.findall("^## (.*)$", text, re.MULTILINE)
    assert versions[0] == "[Unreleased]"
    released = r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d"
    assert [version for version in versions[1:] if not re.fullmatch(released, version)] == []
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall("^### (.*)$", text, re.MULTILINE)) <= kinds


def test_the_wheel_prints_the_header_of_an_empty_list(program: list[str], tmp_path: Path) -> None:
    assert run(program, tmp_path, "init").returncode == 0
    assert run(program, tmp_path, "log", "-o", "csv").stdout.startswith("run,started,ended")


def test_the_wheel_has_no_development_tools(program: list[str], tmp_path: Path) -> None:
    tools = "('pytest', 'mypy', 'hypothesis')"
    probe = f"import importlib.util as u; print([n for n in {tools} if u.find_spec(n)])"
    ran = subprocess.run(
        [program[0], "-I", "-c", probe], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert ran.stdout.strip() == "[]"
