"""Python checks through the command line: they wait until their file is trusted."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evalstore.files.processes.pool import Workers
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.run.test_run_checks import verdicts, with_checks
from tests.interfaces.cli.test_documents import schema_of

MINE = """\
def judge(given, word="Warm"):
    if given["item"]["city"] == "Bergen":
        raise ValueError("no road to Bergen")
    return {"pass": word in given["answer"], "feedback": f"no {word} in {given['answer']}"}
"""
CHECK = "- python: {file: checks/mine.py, function: judge}"
FILE = "tests/checks/mine.py"


@pytest.fixture
def coded(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a Python check of two rows: the row Oslo fails. Nothing is trusted."""
    monkeypatch.setenv("EVALSTORE_TRUST_FILE", str(tmp_path / "trusted"))
    text = with_checks(CHECK, prose=False)
    return tree(workspace, {"tests/weather.md": text, FILE: MINE})


def test_an_untrusted_check_waits_and_says_what_allows_it(
    coded: Path, evalstore: Evalstore
) -> None:
    ran = evalstore("run")
    assert ran.exit_code == 3
    assert "0 pass, 2 pending" in ran.stdout
    assert f"{FILE} is not trusted on this machine, so its checks wait" in ran.stdout
    assert f"'evalstore trust {FILE}' allows the waiting checks" in ran.stdout


def test_a_file_whose_name_is_not_utf8_can_be_trusted(coded: Path, evalstore: Evalstore) -> None:
    (coded / "\udc80.py").write_text(MINE)
    assert evalstore("trust", "\udc80.py").exit_code == 0
    ran = evalstore("trust", "--list")
    assert (ran.exit_code, "\\udc80.py" in ran.stdout) == (0, True)


def test_nothing_is_recorded_of_a_check_that_waits(coded: Path, documents: Any) -> None:
    document = documents("run")
    assert (document["asked"], document["judged"], document["failed"]) == (2, 0, 0)
    assert document["verdicts"]["pending"] == 2
    assert document["untrusted"] == [FILE]


def test_nothing_waits_for_a_file_that_has_judged_everything(
    coded: Path, evalstore: Evalstore
) -> None:
    evalstore("trust", FILE)
    evalstore("run")
    evalstore("trust", "--revoke", FILE)
    output = evalstore("run").stdout + evalstore("status").stdout
    assert "trust" not in output


def test_once_trusted_it_judges_without_asking_again(coded: Path, documents: Any) -> None:
    documents("run")
    documents("trust", FILE)
    document = documents("run")
    assert (document["asked"], document["judged"], document["untrusted"]) == (0, 2, [])
    assert verdicts(document) == {"city=Oslo": "fail", "city=Rome": "pass"}
    assert document["cases"][0]["feedback"] == "no Warm in Cold."


def test_new_answers_are_judged_by_it_at_once(coded: Path, documents: Any) -> None:
    documents("trust", FILE)
    document = documents("run")
    assert (document["asked"], document["judged"]) == (2, 2)
    assert documents("status")["judge"] == 0


@pytest.mark.parametrize("is_stored", [False, True])
def test_python_runs_beside_the_event_loop(
    coded: Path, documents: Any, monkeypatch: pytest.MonkeyPatch, is_stored: bool
) -> None:
    threads: list[threading.Thread] = []
    call = Workers.call

    def watch(*arguments: Any) -> Any:
        threads.append(threading.current_thread())
        return call(*arguments)

    monkeypatch.setattr(Workers, "call", watch)
    if is_stored:
        documents("run")
    documents("trust", FILE)
    documents("run")
    assert len(threads) == 2
    assert threading.main_thread() not in threads


def test_a_changed_file_needs_trusting_again(coded: Path, documents: Any) -> None:
    documents("trust", FILE)
    documents("run")
    tree(coded, {FILE: MINE + "\n"})
    document = documents("run")
    assert (document["judged"], document["verdicts"]["pending"]) == (0, 2)


