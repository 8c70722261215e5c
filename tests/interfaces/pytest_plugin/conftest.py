"""A workspace with cases of every verdict, and sessions of pytest inside this one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

# Imported once for all inner sessions: each of them forgets what it was the first to import.
from evalstore import Workspace
from evalstore.interfaces.api import workspace
from tests.builders import tree

Run = Callable[..., pytest.RunResult]

MODEL = """\
id: {id}
provider: scripted
costs: [{{costPerCall: 0.5}}]
responses:
  - {{when: English, answer: Hello!}}
  - {{when: French, answer: "{french}"}}
  - {{when: .*broken, error: {{kind: status, status: 500, message: it is broken}}}}
  - {{answer: "No\\x1b[1m idea.\\nSorry."}}
"""
HELLO = """\
---
tags: [greeting]
replacements:
  - language: [English, French]
---

# 👤

Say hello in {{language}}.

---

~~~checks
- containsAny: [Hello, Bonjour]
~~~
"""
JUDGE = """\
id: judge
provider: scripted
responses: [{when: 'Say so', answer: {pass: true}}, {answer: maybe}]
"""
OTHER = "# 👤\n\nTell me a joke.\n\n---\n\n{told}\n"
FILES = {
    "evalstore.yaml": "candidates: [good, bad]\nevaluators: [judge]\nretries: 0\n",
    "models/good.yaml": MODEL.format(id="good", french="Bonjour!"),
    "models/bad.yaml": MODEL.format(id="bad", french="Hallo!"),
    "models/judge.yaml": JUDGE,
    "tests/hello.md": HELLO,
}
"""Three cases pass, and one fails."""


@pytest.fixture(autouse=True)
def _own_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count the calls of `check` in each test anew."""
    monkeypatch.setattr(workspace, "COUNTS", workspace.CheckCounts())


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace after a complete run."""
    folder = tree(tmp_path_factory.mktemp("finished"), FILES)
    Workspace(folder).run(fail_on="none")
    return folder


@pytest.fixture
def evals(pytester: pytest.Pytester, finished: Path) -> Path:
    """A copy of the workspace before its first run, beside the tests of the inner session."""
    return tree(pytester.path / "evals", FILES)


@pytest.fixture
def rerun(pytester: pytest.Pytester, finished: Path) -> Path:
    """A copy of the workspace after its run."""
    return Path(shutil.copytree(finished, pytester.path / "evals"))


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run pytest with the plug-in in this process, with the workspace `evals`."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeini("[pytest]\nevalstore_workspace = evals\n")

    def call(*arguments: str) -> pytest.RunResult:
        plugins = ("-p", "evalstore.interfaces.pytest_plugin", "-p", "no:cacheprovider")
        return pytester.runpytest_inprocess(*plugins, *arguments)

    return call
