"""`push --exclude-tag`: nothing of cases with the tag leaves the machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Evalstore
from tests.sharing import stores

PRIVATE = """\
---
tags: [{tags}]
---

# 👤

Forecast for the SECRET{number} plant, which makes turbines and is near the river?
What do the wind, the rain and the sun do there on an ordinary Monday in winter?

---

The answer must be warm and mention SECRET{number}.
"""
SHARED_QUESTION = """\
---
tags: [{tags}]
---

# 👤

How is Rome?

---

{instructions}
"""
QUIET = ("--fail-on", "none", "-q")


@pytest.fixture
def shared(workspace: Path, evalstore: Evalstore) -> Path:
    """A workspace with private tests: one got its tag late, and was edited and renamed since.

    Another has the question of a test that is not private, with other instructions.
    """
    test, same = workspace / "tests/plan.md", workspace / "tests/same.md"
    instructions = "The answer must be warm, as the SECRET plant needs it."
    for number, tags in enumerate(("", "private", "private, weather")):
        test.write_text(PRIVATE.format(tags=tags, number=number))
        same.write_text(SHARED_QUESTION.format(tags=tags, instructions=instructions))
        assert evalstore("run", *QUIET).exit_code == 0
    test.rename(workspace / "tests/renamed.md")
    same.write_text(SHARED_QUESTION.format(tags="", instructions="The answer must be short."))
    evalstore("run", *QUIET)
    evalstore("remote", "add", "origin", "shared")
    return workspace


def _pull(workspace: Path, evalstore: Evalstore, tmp_path: Path) -> tuple[Path, str]:
    """Pull into an empty store; returns it with all that it has as text."""
    store = tmp_path / "other.db"
    assert evalstore("pull", "--store", str(store)).exit_code == 0
    assert evalstore("fsck", "--store", str(store)).exit_code == 0
    with stores.opened(store) as opened:
        return store, "\n".join(row["content"] for _, row in opened.iterate())


def test_no_version_of_a_tagged_case_is_pushed(
    shared: Path, evalstore: Evalstore, tmp_path: Path
) -> None:
    planned = evalstore("push", "--exclude-tag", "private", "--dry-run")
    assert planned.stdout == (
        "would push 2 answers, 3 judgements, 8 other versions to origin (shared)\n"
    )
    pushed = evalstore("push", "--exclude-tag", "private", "--json")
    assert json.loads(pushed.stdout)["excludedRuns"] == 4
    again = evalstore("push", "--exclude-tag", "private")
    assert again.stdout == "nothing to push to origin (shared)\n"
    assert again.stderr == ("4 runs stay here: their workspace has cases with an excluded tag\n")
    store, text = _pull(shared, evalstore, tmp_path)
    assert "SECRET" not in text
    (shared / "tests/renamed.md").unlink()
    ran = evalstore("run", *QUIET, "--store", str(store), "--json")
    assert json.loads(ran.stdout)["asked"] == 0


def test_runs_without_such_cases_are_pushed(
    workspace: Path, evalstore: Evalstore, tmp_path: Path
) -> None:
    evalstore("run", *QUIET)
    (workspace / "tests/plan.md").write_text(PRIVATE.format(tags="private", number=1))
    evalstore("run", *QUIET)
    evalstore("remote", "add", "origin", "shared")
    since = evalstore("push", "--exclude-tag", "private", "--since", "@~1")
    assert since.stdout.startswith("pushed 2 answers, 2 judgements, ")
    pushed = evalstore("push", "--exclude-tag", "private")
    assert pushed.stdout.startswith("pushed 1 run, 4 other versions to ")
    assert pushed.stderr == "1 run stays here: its workspace has cases with an excluded tag\n"
    assert "SECRET" not in _pull(workspace, evalstore, tmp_path)[1]
    (workspace / "tests/plan.md").write_text(PRIVATE.format(tags="", number=1))
    evalstore("push", "--exclude-tag", "weather")
    assert "SECRET" in _pull(workspace, evalstore, tmp_path)[1]


def test_a_remote_excludes_tags_by_itself(
    shared: Path, evalstore: Evalstore, tmp_path: Path
) -> None:
    settings = shared / "evalstore.yaml"
    text = settings.read_text()
    remote = "{{address: shared, excludeTags: [{}]}}"
    settings.write_text(text.replace("shared", remote.format("private")))
    assert evalstore("push").stdout.startswith("pushed 2 answers, 3 judgements, 8 other versions")
    ran = evalstore("run", "--remote", "origin", "--fail-on", "none")
    assert "nothing to push to origin (shared)\n5 runs stay here: their" in ran.stderr
    assert "to push  nothing\n" in evalstore("remote", "show").stdout
    assert "SECRET" not in _pull(shared, evalstore, tmp_path)[1]
    settings.write_text(text.replace("shared", remote.format("privat")))
    assert evalstore("push", "-n").stderr == (
        "warning: no case has the tag 'privat', which the remote excludes\n"
    )


def test_a_bundle_excludes_tags(shared: Path, evalstore: Evalstore) -> None:
    written = evalstore("bundle", "create", "some.bundle", "--exclude-tag", "private")
    assert written.stdout.startswith("wrote 2 answers, 3 judgements, 8 other versions to ")
    assert written.stderr == "4 runs stay here: their workspace has cases with an excluded tag\n"
    refused = evalstore("bundle", "create", "b", "--exclude-tag", "private", "--since", "@~1")
    assert refused.exit_code == 2
    assert "cannot be combined with '--exclude-tag' in a bundle" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ["--exclude-tag", "privat"],
            "no case has the tag 'privat'\nhint: did you mean 'private'?",
        ),
        (["--exclude-tag", "private", "--with-failures"], "'--with-failures' cannot be combined"),
    ],
)
def test_what_would_be_guessed_is_refused(
    shared: Path, evalstore: Evalstore, arguments: list[str], error: str
) -> None:
    ran = evalstore("push", *arguments)
    assert ran.exit_code in (2, 5)
    assert f"error: {error}" in ran.stderr
    assert not (shared / "shared").exists()


def test_tags_that_cannot_be_read_are_not_guessed(shared: Path, evalstore: Evalstore) -> None:
    (shared / "tests/renamed.md").write_text("---\ntags: [private\n---\n\n# 👤\n\nHello\n")
    ran = evalstore("push", "--exclude-tag", "private")
    assert ran.exit_code == 2
    assert "tests/renamed.md" in ran.stderr
    assert not (shared / "shared").exists()
