"""The commits on which a commit builds, read from files, are those that git names."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from evalstore.workspace.git import Ancestors
from evalstore.workspace.git.objects import Objects
from tests.workspace.git.test_status import _ENVIRONMENT, git

_MAIN = "refs/heads/main"


def add_commits(folder: Path, commits: list[tuple[str, int, list[int]]]) -> list[str]:
    """Make a repository of commits, each with its branch, time and parents; returns their ids."""
    git(folder, "init", "-q", "-b", "main")
    lines: list[str] = []
    for number, (branch, time, parents) in enumerate(commits, start=1):
        lines += [
            f"commit {branch}",
            f"mark :{number}",
            f"committer x <x@y> {time} +0000",
            "data 0",
        ]
        lines += [f"{'merge' if at else 'from'} :{parent}" for at, parent in enumerate(parents)]
        lines.append("")
    marks = folder / "marks"
    subprocess.run(
        ["git", "fast-import", "--quiet", "--force", f"--export-marks={marks}"],
        cwd=folder,
        env=_ENVIRONMENT,
        check=True,
        text=True,
        input="\n".join(lines) + "\n",
    )
    return [line.split()[1] for line in sorted(marks.read_text().splitlines(), key=_number)]


def _number(line: str) -> int:
    return int(line.split()[0][1:])


@pytest.mark.parametrize("seed", range(4))
def test_ancestors_are_those_of_git_whatever_the_clocks_say(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    commits = [
        (
            f"refs/heads/{number}",
            draw.choice((number, draw.randrange(60))),
            sorted({draw.randrange(1, number) for _ in range(draw.randrange(3))})
            if number > 1
            else [],
        )
        for number in range(1, 60)
    ]
    ids = add_commits(tmp_path, commits)
    for head in draw.sample(ids, 10):
        expected = {*git(tmp_path, "rev-list", head).split()}
        ancestors = Ancestors(tmp_path, head)
        assert {id for id in draw.sample(ids, len(ids)) if id in ancestors} == expected


def test_an_ancestor_is_found_however_many_commits_are_between(tmp_path: Path) -> None:
    count = 6_000
    line = [(_MAIN, number, [number - 1] if number > 1 else []) for number in range(1, count + 1)]
    ids = add_commits(tmp_path, [*line, ("refs/heads/topic", count, [5])])
    ancestors = Ancestors(tmp_path, ids[-2])
    assert ids[10] in ancestors
    assert ids[0] in ancestors
    assert ids[-1] not in ancestors


def test_few_commits_are_read_for_a_branch_that_is_not_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = [(_MAIN, number, [number - 1] if number > 1 else []) for number in range(1, 201)]
    ids = add_commits(tmp_path, [*line, ("refs/heads/topic", 201, [195])])
    ancestors = Ancestors(tmp_path, ids[199])
    read: list[str] = []
    read_commit = Objects.read_commit

    def counting(self: Objects, commit: str) -> tuple[int, list[str]]:
        read.append(commit)
        return read_commit(self, commit)

    monkeypatch.setattr(Objects, "read_commit", counting)
    assert ids[200] not in ancestors
    assert "f" * 40 not in ancestors
    assert len(read) < 20
