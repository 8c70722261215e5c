"""The workflows in the docs, and the action: checked by the programs that check such files."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
AROUND_STEPS = "on: push\njobs:\n  checks:\n    runs-on: ubuntu-latest\n    steps:\n"
"""What makes a workflow of steps."""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the action, and each workflow of the docs, which uses this action."""
    root = tmp_path_factory.mktemp("repository")
    workflows = root / ".github/workflows"
    workflows.mkdir(parents=True)
    (root / ".git").mkdir()  # or actionlint does not look for the action
    shutil.copy(ROOT / "action.yml", root)
    page = (ROOT / "docs/recipes/ci.md").read_text(encoding="utf-8")
    for number, block in enumerate(BLOCK.findall(page)):
        text = block.replace("OWNER/evalstore@main", "./")
        if "# .gitlab-ci.yml" in text:
            (root / f"{number}.gitlab-ci.yml").write_text(text, encoding="utf-8")
        elif text.lstrip().startswith("- "):
            steps = textwrap.indent(textwrap.dedent(text), "      ")
            (workflows / f"{number}.yml").write_text(AROUND_STEPS + steps, encoding="utf-8")
        elif "\njobs:" in text:
            (workflows / f"{number}.yml").write_text(text, encoding="utf-8")
    assert len(list(workflows.iterdir())) == 4
    assert len(list(root.glob("*.gitlab-ci.yml"))) == 2
    return root


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("github-workflows", ".github/workflows/*.yml"),
        ("github-actions", "action.yml"),
        ("gitlab-ci", "*.gitlab-ci.yml"),
    ],
)
def test_the_files_follow_the_schemas_of_their_services(
    repository: Path, schema: str, pattern: str
) -> None:
    checker: Any = importlib.import_module("check_jsonschema")
    options = ["--builtin-schema", f"vendor.{schema}"]
    if schema == "gitlab-ci":
        options += ["--data-transform", "gitlab-ci"]
    files = sorted(str(path) for path in repository.glob(pattern))
    assert files
    done = CliRunner().invoke(checker.main, [*options, *files])
    assert (done.exit_code, done.output) == (0, "ok -- validation done\n")


def test_actionlint_finds_nothing(repository: Path) -> None:
    beside = shutil.which("actionlint", path=str(Path(sys.executable).parent))
    program = beside or shutil.which("actionlint")
    if program is None:
        pytest.skip("actionlint is not installed")
    files = sorted(str(path) for path in repository.glob(".github/workflows/*.yml"))
    # Without the linters of shell and Python code, which are there or not.
    options = ["-no-color", "-shellcheck=", "-pyflakes="]
    done = subprocess.run(
        [program, *options, *files], cwd=repository, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
