"""Whole output of `remote`, `push` and `pull`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from unittest import mock

import pytest

from evalstore.core.display import money
from evalstore.interfaces.tui.render.run_details import dashboard_lines
from evalstore.planning import first_pushes
from evalstore.planning.options import Location
from evalstore.results.table.cases import list_runs
from evalstore.runs.status.dashboard import read_dashboard
from tests.builders import tree
from tests.interfaces.cli.conftest import WEATHER, Evalstore
from tests.interfaces.cli.run.test_run import edit
from tests.remotes import stores

QUIET = ("--fail-on", "none", "-q")
COPIED = "1 run, 2 answers, 2 verdicts, 13 other versions"


def _sizes(text: str) -> str:
    return re.sub(r"\b[\d.]+ (bytes|kB)\b", "<size>", text)


@pytest.fixture
def shared(workspace: Path, evalstore: Evalstore) -> Path:
    """A workspace with a run and a remote inside it."""
    evalstore("run", "--fail-on", "none", "-q")
    assert evalstore("remote", "add", "origin", "shared").exit_code == 0
    return workspace


@pytest.fixture
def clone(shared: Path, tmp_path: Path) -> Path:
    """Another checkout of that workspace, with an empty store and the same remote."""
    folder = tmp_path / "clone"
    shutil.copytree(shared, folder, ignore=shutil.ignore_patterns(".evalstore", "shared"))
    text = (folder / "evalstore.yaml").read_text()
    (folder / "evalstore.yaml").write_text(text.replace("origin: shared", "origin: ../w/shared"))
    return folder


def test_remotes_are_added_listed_and_removed(workspace: Path, evalstore: Evalstore) -> None:
    settings = workspace / "evalstore.yaml"
    before = settings.read_text()
    none = evalstore("remote")
    assert (none.stdout, none.stderr) == (
        "",
        "no remote is set; 'evalstore remote add origin ADDRESS' sets one\n",
    )
    added = evalstore("remote", "add", "origin", "shared")
    assert (added.exit_code, added.stdout) == (0, "added the remote origin: shared\n")
    assert settings.read_text() == before + "remotes:\n  origin: shared\n"
    evalstore("remote", "add", "backup", "other")
    assert settings.read_text() == before + "remotes:\n  backup: other\n  origin: shared\n"
    assert evalstore("remote", "list").stdout == (
        "REMOTE  ADDRESS\nbackup  other\norigin  shared\n"
    )
    assert json.loads(evalstore("remote", "--json").stdout) == {
        "format": 1,
        "remotes": [
            {"name": "backup", "address": "other"},
            {"name": "origin", "address": "shared"},
        ],
    }
    evalstore("remote", "remove", "backup")
    removed = evalstore("remote", "remove", "origin")
    assert removed.stdout == "removed the remote origin: shared\n"
    assert settings.read_text() == before


def test_a_run_is_pushed_and_pulled(
    shared: Path, clone: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = evalstore("push", "--dry-run")
    assert planned.stdout == f"would push {COPIED} to origin (shared)\n"
    assert not (shared / "shared").exists()
    pushed = evalstore("push")
    assert (pushed.exit_code, _sizes(pushed.stdout)) == (
        0,
        f"pushed {COPIED} to origin (shared): <size>\n",
    )
    assert evalstore("push").stdout == "nothing to push to origin (shared)\n"
    monkeypatch.chdir(clone)
    refused = evalstore("pull")
    assert refused.exit_code == 2
    assert refused.stderr.endswith(
        "which is outside the workspace\n"
        "hint: if you know it, allow it once with '--allow-outside'\n"
    )
    assert evalstore("pull", "-n", "--allow-outside").stdout == (
        f"would pull {COPIED} from origin (../w/shared)\n"
    )
    pulled = json.loads(evalstore("pull", "--json").stdout)
    assert pulled["records"] == {"runs": 1, "answers": 2, "judgements": 2, "versions": 13}
    assert "Nothing to do" in evalstore("status").stdout
    assert evalstore("log").stdout == evalstore("-C", str(shared), "log").stdout


def test_a_clock_before_1970_hinders_nobody(
    shared: Path, clone: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: -(10**18))
        assert evalstore("push").stdout.startswith(f"pushed {COPIED}")
        assert evalstore("push", "all.bundle").stdout.startswith(f"pushed {COPIED}")
    monkeypatch.chdir(clone)
    assert evalstore("fsck", "--remote", str(shared / "all.bundle")).exit_code == 0
    assert evalstore("pull", "--allow-outside").stdout.startswith(f"pulled {COPIED}")
    assert evalstore("remote", "show").stdout.splitlines()[-1].startswith("1970-01-01T00:00:00Z")


def test_rows_wait_for_what_the_remote_lacks(
    shared: Path, clone: Path, evalstore: Evalstore
) -> None:
    evalstore("push")
    (first,) = (shared / "shared/indexes").iterdir()
    edit(shared / "tests/weather.md", "warm", "not cold")
    evalstore("run", *QUIET)
    evalstore("push")
    first.unlink()
    there = ("-C", str(clone), "--allow-outside")
    pulled = evalstore(*there, "pull")
    assert pulled.stdout.startswith("pulled 1 other version from origin")
    assert pulled.stderr.endswith(
        "warning: 1 run and 6 other rows stayed in the remote, which lacks rows that they refer "
        "to; pull again when they have been pushed\n"
    )
    document = json.loads(evalstore(*there, "pull", "--json").stdout)
    assert (document["waiting"], document["waitingRows"]) == (1, 6)
    for_plan = evalstore(*there, "pull", "--for-plan")
    assert for_plan.exit_code == 6
    assert (
        "it lacks rows to which 1 run refers, and a regression could be overlooked"
        in for_plan.stderr
    )
    assert evalstore(*there, "fsck").stdout.endswith("all is well\n")
    evalstore("push")
    assert "stayed" not in evalstore(*there, "pull").stderr
    assert evalstore(*there, "log", "--json").stdout == evalstore("log", "--json").stdout


@pytest.mark.parametrize("options", [[], ["--for-plan"]])
def test_packs_that_have_not_arrived_yet_come_with_a_later_pull(
    shared: Path, clone: Path, evalstore: Evalstore, tmp_path: Path, options: list[str]
) -> None:
    evalstore("push")
    for old, new in (("warm", "not cold"), ("not cold", "mild")):
        edit(shared / "tests/weather.md", old, new)
        evalstore("run", *QUIET)
        evalstore("push")
    evalstore("remote", "gc")  # its index replaces the others, and a synchroniser has it first
    packs = [path for path in (shared / "shared/packs").rglob("*") if path.is_file()]
    away = [path.rename(tmp_path / path.name) for path in packs]
    there = ("-C", str(clone), "--allow-outside")
    pulled = evalstore(*there, "pull", *options)
    if options:  # an older run could hide what broke in the one that is missing
        assert pulled.exit_code == 6
        assert re.search(
            r"is not complete yet: it lacks 1 pack with [0-9]+ rows, and a regression could be "
            r"overlooked\nhint: try again later; "
            rf"'evalstore -C {clone} fsck --remote' lists what is missing\n$",
            pulled.stderr,
        )
    else:
        assert pulled.exit_code == 0
        assert pulled.stdout.startswith("nothing to pull from origin")
        assert re.search(
            r"warning: the remote still lacks 1 pack with [0-9]+ rows; pull again later, or see "
            rf"'evalstore -C {clone} fsck --remote'\n$",
            pulled.stderr,
        )
        document = json.loads(evalstore(*there, "pull", "--json").stdout)
        assert document["missingPacks"] == 1
        assert document["missingRows"] >= 2
    assert evalstore(*there, "fsck", "--remote").exit_code == 1
    for path, source in zip(packs, away, strict=True):
        source.rename(path)
    assert evalstore(*there, "pull", *options).stderr == ""
    assert evalstore(*there, "fsck").stdout.endswith("all is well\n")
    if not options:
        assert evalstore(*there, "log", "--json").stdout == evalstore("log", "--json").stdout


def test_it_is_shown_who_pushed_a_run(
    shared: Path, clone: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, folder in enumerate((shared, clone)):
        (folder / ".git").mkdir()
        (folder / ".git/config").write_text(f"[user]\n\tname = {('Ann', 'Bob')[number]}\n")
        for name, text in (("HEAD", "ref: refs/heads/main\n"), ("objects", ""), ("refs", "")):
            (folder / ".git" / name).write_text(text) if text else (folder / ".git" / name).mkdir()
    monkeypatch.setattr("platform.node", lambda: "desk")
    before = evalstore("log").stdout
    evalstore("push")
    assert evalstore("log").stdout == before  # Ann's own
    evalstore("-C", str(clone), "--allow-outside", "pull")
    evalstore("-C", str(clone), "run", *QUIET)
    evalstore("-C", str(clone), "push")
    evalstore("pull")
    evalstore("run", *QUIET)
    [last, bobs, first] = json.loads(evalstore("log", "--json").stdout)["runs"]
    assert "push" not in last
    assert "push" not in first
    assert (bobs["push"]["remote"], bobs["push"]["writer"]) == ("origin", "Bob@desk")
    assert evalstore("log", "--oneline").stdout.splitlines()[1].endswith("  from Bob@desk")
    assert [line[:3] for line in evalstore("log", "--oneline", "--graph").stdout.splitlines()] == [
        "*  ",
        "| *",
        "*  ",
    ]
    graph = evalstore("log", "--graph").stdout.splitlines()
    assert [line[:3].rstrip() for line in graph[:9]] == ["*", "|", "|", "|", "| *", *["|"] * 4]
    assert "|        from origin, pushed by Bob@desk" in graph
    assert "    from origin, pushed by Bob@desk\n" in evalstore("show", "@~1").stdout
    assert [run.push and run.push.writer for run in list_runs(Location(shared))] == [
        None,
        "Bob@desk",
        None,
    ]
    with stores.opened(shared / ".evalstore/store.db") as store:
        session = next(
            record.record.id for record in stores.records(store) if record.kind == "session"
        )
    assert "pushed by" not in evalstore("show", session).stdout
    there = evalstore("-C", str(clone), "show", session)
    assert "from origin, pushed by Ann@desk\n" in there.stdout
    document = json.loads(evalstore("-C", str(clone), "show", session, "--json").stdout)
    assert document["push"]["writer"] == "Ann@desk"
    monkeypatch.setattr("platform.node", lambda: "laptop")
    first_pushes._own_name.cache_clear()
    assert evalstore("log", "--oneline").stdout.count("  from ") == 1  # not what Ann pushed before
    (shared / ".evalstore/pushed-as.json").write_text("[")
    assert evalstore("log", "--oneline").stdout.count("  from ") == 2


def test_a_machine_of_ci_pulls_what_its_plan_asks_for(
    shared: Path, clone: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("run", "--fail-on", "none", "-q")
    evalstore("run", "--fail-on", "none", "-q", "tests/weather.md::city=Rome")
    evalstore("run", "--fail-on", "none", "-q", "tests/weather.md::city=Rome")
    evalstore("push")
    monkeypatch.chdir(clone)
    pulled = evalstore("pull", "--for-plan", "--allow-outside")
    assert _sizes(pulled.stdout).startswith("pulled 4 runs, 2 answers, 2 verdicts, ")
    assert "0 rows" not in evalstore("fsck").stdout
    assert evalstore("fsck").exit_code == 0
    log = evalstore("log", "--oneline", "-v").stdout
    assert log == evalstore("-C", str(shared), "log", "--oneline", "-v").stdout  # Oslo never passed
    evalstore("run", "-n", "--fail-on", "none", "--store", "few.db", "--remote", "origin")
    few = evalstore("log", "--oneline", "-v", "--store", "few.db").stdout
    assert few == "".join(log.splitlines(keepends=True)[0::2])
    again = evalstore("pull", "--for-plan")
    assert again.stdout == "nothing to pull from origin (../w/shared)\n"
    (clone / "tests/weather.md").write_text(
        (clone / "tests/weather.md").read_text().replace("[Oslo, Rome]", "[Oslo, Rome, Bonn]")
    )
    ran = evalstore("run", "--remote", "origin", "--fail-on", "none")
    assert "1 new answer, 2 reused, 1 new verdict" in ran.stdout
    assert "pushed 1 run, 1 answer, 1 verdict, " in ran.stderr
    assert "pulled" not in ran.stderr
    monkeypatch.chdir(shared)
    assert _sizes(evalstore("pull").stdout).startswith("pulled 1 run, 1 answer, 1 verdict, ")


@pytest.mark.parametrize("split", [False, True])
def test_a_regression_is_found_by_each_new_machine(
    shared: Path,
    clone: Path,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
    *,
    split: bool,
) -> None:
    for folder in (shared, clone):
        edit(folder / "models/judge.yaml", "must be warm.*Cold", "must be hot.*Warm")
    evalstore("run", *QUIET)
    for number in range(3):  # Rome has passed, and fails in all later runs
        edit(shared / "tests/weather.md", "must be ", "must be hot, " if not number else "must be ")
        evalstore("run", *QUIET)
    evalstore("push")
    (clone / "tests/weather.md").write_text((shared / "tests/weather.md").read_text())
    with stores.opened(shared / ".evalstore/store.db") as store:
        first = store.find_runs()[-1].id
    monkeypatch.chdir(clone)
    evalstore("pull", "-n", "--allow-outside")
    gate = ["run", "--fail-on", "regression", "--json"]
    for _ in range(2):
        shutil.rmtree(clone / ".evalstore")
        if split:
            evalstore("pull", "--for-plan")
            ran = evalstore(*gate)
        else:
            ran = evalstore(*gate, "--remote", "origin")
        assert ran.exit_code == 1
        document = json.loads(ran.stdout)
        assert (document["asked"], len(document["regressions"])) == (0, 1)
    shutil.rmtree(clone / ".evalstore")
    for baseline in ("origin/@~3" if split else "origin/@~5", first, first[:10]):
        options = ["--baseline", baseline]
        if split:
            evalstore("pull", "--for-plan", *options)
        ran = evalstore(*gate, *options, *([] if split else ["--remote", "origin"]))
        assert ran.exit_code == 1
        assert len(json.loads(ran.stdout)["regressions"]) == 1


def commit(folder: Path) -> None:
    """Commit the workspace, as its first commit or another one."""
    for command in (["init", "-q"], ["add", "tests", "models"], ["commit", "-qm", "one"]):
        git = ["git", "-c", "user.name=Ann", "-c", "user.email=a@b", *command]
        subprocess.run(git, cwd=folder, check=True)


def test_runs_of_the_present_commit_are_no_baseline_that_is_counted_from_a_remote(
    shared: Path, evalstore: Evalstore
) -> None:
    shutil.rmtree(shared / ".evalstore")
    tree(shared, {"tests/other.md": WEATHER.replace("How is", "Where is")})
    gate = ["run", "--remote", "origin", "--fail-on", "regression", "--baseline", "origin/@"]
    commit(shared)
    assert evalstore("run", *QUIET).exit_code == 0  # Oslo fails
    evalstore("push")
    ran = evalstore(*gate)
    assert ran.exit_code == 2
    assert ran.stderr.endswith(
        "error: 'origin/@' cannot be a baseline: it and all runs of 'origin' before it are of the "
        "current commit, so what they found would be accepted\n"
        "hint: leave out '--baseline', or give the id of the run whose failures you accept\n"
    )
    edit(shared / "tests/weather.md", "must be warm", "must be hot")
    tree(shared, {"tests/new.md": WEATHER.replace("must be warm", "must be hot")})
    edit(shared / "models/judge.yaml", "must be warm.*Cold", "must be hot.*Warm")
    commit(shared)
    found = "the baseline is run <short> of commit <short>{}\n"
    first = evalstore(*gate)
    assert first.exit_code == 1, first.stdout + first.stderr  # Rome broke
    assert found.format("") in first.stderr
    assert evalstore("run", *QUIET, "tests/other.md").exit_code == 0
    evalstore("push")
    again = evalstore(*gate)  # what its first attempt, and a shard that passed, have pushed
    assert again.exit_code == 1
    since = "; {} of this commit do not count"
    assert found.format(since.format("2 runs")) in again.stderr
    assert "1 regression" in again.stdout
    shutil.rmtree(shared / ".evalstore")
    fresh = evalstore(*gate)  # with nothing but what the remote has
    assert (fresh.exit_code, "1 regression" in fresh.stdout) == (1, True)
    assert found.format(since.format("3 runs")) in fresh.stderr
    with stores.opened(shared / ".evalstore/store.db") as store:
        latest = store.find_runs()[0].id
    assert evalstore(*gate[:-1], latest).exit_code == 0
    edit(shared / "tests/weather.md", "must be hot", "must be hot, really")
    assert evalstore(*gate).exit_code == 0  # an edit is compared with its commit


def test_results_are_kept_when_they_cannot_be_shared(
    shared: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("push")
    monkeypatch.setenv("DESK_KEY", "It is cold there.")
    (shared / "tests/weather.md").write_text(
        (shared / "tests/weather.md").read_text().replace("must be warm", "must be warm now")
    )
    (shared / "models/judge.yaml").write_text(
        (shared / "models/judge.yaml").read_text().replace("must be warm", "must be warm now")
    )
    ran = evalstore("run", "--remote", "origin", "--fail-on", "none")
    assert ran.exit_code == 2
    assert "nothing was pushed: 1 row would reveal a key" in ran.stderr
    assert ran.stderr.endswith("the run is stored here; 'evalstore push' shares it\n")
    assert evalstore("log", "--oneline").stdout.count("\n") == 2


def test_a_key_is_not_pushed(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-" + "a1B2" * 8
    (workspace / "models/one.yaml").write_text(
        (workspace / "models/one.yaml").read_text().replace("Warm.", f"Warm. {key}")
    )
    evalstore("run", "--fail-on", "none", "-q")
    evalstore("remote", "add", "origin", "shared")
    refused = evalstore("push")
    assert refused.exit_code == 2
    assert refused.stderr == (
        "error: nothing was pushed: 1 row would reveal a key:\n"
        "  an API key in <short> (sessions)\n"
        "hint: 'evalstore show <short>' prints it; revoke it, then add --allow-keys\n"
    )
    assert not list((workspace / "shared").rglob("*.idx"))
    assert key not in "".join(
        path.read_text("latin-1") for path in (workspace / "shared").rglob("*") if path.is_file()
    )
    assert evalstore("push", "--allow-keys").exit_code == 0


def test_a_remote_is_shown(shared: Path, evalstore: Evalstore) -> None:
    missing = evalstore("remote", "show")
    assert missing.exit_code == 6
    assert missing.stderr.startswith("error: '")
    assert missing.stderr.endswith(
        "hint: 'evalstore push' makes a remote of a folder that is empty or does not exist yet\n"
    )
    sent = json.loads(evalstore("push", "--json").stdout)["bytesSent"]
    assert json.loads(evalstore("remote", "show", "--json").stdout)["size"] == sent
    shown = evalstore("remote", "show").stdout.splitlines()
    assert [_sizes(line) for line in shown[:5]] == [
        "remote   origin: shared",
        f"has      {COPIED}, <size>",
        "to pull  nothing",
        "to push  nothing",
        "",
    ]
    assert re.fullmatch(r"PUSHED +BY +ROWS", shown[5])
    assert shown[6].endswith(" 18")


def _date(folder: Path, seconds: float) -> None:
    """Let all files below a folder be from a time, in seconds since 1970."""
    for path in folder.rglob("*"):
        os.utime(path, (seconds, seconds))


def test_a_remote_is_cleaned_up(shared: Path, evalstore: Evalstore) -> None:
    evalstore("push")
    for number in range(3):
        edit(shared / "tests/weather.md", "must be", f"must be {number}")
        evalstore("run", *QUIET)
        evalstore("push")
    planned, done, again = (
        [_sizes(line) for line in evalstore("remote", "gc", *options).stdout.splitlines()]
        for options in (("--dry-run",), (), ("origin",))
    )
    waiting = (
        "no longer needed: 4 index files and 4 packs (<size>); 'evalstore remote gc' deletes each "
        "14d after it was replaced"
    )
    assert planned == ["would compact 4 pushes with 4 packs in origin (shared): <size>"]
    assert done == [
        "compacted 4 pushes with 4 packs in origin (shared): <size> -> 1 pack, <size>",
        waiting,
    ]
    assert again == ["nothing to compact or delete in origin (shared)", waiting]
    for hours in (2, 23):  # a push may use packs of the last twelve hours
        _date(shared / "shared", time.time() - hours * 3_600)
        *_, kept = evalstore("remote", "gc", "--grace", "1h").stdout.splitlines()
        assert _sizes(kept) == waiting.replace("14d", "1d")
    _date(shared / "shared", 0)
    planned, done, again = (
        [_sizes(line) for line in evalstore("remote", "gc", *options).stdout.splitlines()]
        for options in (("--grace", "52w", "-n"), (), ())
    )
    deleted = "4 index files and 4 packs (<size>) in origin (shared)"
    assert (planned, done) == ([f"would delete {deleted}"], [f"deleted {deleted}"])
    assert again == ["nothing to compact or delete in origin (shared)"]
    assert evalstore("fsck", "--remote").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (
            ["remote", "gc", "--grace", "soon"],
            "'--grace soon' is not valid",
            "write a number with s, m, h, d or w: '30d', '1.5h'",
        ),
        (
            ["remote", "show", "--dry-run"],
            "'remote show' has no option '--dry-run'",
            "'evalstore remote gc' has it",
        ),
        (["remote", "ad", "x"], "'remote' has no action 'ad'", "did you mean 'add'?"),
        (
            ["remote", "add", "x"],
            "'remote add' takes NAME ADDRESS",
            "evalstore remote add NAME ADDRESS",
        ),
        (["remote", "remove", "x"], "unknown remote 'x'", "name one: origin"),
        (
            ["remote", "add", "origin", "y"],
            "there is a remote 'origin' already: shared",
            "'evalstore remote remove origin' removes it from the settings",
        ),
        (
            ["remote", "add", "a b", "y"],
            "'a b' cannot be the name of a remote",
            "it is made of letters, digits, '.', '_' and '-', such as 'origin'",
        ),
        (["remote", "add", "x", " "], "the address is empty", "name a folder, as in ../team"),
        (["remote", "add", "x", "file://"], "the address is empty", "name a folder, as in ../team"),
        (["push", "orgin"], "unknown remote 'orgin'", "name one: origin"),
        (
            ["pull", "--for-plan", "--dry-run"],
            "'--for-plan' cannot be combined with '--dry-run'",
            "'evalstore status' says what is missing here",
        ),
        (
            ["run", "--remote", "origin", "--watch"],
            "'--watch' cannot be combined with '--remote'",
            "'evalstore push' shares the results afterwards",
        ),
    ],
)
def test_what_is_wrong_is_said(
    shared: Path, evalstore: Evalstore, arguments: list[str], error: str, hint: str
) -> None:
    ran = evalstore(*arguments)
    assert (ran.exit_code, ran.stderr) == (2, f"error: {error}\nhint: {hint}\n")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("remotes: origin\n", "3: 'remotes' must be a mapping"),
        ("remotes: {'-x': y}\n", "3: '-x' cannot be the name of a remote"),
        ("remotes: {x: 'file://'}\n", "3: 'remotes' maps names to addresses"),
        ("remotes: {x: 1}\n", "3: 'remotes' maps names to addresses"),
        ("remotes:\n  x: {sign: k}\n", "4: the remote 'x' has no address"),
        ("remotes:\n  x:\n    address: y\n    sing: k\n", "6: unknown field 'sing'"),
        ("remotes:\n  x: {address: y, trust: []}\n", "4: 'trust' names no writer"),
        ("remotes:\n  x: {address: y, trust: z}\n", "4: 'trust' must be a list of texts"),
        ("remotes:\n  x:\n    address: y\n    sign: 1\n", "6: 'sign' must be a text, not empty"),
    ],
)
def test_wrong_settings_have_their_place(
    workspace: Path, evalstore: Evalstore, settings: str, message: str
) -> None:
    with (workspace / "evalstore.yaml").open("a") as file:
        file.write(settings)
    ran = evalstore("remote")
    assert ran.exit_code == 2
    assert f"evalstore.yaml:{message}" in ran.stderr


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("remotes:\n", "remotes:\n  x: y\n"),
        ("remotes:\n    a: b  # ours\n", "remotes:\n    x: y\n    a: b  # ours\n"),
        ("remotes:\n  a: b\n# end\n", "remotes:\n  x: y\n  a: b\n# end\n"),
        ("attempts: 1", "attempts: 1\nremotes:\n  x: y\n"),
        ("attempts: 1\r\n\r\n", "attempts: 1\r\nremotes:\r\n  x: y\r\n"),
        ("remotes:\r\n  a: b\r\n", "remotes:\r\n  x: y\r\n  a: b\r\n"),
        ("remotes:\r\n", "remotes:\r\n  x: y\r\n"),
        ("\ufeffattempts: 1\n", "\ufeffattempts: 1\nremotes:\n  x: y\n"),
    ],
)
def test_the_rest_of_the_settings_stays_as_it_is(
    workspace: Path, evalstore: Evalstore, before: str, after: str
) -> None:
    settings = workspace / "evalstore.yaml"
    settings.write_text(before, newline="")
    assert evalstore("remote", "add", "x", "y").exit_code == 0
    assert settings.read_bytes().decode() == after
    assert evalstore("remote", "remove", "x").exit_code == 0
    if "\r" in before:
        assert b"\n" not in settings.read_bytes().replace(b"\r\n", b"")


def test_settings_that_cannot_be_edited_are_left_alone(
    workspace: Path, evalstore: Evalstore
) -> None:
    settings = workspace / "evalstore.yaml"
    settings.write_text("remotes: {a: b}\n")
    ran = evalstore("remote", "add", "x", "y")
    assert ran.exit_code == 2
    assert ran.stderr == (
        "error: evalstore.yaml:1: 'remotes' is written in a way that cannot be edited here\n"
        "hint: edit the file yourself: remotes: {x: y}\n"
    )
    assert settings.read_text() == "remotes: {a: b}\n"


def test_a_run_is_named_among_those_of_a_remote(
    shared: Path, clone: Path, evalstore: Evalstore
) -> None:
    unread = evalstore("show", "origin/@")
    assert (unread.exit_code, unread.stderr) == (
        2,
        "error: the runs of 'origin' are not known\nhint: 'evalstore pull -n origin' reads them\n",
    )
    evalstore("push")
    with stores.opened(shared / ".evalstore/store.db") as store:
        [first] = [run.id for run in store.find_runs()]
    evalstore("-C", str(clone), "--allow-outside", "pull")
    evalstore("-C", str(clone), "run", "--fail-on", "none", "-q")
    evalstore("-C", str(clone), "push")
    assert (
        evalstore("stats", "origin/@", "--json").stdout == evalstore("stats", "@", "--json").stdout
    )
    evalstore("pull", "-n")
    missing = evalstore("diff", "origin/@", "@")
    assert (missing.exit_code, missing.stderr) == (
        2,
        "error: the run <short> of 'origin' is not in the store\n"
        "hint: 'evalstore pull origin' copies it\n",
    )
    known = evalstore("diff", f"origin/{first[:6]}", "origin/@~1")
    assert (known.exit_code, known.stdout) == (0, evalstore("diff", "@", "@").stdout)
    evalstore("pull")
    for command in ("show", "stats", "diff", "report --markdown", "export"):
        of_remote, by_id = (
            evalstore(*command.split(), revision) for revision in ("origin/@~1", first)
        )
        assert (of_remote.exit_code, of_remote.stderr) == (0, by_id.stderr)
        assert of_remote.stdout == by_id.stdout


@pytest.mark.parametrize(
    ("revision", "error"),
    [
        ("origin/@~5", "unknown run 'origin/@~5'"),
        ("origin/0000000", "unknown run 'origin/0000000'"),
        ("orgin/@", "unknown remote 'orgin'"),
        ("origin/@work", "'origin/@work' is not a revision"),
    ],
)
def test_a_run_that_a_remote_lacks_is_an_error(
    shared: Path, evalstore: Evalstore, revision: str, error: str
) -> None:
    evalstore("push")
    shown = evalstore("show", revision)
    assert (shown.exit_code, shown.stderr.splitlines()[0]) == (2, f"error: {error}")


def test_status_says_which_answers_a_remote_has(
    shared: Path, clone: Path, evalstore: Evalstore
) -> None:
    evalstore("push")
    here = ("-C", str(clone), "--allow-outside", "status")
    unread = (
        f"origin was not read yet: 'evalstore -C {clone} pull origin --for-plan' copies what it "
        "has of these "
        "answers"
    )
    for _ in range(2):  # the second is cached
        assert evalstore(*here).stdout.splitlines()[-1] == unread
    assert json.loads(evalstore(*here, "--json").stdout)["unreadRemotes"] == ["origin"]
    lines = dashboard_lines(read_dashboard(Location(clone)), (), 100, 4)
    assert [line.text for line in lines][1].endswith("; origin was not read yet")
    copied = shutil.copytree(clone, clone.parent / "copied")
    ran = [evalstore("-C", str(copied), "run", "--fail-on", "none").stderr for _ in range(2)]
    unread = unread.replace(str(clone), str(copied))
    assert [text.splitlines().count(unread) for text in ran] == [1, 0]  # then nothing is asked
    saved = (
        f"origin has 2 of the 3 answers: 'evalstore -C {clone} pull origin --for-plan' saves "
        "at least $0.0600"
    )
    edit(clone / "tests/weather.md", "[Oslo, Rome]", "[Oslo, Rome, Riga]")
    assert evalstore(*here, "--remote", "origin").stdout.splitlines()[-1] == saved
    shutil.move(shared / "shared", shared / "away")
    assert evalstore(*here).stdout.splitlines()[-1] == saved  # nothing is connected to
    remotes = json.loads(evalstore(*here, "--json").stdout)["remotes"]
    assert remotes == [{"remote": "origin", "answers": 2, "cost": 0.06, "judgements": 2}]
    lines = dashboard_lines(read_dashboard(Location(clone)), (), 100, 4)
    assert [line.text for line in lines][1].endswith("; origin has 2 of the 3 answers")
    free = (clone / "models/one.yaml").read_text().partition("costs:")[0]
    (clone / "models/one.yaml").write_text(free)
    without = evalstore(*here).stdout.splitlines()[-1]
    assert without == saved.replace("saves at least $0.0600", "copies them")
    refreshed = json.loads(evalstore(*here[:-1], "run", "-n", "--refresh", "--json").stdout)
    assert "remotes" not in refreshed  # what is asked again is asked
    shutil.move(shared / "away", shared / "shared")
    evalstore(*here[:-1], "pull", "--for-plan")
    assert "remotes" not in json.loads(evalstore(*here, "--json").stdout)


def test_status_says_which_judgements_a_remote_may_have(
    shared: Path, clone: Path, evalstore: Evalstore
) -> None:
    shutil.copytree(shared / ".evalstore", clone / ".evalstore")
    for folder in (shared, clone):
        edit(folder / "tests/weather.md", "warm", "mild")
    evalstore("run", *QUIET)
    evalstore("push")
    here = ("-C", str(clone), "--allow-outside", "status")
    unread = (
        f"origin was not read yet: 'evalstore -C {clone} pull origin --for-plan' copies what it "
        "has of these "
        "verdicts"
    )
    for _ in range(2):  # the second is cached
        assert evalstore(*here).stdout.splitlines()[-1] == unread
    copied = shutil.copytree(clone, clone.parent / "copied")
    ran = [evalstore("-C", str(copied), "run", "--fail-on", "none").stderr for _ in range(2)]
    unread = unread.replace(str(clone), str(copied))
    assert [text.splitlines().count(unread) for text in ran] == [1, 0]  # then nothing is judged
    evalstore(*here[:-1], "pull", "-n")
    may = (
        f"origin may have 2 of the 2 verdicts: 'evalstore -C {clone} pull origin --for-plan' "
        "copies what "
        "counts"
    )
    for _ in range(2):
        assert evalstore(*here).stdout.splitlines()[-1] == may
    lines = dashboard_lines(read_dashboard(Location(clone)), (), 100, 4)
    assert [line.text for line in lines][1].endswith("; origin may have 2 of the 2 verdicts")
    with (clone / "models/judge.yaml").open("a") as file:
        file.write("costs: [{costPerPromptToken: 0.5, costPerCompletionToken: 0.5}]\n")
    document = json.loads(evalstore(*here, "--json").stdout)
    assert document["remoteJudgements"] == [
        {"remote": "origin", "judgements": 2, "cost": document["cost"]}
    ]
    assert document["cost"] > 1
    saves = f"saves up to {money(document['cost'])}"
    assert evalstore(*here).stdout.splitlines()[-1] == may.replace("copies what counts", saves)
    evalstore(*here[:-1], "pull", "--for-plan")
    assert "Nothing to do" in evalstore(*here).stdout


def test_a_verdict_that_a_remote_has_is_counted_for_one_judge_the_dearest(
    shared: Path, clone: Path, evalstore: Evalstore
) -> None:
    shutil.copytree(shared / ".evalstore", clone / ".evalstore")
    for folder in (shared, clone):
        edit(folder / "tests/weather.md", "warm", "mild")
    evalstore("run", *QUIET)
    evalstore("push")
    dear = (clone / "models/judge.yaml").read_text().replace("scripted/judge", "scripted/dear")
    costs = "costs: [{costPerPromptToken: 0.5, costPerCompletionToken: 0.5}]\n"
    tree(clone, {"models/dear.yaml": dear + costs})
    edit(clone / "evalstore.yaml", "[scripted/judge]", "[scripted/judge, scripted/dear]")
    here = ("-C", str(clone), "--allow-outside")
    evalstore(*here, "pull", "-n")
    document = json.loads(evalstore(*here, "status", "--json").stdout)
    assert document["remoteJudgements"] == [
        {"remote": "origin", "judgements": 2, "cost": document["cost"]}
    ]
    assert document["cost"] > 1
    assert "may have 2 of the 4 verdicts" in evalstore(*here, "status").stdout


def test_status_names_unread_remotes_for_judgements_that_wait_for_trust(
    shared: Path, clone: Path, evalstore: Evalstore
) -> None:
    test = "# 👤\n\nOslo?\n\n---\n\n~~~checks\n- python: {file: ok.py, function: judge}\n~~~\n"
    for folder in (shared, clone):
        code = {"tests/python.md": test, "tests/ok.py": "def judge(text):\n    return True\n"}
        tree(folder, code)
    evalstore("run", *QUIET)  # its check waits
    shutil.copytree(shared / ".evalstore", clone / ".evalstore")
    evalstore("trust", "tests/ok.py")
    evalstore("run", *QUIET)
    evalstore("push")
    here = ("-C", str(clone), "--allow-outside")
    command = f"'evalstore -C {clone} pull origin --for-plan' copies what"
    unread = f"origin was not read yet: {command} it has of these verdicts"
    with mock.patch.dict(os.environ, EVALSTORE_TRUST_FILE=str(clone.parent / "nothing")):
        assert evalstore(*here, "status").stdout.splitlines()[-1] == unread
        evalstore(*here, "pull", "-n")
        evalstore(*here, "pull", "--for-plan")
        assert "Nothing to do" in evalstore(*here, "status").stdout
