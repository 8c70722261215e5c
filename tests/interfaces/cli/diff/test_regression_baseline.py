"""`--fail-on regression` compares with the history of the present files alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders import tree
from tests.interfaces.cli.conftest import Echo, Evalstore
from tests.interfaces.cli.diff.test_regressions import GATE
from tests.interfaces.cli.status.test_explained_cases import write
from tests.workspace.git.test_status import git


def commit(name: str) -> None:
    git(Path(), "add", "-A", "--", "tests", "evalstore.yaml")
    git(Path(), "commit", "-q", "--allow-empty", "-m", name)


@pytest.fixture
def main(echo: Echo, evalstore: Evalstore) -> Evalstore:
    """A checkout whose main branch has a case that fails, after a run."""
    git(Path(), "init", "-q", "-b", "main")
    write("20 euros")
    commit("main")
    evalstore("run", "-q")
    return evalstore


def pass_on_a_branch(evalstore: Evalstore) -> None:
    git(Path(), "checkout", "-qb", "topic")
    write()
    commit("topic")
    assert evalstore("run", "-q").exit_code == 0


def test_a_pass_of_another_branch_leaves_main_green(main: Evalstore) -> None:
    pass_on_a_branch(main)
    git(Path(), "checkout", "-q", "main")
    assert main(*GATE).stdout.endswith("gate passed\n")
    assert main(*GATE, "--refresh").exit_code == 0


def test_the_first_run_of_a_commit_is_compared_with_a_run_before_it(
    echo: Echo, evalstore: Evalstore
) -> None:
    git(Path(), "init", "-q", "-b", "main")
    git(Path(), "commit", "-q", "--allow-empty", "-m", "first")
    write()
    assert evalstore("run", "-q").exit_code == 0  # of files that are not committed
    write("20 euros")
    commit("breaks")
    assert evalstore(*GATE).exit_code == 1


def test_a_commit_on_main_is_compared_with_main(main: Evalstore) -> None:
    pass_on_a_branch(main)
    git(Path(), "checkout", "-q", "main")
    write("30 euros")
    commit("still fails")
    assert main(*GATE).stdout.endswith("gate passed\n")


def test_an_edit_in_a_submodule_that_is_not_committed_accepts_nothing(
    echo: Echo, evalstore: Evalstore
) -> None:
    def commit_both(name: str) -> None:
        git(Path("tests"), "add", "-A")
        git(Path("tests"), "commit", "-q", "-m", name)
        git(Path(), "-c", "advice.addEmbeddedRepo=false", "add", "tests", "evalstore.yaml")
        git(Path(), "commit", "-q", "-m", name)

    write()
    for folder in (Path(), Path("tests")):
        git(folder, "init", "-q", "-b", "main")
    commit_both("main")
    assert evalstore("run", "-q").exit_code == 0
    write("20 euros")
    assert evalstore("run", "-q").exit_code == 1
    commit_both("breaks")
    assert evalstore(*GATE).exit_code == 1


def test_a_failure_of_files_that_may_be_edited_is_not_accepted(
    echo: Echo, evalstore: Evalstore
) -> None:
    """Behind a filter of git, which is not run, it is not known whether files have changes."""
    git(Path(), "init", "-q", "-b", "main")
    Path("tests").mkdir(exist_ok=True)
    Path("tests/.gitattributes").write_text("*.md filter=none\n")
    write()
    commit("main")
    assert evalstore("run", "-q").exit_code == 0
    write("20 euros")
    assert evalstore("run", "-q").exit_code == 1
    commit("breaks")
    assert evalstore(*GATE).exit_code == 1


def test_an_undone_edit_leaves_the_gate_green(echo: Echo, evalstore: Evalstore) -> None:
    write("20 euros")
    evalstore("run", "-q")
    write()
    evalstore("run", "-q")
    write("20 euros")
    ran = evalstore(*GATE)
    assert ran.exit_code == 0
    assert "(broke)" in ran.stdout
    assert evalstore(*GATE, "--refresh").exit_code == 1  # another answer


def test_an_edit_that_a_partial_run_undid_leaves_the_gate_green(
    echo: Echo, evalstore: Evalstore
) -> None:
    write("20 euros")
    write(file="tests/u.md")
    evalstore("run", "-q", "tests/t.md")
    write()
    evalstore("run", "-q")
    write("20 euros")
    assert evalstore(*GATE).exit_code == 0


def test_what_the_present_commit_broke_stays_red(main: Evalstore) -> None:
    write()
    commit("repaired")
    main("run", "-q")
    write("30 euros")
    commit("broken")
    ran = main(*GATE)
    assert ran.exit_code == 1
    assert ran.stdout.splitlines()[-1] == (
        "gate failed: 1 regression (passed in run <short>, fails in run <short>)"
    )
    assert main(*GATE).exit_code == 1
    assert main(*GATE, "--refresh").exit_code == 1


def test_the_newest_complete_run_of_an_ancestor_is_the_baseline(
    main: Evalstore, documents: Any
) -> None:
    write()
    commit("repaired")
    main("run", "-q")
    good = documents("log")["runs"][0]["run"]
    write("30 euros")
    main("run", "-q")  # not committed
    main("run", "-q", "tests/t.md")
    commit("broken")
    (regression,) = documents(*GATE)["regressions"]
    assert regression["passedIn"] == good
    commit("next")
    assert documents(*GATE)["regressions"] == []


def test_a_partial_run_of_a_commit_accepts_nothing(main: Evalstore) -> None:
    write()
    write("10 euros", file="tests/u.md")
    commit("repaired")
    main("run", "-q")
    write("30 euros")
    commit("broken")
    main("run", "-q", "tests/t.md")
    commit("next")
    assert main(*GATE).exit_code == 1


def test_a_shallow_clone_knows_the_parents_of_its_commit(
    main: Evalstore, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pass_on_a_branch(main)
    git(Path(), "checkout", "-q", "main")
    write("30 euros")
    commit("next")
    clone = tmp_path_factory.mktemp("clone")
    git(Path(), "clone", "-q", "--depth", "1", f"file://{Path().resolve()}", str(clone))
    tree(clone, {"models/one.yaml": Path("models/one.yaml").read_text()})
    (clone / ".evalstore").mkdir()
    (clone / ".evalstore/store.db").write_bytes(Path(".evalstore/store.db").read_bytes())
    assert main("-C", str(clone), *GATE).exit_code == 0