def test_an_edited_file_is_reported_as_changed(coded: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    assert f"{FILE} is not trusted on this machine" in evalstore("status").stdout
    evalstore("trust", FILE)
    tree(coded, {FILE: MINE + "\n"})
    words = f"{FILE} has changed since you trusted it, so "
    assert words in evalstore("status").stdout
    assert f"warning: tests/weather.md: {words}" in evalstore("check").stderr
    assert words in evalstore("run").stdout
    tree(coded, {"checks/copy.py": MINE + "\n"})
    evalstore("trust", "checks/copy.py")
    assert "since you trusted it" not in evalstore("status").stdout


def test_the_old_content_is_trusted_still(coded: Path, documents: Any) -> None:
    documents("trust", FILE)
    tree(coded, {FILE: MINE + "\n"})
    documents("run")
    tree(coded, {FILE: MINE})
    assert documents("run")["judged"] == 2


def test_a_check_that_raises_is_an_error(coded: Path, documents: Any) -> None:
    text = (coded / "tests/weather.md").read_text().replace("[Oslo, Rome]", "[Bergen]")
    tree(coded, {"tests/weather.md": text})
    documents("trust", FILE)
    (case,) = documents("run")["cases"]
    assert case["verdict"] == "error"
    words = "the check failed: checks/mine.py:3: ValueError: no road to Bergen"
    assert case["feedback"] == words


def test_a_model_waits_for_the_check_before_it(coded: Path, documents: Any) -> None:
    tree(coded, {"tests/weather.md": with_checks(f"evaluator: always\nchecks:\n{CHECK}")})
    assert documents("run")["judged"] == 0
    documents("trust", FILE)
    assert documents("run")["judged"] == 4


def test_other_checks_do_not_wait(coded: Path, documents: Any) -> None:
    other = with_checks("- contains: Warm", prose=False).replace("tags: [weather]\n", "")
    tree(coded, {"tests/other.md": other})
    document = documents("run")
    assert (document["judged"], document["verdicts"]["pending"]) == (2, 2)


def test_status_and_check_say_that_it_waits(coded: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    status, check = evalstore("status"), evalstore("check")
    assert "2 verdicts wait for trust:" in status.stdout
    assert "No other pending work." in status.stdout
    assert f"warning: tests/weather.md: {FILE} is not trusted on this machine" in check.stderr
    assert check.exit_code == 0


def test_without_an_untrusted_file_status_is_quiet(coded: Path, evalstore: Evalstore) -> None:
    evalstore("trust", FILE)
    evalstore("run", "--fail-on", "none")
    assert "and all verdicts are stored" in evalstore("status").stdout
    assert evalstore("check").stderr == ""


def test_trust_shows_what_is_trusted(coded: Path, evalstore: Evalstore) -> None:
    sha256 = hashlib.sha256(MINE.encode()).hexdigest()
    ran = evalstore("trust", FILE)
    assert ran.stdout.splitlines()[:4] == [
        f"{FILE}: trusted",
        f"  {len(MINE)} bytes, 4 lines, sha256 {sha256}",
        "  may run on this machine, without a network",
        '  | def judge(given, word="Warm"):',
    ]
    assert evalstore("trust", FILE).stdout.startswith(f"{FILE}: trusted already\n")
    assert sha256 in evalstore("trust", "--list").stdout


@pytest.mark.parametrize("by_hash", [False, True])
def test_trust_can_be_revoked(coded: Path, evalstore: Evalstore, by_hash: bool) -> None:
    evalstore("trust", FILE)
    name = hashlib.sha256(MINE.encode()).hexdigest()[:12] if by_hash else FILE
    assert evalstore("trust", "--revoke", name).stdout.startswith(f"{FILE}: no longer trusted\n")
    assert evalstore("run").exit_code == 3


def test_the_network_is_trusted_apart(coded: Path, documents: Any, evalstore: Evalstore) -> None:
    check = CHECK.replace("}", ", network: true}")
    tree(coded, {"tests/weather.md": with_checks(check, prose=False)})
    documents("trust", FILE)
    ran = evalstore("run")
    assert f"'evalstore trust --network {FILE}' allows the waiting checks" in ran.stdout
    documents("trust", "--network", FILE)
    assert documents("run")["judged"] == 2


def test_no_file_of_a_workspace_says_what_is_trusted(
    coded: Path, documents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The list of somebody who trusts the file, brought along with the workspace.
    monkeypatch.setenv("EVALSTORE_TRUST_FILE", str(coded / "brought"))
    documents("trust", FILE)
    monkeypatch.delenv("EVALSTORE_TRUST_FILE")
    place = coded / "brought"
    tree(coded, {".env": f"EVALSTORE_TRUST_FILE={place}\nHOME={coded}\nXDG_STATE_HOME={coded}\n"})
    assert [documents("run")["verdicts"]["pending"] for _ in range(2)] == [2, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no file is named"),
        (("nobody.py",), "file 'nobody.py' not found"),
        (("--revoke", FILE), f"'{FILE}' is not trusted"),
        (("--list", FILE), "'--list' cannot be combined with anything else"),
        (("--revoke", "--network", FILE), "'--network' cannot be combined with '--revoke'"),
    ],
)
def test_what_trust_cannot_do_is_an_error(
    coded: Path, evalstore: Evalstore, arguments: tuple[str, ...], message: str
) -> None:
    ran = evalstore("trust", *arguments)
    assert (ran.exit_code, message in ran.stderr) == (2, True)


def test_nothing_is_trusted_unless_all_files_are_there(coded: Path, evalstore: Evalstore) -> None:
    evalstore("trust", FILE, "nobody.py")
    assert "No file is trusted." in evalstore("trust", "--list").stderr


def test_a_list_that_others_can_write_is_refused(coded: Path, evalstore: Evalstore) -> None:
    evalstore("trust", FILE)
    (coded.parent / "trusted").chmod(0o666)
    ran = evalstore("run")
    assert (ran.exit_code, "others can write to the list" in ran.stderr) == (2, True)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("checks/none.py", "file 'checks/none.py' not found"),
        ("../../outside.py", "'../../outside.py' is outside the workspace"),
        ("../.env", "'../.env' is private"),
    ],
)
def test_a_file_that_cannot_be_had_is_an_error_at_its_line(
    coded: Path, evalstore: Evalstore, written: str, message: str
) -> None:
    tree(coded, {"../outside.py": MINE, ".env": "A=b\n"})
    check = f"- python: {{file: {written}, function: judge}}"
    tree(coded, {"tests/weather.md": with_checks(check, prose=False)})
    ran = evalstore("check")
    assert (ran.exit_code, f"tests/weather.md:15: {message}" in ran.stderr) == (2, True), ran.stderr


def test_the_store_stays_whole(coded: Path, evalstore: Evalstore) -> None:
    evalstore("trust", FILE)
    evalstore("run")
    assert "all is well" in evalstore("fsck").stdout


@pytest.mark.parametrize("command", [["trust", FILE], ["trust", "--list"], ["run"], ["status"]])
def test_documents_have_their_shape(coded: Path, documents: Any, command: list[str]) -> None:
    documents("run")
    jsonschema.Draft202012Validator(schema_of(command[:1])).validate(documents(*command))


def test_status_names_the_file_that_has_changed(coded: Path, documents: Any) -> None:
    documents("trust", FILE)
    documents("run")
    tree(coded, {FILE: MINE + "\n"})
    documents("trust", FILE)
    reasons = {item["reason"] for item in documents("status")["items"]}
    assert reasons == {"file checks/mine.py changed"}
