"""A package that is installed beside evalstore adds a check, an importer and a provider."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import evalstore
from tests.builders import tree

pytestmark = pytest.mark.extended

PACKAGE = Path(__file__).parent / "example_plugin"
FILES = {
    "evalstore.yaml": "candidates: [backwards]\n",
    "models/backwards.yaml": "id: backwards\nprovider: reverser\nproviderModelCode: letters\n",
    "tests/palindrome.md": "---\nreplacements: {text: [Never odd or even, hello]}\n---\n"
    "# 👤\n\n`{{text}}`\n\n---\n\n~~~checks\n- {type: palindrome, least: 5}\n~~~\n",
}
QUIZ = "question,answer\nolleh,Hello\n{{x}} }}y{{,{{y\nolleh,Bye\nwhat?,\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the package is installed in."""
    folder = tmp_path_factory.mktemp("plugin")
    source = shutil.copytree(PACKAGE, folder / "source")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"),
            *("--no-build-isolation", "--disable-pip-version-check"),
            *("--target", folder / "site", source),
        ],
        check=True,
        capture_output=True,
    )
    return folder / "site"


def run(
    workspace: Path, *arguments: str | Path, site: Path | None = None
) -> subprocess.CompletedProcess[str]:
    root = Path(evalstore.__file__).parents[1]
    paths = [str(item) for item in (site, root) if item is not None]
    return subprocess.run(
        [sys.executable, "-m", "evalstore", *arguments],
        cwd=workspace,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_line_knows_what_the_package_adds(installed: Path, tmp_path: Path) -> None:
    workspace = tree(tmp_path / "workspace", FILES)
    (tmp_path / "quiz.csv").write_text(QUIZ)

    done = run(workspace, "import", "quiz-csv", tmp_path / "quiz.csv", "--json", site=installed)
    imported = json.loads(done.stdout)
    assert (done.returncode, imported["rows"]) == (1, 3)
    assert [(item["line"], item["reason"]) for item in imported["left"]] == [
        (5, "it has no answer")
    ]
    assert run(workspace, "check", site=installed).returncode == 0

    done = run(workspace, "run", "--json", site=installed)
    cases = json.loads(done.stdout)["cases"]
    assert {
        (case["file"].removeprefix("tests/"), case["row"]): (case["verdict"], case["feedback"])
        for case in cases
    } == {
        ("palindrome.md", "text=Never odd or even"): ("pass", ""),
        ("palindrome.md", "text=hello"): ("fail", "expected a palindrome, found 'olleh'"),
        ("quiz/quiz.md", "answer=Hello"): ("pass", ""),
        ("quiz/quiz.md", "answer={{y"): ("pass", ""),
        ("quiz/quiz.md", "answer=Bye"): ("fail", "'Bye' is not in 'hello'"),
    }
    assert "palindrome" in run(workspace, "ls", "checks", site=installed).stdout


def test_a_model_that_the_provider_does_not_have_is_a_failure(
    installed: Path, tmp_path: Path
) -> None:
    model = FILES["models/backwards.yaml"].replace("letters", "verses")
    workspace = tree(tmp_path, {**FILES, "models/backwards.yaml": model})

    done = run(workspace, "run", "--json", site=installed)
    assert done.returncode == 3
    assert "unknown model 'verses'" in json.loads(done.stdout)["failures"][0]["message"]


def test_without_the_package_its_names_are_unknown(tmp_path: Path) -> None:
    workspace = tree(tmp_path, FILES)

    checked = run(workspace, "check")
    assert checked.returncode == 2
    assert "palindrome" in checked.stdout + checked.stderr
    imported = run(workspace, "import", "quiz-csv", "x.csv")
    assert imported.returncode == 2
    assert "unknown format 'quiz-csv'" in imported.stderr


def test_the_package_imports_only_the_stable_names() -> None:
    modules = {
        node.module
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("evalstore")
    }
    assert modules == {"evalstore.plugins"}
