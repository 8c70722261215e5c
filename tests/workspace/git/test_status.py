"""The state of a checkout, read from its files, is what git says of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from evalstore.workspace.git import State, read_state
from evalstore.workspace.git.objects import GitError
from evalstore.workspace.git.status import parse_index
from tests.builders import tree

_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{
        f"GIT_{who}_{variable}": "x@example.com"
        for who in ("AUTHOR", "COMMITTER")
        for variable in ("NAME", "EMAIL")
    },
}


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "protocol.file.allow=always", "-c", "core.autocrlf=false", *arguments]
    ran = subprocess.run(
        command, cwd=folder, env=_ENVIRONMENT, check=True, capture_output=True, text=True
    )
    return ran.stdout


def by_git(folder: Path) -> State | None:
    """What git itself says."""
    lines = git(
        folder, "status", "--porcelain=v2", "--branch", "--untracked-files=no", "."
    ).splitlines()
    commit = next(line.split()[-1] for line in lines if line.startswith("# branch.oid"))
    return State(commit, any(not line.startswith("#") for line in lines))


def make_checkout(folder: Path) -> Path:
    git(folder, "init", "-q", "-b", "main")
    tree(
        folder,
        {
            "a.md": "a\n",
            "a/b.md": "b\n",
            "a-b.md": "c\n",
            "w/evalstore.yaml": "",
            "w/tests/one.md": "one\n",
            "w/tests/deep/two.md": "two\n",
            "w/näme.md": "three\n",
        },
    )
    (folder / "w/link.md").symlink_to("tests/one.md")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder


@pytest.fixture
def checkout(folder: Path) -> Path:
    """A checkout with a workspace in a folder of its own, and files beside it."""
    return make_checkout(folder)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The index of such a checkout."""
    return (make_checkout(tmp_path_factory.mktemp("checkout")) / ".git/index").read_bytes()


def settle(folder: Path) -> None:
    """Let no file be as young as the index."""
    for path in folder.rglob("*"):
        if path.is_file() and ".git" not in path.parts and not path.is_symlink():
            os.utime(path, (1, 1))
    git(folder, "status")


CHANGES = {
    "nothing": "true",
    "not tracked": "echo new > w/new.md",
    "edited": "echo other > w/tests/one.md",
    "edited in its length": "echo eno > w/tests/one.md",
    "edited outside": "echo other > a.md",
    "removed": "rm w/tests/one.md",
    "touched": "touch -d 2001-01-01 w/tests/one.md",
    "made executable": "chmod +x w/tests/one.md",
    "a folder in its place": "rm w/tests/one.md; mkdir w/tests/one.md",
    "another link": "ln -sfn tests w/link.md",
    "a link in its place": "ln -sf deep/two.md w/tests/one.md",
    "staged": "echo other > w/tests/one.md; git add -A",
    "staged and back": "echo other > w/tests/one.md; git add -A; echo one > w/tests/one.md",
    "staged outside": "echo b > b.md; git add -A",
    "staged removal": "git rm -q w/tests/deep/two.md",
    "intent to add": "echo new > w/new.md; git add -N w/new.md",
    "all removed": "git rm -rq w",
    "told not to look": (
        "git update-index --assume-unchanged w/tests/one.md; echo other > w/tests/one.md"
    ),
    "told to skip": "git update-index --skip-worktree w/tests/one.md; rm w/tests/one.md",
    "modes do not count": "git config core.fileMode false; chmod +x w/tests/one.md",
    "committed again": "echo other > w/tests/one.md; git commit -qam second",
    "packed": "git gc -q",
    "packed with deltas": (
        "for n in 1 2 3 4 5 6 7 8 9; do seq $n 99 > w/tests/$n.md; git add -A; git commit -qm $n;"
        " done; git repack -adfq --depth=50; git pack-refs --all"
    ),
    "packed refs": "git pack-refs --all",
    "detached": "git checkout -q --detach",
    "another branch": "git checkout -qb topic/x",
    "index of version 4": "git update-index --index-version 4",
    "a merge with a conflict": (
        "git checkout -qb other; echo theirs > w/tests/one.md; git commit -qam theirs;"
        " git checkout -q main; echo ours > w/tests/one.md; git commit -qam ours;"
        " git merge -q other || true"
    ),
}
"""What is done to a checkout, in the words of a shell."""
YOUNG = ["nothing", "edited", "edited in its length", "touched", "staged and back"]


def shell(folder: Path, script: str) -> None:
    subprocess.run(
        ["sh", "-ec", script], cwd=folder, env=_ENVIRONMENT, check=True, capture_output=True
    )


def compare(checkout: Path) -> None:
    # Read before git is asked, which writes the index anew.
    places = [place for place in (checkout, checkout / "w", checkout / "a") if place.is_dir()]
    read = [read_state(place) for place in places]
    assert read == [by_git(place) for place in places]


