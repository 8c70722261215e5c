"""`push --exclude-tag`: nothing of cases with the tag leaves the machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.remotes import stores

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
EXCLUDED = "may show excluded tests\n"
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
        "would push 1 answer, 1 verdict, 6 other versions to origin (shared)\n"
    )
    pushed = evalstore("push", "--exclude-tag", "private", "--json")
    assert json.loads(pushed.stdout)["excludedRuns"] == 4
    again = evalstore("push", "--exclude-tag", "private")
    assert again.stdout == "nothing to push to origin (shared)\n"
    assert again.stderr == (f"4 runs stay here: they {EXCLUDED}")
    shown = evalstore("remote", "show")
    assert "\nto push  4 runs, " in shown.stdout
    assert shown.stderr == (
        'the last push used --exclude-tag private; without it, "evalstore push" copies what that '
        'push left out (set "excludeTags" of the remote in evalstore.yaml to leave it out always)\n'
    )
    document = json.loads(evalstore("remote", "show", "--json").stdout)
    assert document["lastExcludedTags"] == ["private"]
    store, text = _pull(shared, evalstore, tmp_path)
    assert "SECRET" not in text
    (shared / "tests/renamed.md").unlink()
    ran = evalstore("run", *QUIET, "--store", str(store), "--json")
    assert json.loads(ran.stdout)["asked"] == 1  # Rome: a private test has had that question


TAGGED = "---\ntags: [private]\n---\n"
SECRET = "\n# 👤\n\nThe SECRET {}?\n\n---\n\nThe answer must be {}.\n"
ROWS = (
    "---\nreplacements: {{city: [{}]}}\n---\n\n"
    "# 👤\n\nOf {{{{city}}}}?\n\n---\n\nThe answer must be warm.\n"
)


@pytest.mark.parametrize(
    "steps",
    [
        [  # another file takes the place of the private one
            {"tests/p.md": SECRET.format("wind", "SECRET")},
            {"tests/p.md": "\n# 👤\n\nAnd Bonn?\n\n---\n\nThe answer must be warm.\n"}
            | {"tests/q.md": TAGGED + SECRET.format("wind", "SECRET")},
        ],
        [  # two files with one question are moved
            {f"tests/{name}.md": SECRET.format("rain", f"SECRET {name}") for name in "ab"},
            {f"tests/{name}.md": None for name in "ab"}
            | {f"tests/in/{n}.md": TAGGED + SECRET.format("rain", f"SECRET {n}") for n in "ab"},
        ],
        [  # moved and edited
            {"tests/p.md": SECRET.format("wind", "SECRET")},
            {"tests/p.md": None, "tests/q.md": TAGGED + SECRET.format("sun", "SECRET")},
        ],
        [  # a row gets a file of its own
            {"tests/p.md": ROWS.format("Bonn, SECRET")},
            {"tests/p.md": ROWS.format("Bonn")}
            | {"tests/q.md": ROWS.format("SECRET").replace("---\n", TAGGED[:-4], 1)},
        ],
        [  # an old commit without the tag
            {"tests/p.md": TAGGED + SECRET.format("wind", "SECRET")},
            {"tests/p.md": SECRET.format("wind", "SECRET")},
            {"tests/p.md": None},
        ],
        [  # only named by a run that left out the file
            {"tests/SECRET.md": TAGGED + "\n# 👤\n\n{{none}}\n"},
            {"tests/SECRET.md": TAGGED + "\n# 👤\n\nHello?\n\n---\n\nThe answer must be warm.\n"},
        ],
    ],
)
def test_nothing_that_became_private_is_pushed(
    workspace: Path, evalstore: Evalstore, tmp_path: Path, steps: list[dict[str, str | None]]
) -> None:
    for step in steps:
        for name, text in step.items():
            if text is None:
                (workspace / name).unlink()
            else:
                tree(workspace, {name: text})
        evalstore("run", *QUIET, "--keep-going", "-k", "weather or SECRET")
        evalstore("run", *QUIET)
    for path in sorted((workspace / "tests").rglob("q.md")):
        name = path.relative_to(workspace).as_posix()
        evalstore("label", name, "fail", "-m", "SECRET", "--as", "Ann")
    evalstore("remote", "add", "origin", "shared")
    pushed = evalstore("push", "--exclude-tag", "private")
    assert pushed.exit_code == 0, pushed.stderr
    assert "SECRET" not in _pull(workspace, evalstore, tmp_path)[1]


def test_a_label_on_a_question_that_is_also_private_is_not_pushed(
    workspace: Path, evalstore: Evalstore, tmp_path: Path
) -> None:
    same = "\n# 👤\n\nHow is Rome?\n\n---\n\nThe answer must be warm.\n"
    tree(workspace, {"tests/private.md": TAGGED + same})
    evalstore("run", *QUIET)
    labelled = evalstore("label", "tests/private.md", "fail", "-m", "SECRET", "--as", "Ann")
    assert labelled.exit_code == 0, labelled.stderr
    evalstore("remote", "add", "origin", "shared")
    pushed = evalstore("push", "--exclude-tag", "private")
    assert pushed.stdout.startswith("pushed 1 answer, 1 verdict, ")
    assert "SECRET" not in _pull(workspace, evalstore, tmp_path)[1]


def test_runs_without_such_cases_are_pushed(
    workspace: Path, evalstore: Evalstore, tmp_path: Path
) -> None:
    evalstore("run", *QUIET)
    (workspace / "tests/plan.md").write_text(PRIVATE.format(tags="private", number=1))
    evalstore("run", *QUIET)
    evalstore("remote", "add", "origin", "shared")
    since = evalstore("push", "--exclude-tag", "private", "--since", "@~1")
    assert since.stdout.startswith("pushed 2 answers, 2 verdicts, ")
    pushed = evalstore("push", "--exclude-tag", "private")
    assert pushed.stdout.startswith("pushed 1 run, 5 other versions to ")
    assert pushed.stderr == f"1 run stays here: it {EXCLUDED}"
    assert "SECRET" not in _pull(workspace, evalstore, tmp_path)[1]
    (workspace / "tests/plan.md").write_text(PRIVATE.format(tags="", number=1))
    evalstore("push", "--exclude-tag", "weather")
    assert "SECRET" in _pull(workspace, evalstore, tmp_path)[1]
    evalstore("push")  # now the remote has all runs: none stays here
    assert evalstore("push", "--exclude-tag", "weather").stderr == ""


def test_a_remote_excludes_tags_by_itself(
    shared: Path, evalstore: Evalstore, tmp_path: Path
) -> None:
    settings = shared / "evalstore.yaml"
    text = settings.read_text()
    remote = "{{address: shared, excludeTags: [{}]}}"
    settings.write_text(text.replace("shared", remote.format("private")))
    assert evalstore("push").stdout.startswith("pushed 1 answer, 1 verdict, 6 other versions")
    ran = evalstore("run", "--remote", "origin", "--fail-on", "none")
    assert "nothing to push to origin (shared)\n5 runs stay here: they" in ran.stderr
    shown = evalstore("remote", "show")
    assert "to push  nothing\n" in shown.stdout
    assert shown.stderr == f"5 runs stay here: they {EXCLUDED}"
    assert "SECRET" not in _pull(shared, evalstore, tmp_path)[1]
    settings.write_text(text.replace("shared", remote.format("privat")))
    refused = evalstore("push", "-n")
    assert (refused.exit_code, refused.stderr) == (
        2,
        "error: no case has the tag 'privat', which the remote excludes\n"
        "hint: did you mean 'private'?\n",
    )
    settings.write_text(text.replace("shared", remote.format("customer")))
    assert evalstore("push", "-n").stderr.startswith(
        "warning: no case has the tag 'customer', which the remote excludes\n"
    )


def test_a_bundle_excludes_tags(shared: Path, evalstore: Evalstore) -> None:
    written = evalstore("push", "some.bundle", "--exclude-tag", "private")
    assert written.stdout.startswith("pushed 1 answer, 1 verdict, 6 other versions to ")
    assert written.stderr == f"4 runs stay here: they {EXCLUDED}"
    refused = evalstore("push", "b.bundle", "--exclude-tag", "private", "--since", "@~1")
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
    evalstore("push", "--since", "@~1")
    settings = shared / "evalstore.yaml"
    excluding = "{address: shared, excludeTags: [private]}"
    settings.write_text(settings.read_text().replace("shared", excluding))
    shown = evalstore("remote", "show")
    assert shown.exit_code == 0, shown.stderr
    assert "remote   origin: shared\nhas      1 run, " in shown.stdout
    assert "\nto push  at most 3 runs, " in shown.stdout
    assert ", with excluded tests: the tests have errors\n" in shown.stdout
    assert shown.stderr == '("evalstore push -n" says what to do)\n'