@pytest.mark.parametrize("change", CHANGES)
def test_it_is_what_git_says(checkout: Path, change: str) -> None:
    settle(checkout)
    shell(checkout, CHANGES[change])
    compare(checkout)


@pytest.mark.parametrize("change", YOUNG)
def test_files_as_young_as_the_index_are_compared_by_their_bytes(
    checkout: Path, change: str
) -> None:
    shell(checkout, CHANGES[change])
    compare(checkout)


def test_a_linked_working_tree(checkout: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(checkout, "worktree", "add", "-q", "-b", "topic", str(other))
    (other / "w/tests/one.md").write_text("other\n")
    assert read_state(other / "w") == by_git(other / "w")
    assert read_state(checkout / "w") == by_git(checkout / "w")


def test_without_objects_of_its_own_a_clone_is_not_known_to_be_clean(
    checkout: Path, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "-q", "--shared", str(checkout), "clone")
    expected = by_git(tmp_path / "clone/w")
    assert expected
    assert read_state(tmp_path / "clone/w") == State(expected.commit, None)


def test_sha256(folder: Path) -> None:
    git(folder, "init", "-q", "--object-format=sha256")
    tree(folder, {"w/one.md": "one\n", "two.md": "two\n"})
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    assert read_state(folder / "w") == by_git(folder / "w")
    assert len((read_state(folder) or State("", None)).commit) == 64


@pytest.mark.parametrize("change", ["", "new commit", "edited"])
def test_a_submodule(checkout: Path, tmp_path: Path, change: str) -> None:
    git(tmp_path, "clone", "-q", str(checkout), "library")
    git(checkout, "submodule", "--quiet", "add", str(tmp_path / "library"), "w/library")
    git(checkout, "commit", "-qm", "with a submodule")
    inside = checkout / "w/library"
    if change:
        (inside / "a.md").write_text("other\n")
    if change == "new commit":
        git(inside, "commit", "-qam", "second")
    assert read_state(checkout / "w") == by_git(checkout / "w")


def test_outside_of_git_and_before_the_first_commit(folder: Path) -> None:
    assert read_state(folder) is None
    git(folder, "init", "-q")
    assert read_state(folder) is None


def test_what_a_filter_would_make_of_a_file_is_not_known(checkout: Path) -> None:
    (checkout / ".gitattributes").write_text("*.md filter=mine\n")
    (checkout / "w/tests/one.md").write_text("other\n")
    state = read_state(checkout / "w")
    assert state
    assert state.dirty is None


def test_other_line_ends_are_not_known_to_be_the_same(checkout: Path) -> None:
    (checkout / "w/tests/one.md").write_bytes(b"one\r\n")
    state = read_state(checkout / "w")
    assert state
    assert state.dirty is None


def test_a_split_index_is_not_known_to_be_clean(checkout: Path) -> None:
    git(checkout, "update-index", "--split-index")
    state = read_state(checkout)
    assert state
    assert state.dirty is None


BROKEN = {
    "a pipe": "rm .git/HEAD; mkfifo .git/HEAD",
    "leads outside": "echo ref: refs/../../../x > .git/HEAD",
    "in a circle": "echo ref: refs/heads/main > .git/refs/heads/main",
    "garbage": "printf '\\377\\000' > .git/HEAD",
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_head_is_not_a_commit(checkout: Path, how: str) -> None:
    shell(checkout, BROKEN[how])
    assert read_state(checkout) is None


UNREADABLE = {
    "index is a pipe": "rm .git/index; mkfifo .git/index",
    "index is cut off": "truncate -s 100 .git/index",
    "index is a device": "ln -sf /dev/zero .git/index",
    "no objects": "rm -r .git/objects; mkdir .git/objects",
    "pack is a pipe": (
        "git gc -q; rm -f .git/objects/pack/*.idx; mkfifo .git/objects/pack/pack-1.idx"
    ),
    "pack is cut off": (
        "git gc -q; chmod u+w .git/objects/pack/*; truncate -s 30 .git/objects/pack/*.pack"
    ),
}


@pytest.mark.parametrize("how", UNREADABLE)
def test_what_cannot_be_read_is_never_called_clean(checkout: Path, how: str) -> None:
    commit = git(checkout, "rev-parse", "HEAD").strip()
    shell(checkout, UNREADABLE[how])
    assert read_state(checkout) == State(commit, None)


@pytest.mark.parametrize("size", range(0, 700, 23))
def test_an_index_that_is_cut_off_anywhere_is_refused(index: bytes, size: int) -> None:
    with pytest.raises(GitError):
        parse_index(index[: min(size, len(index) - 200)], 20)
