"""`doctor` against a server on loopback: what it says, and how it ends."""

from __future__ import annotations

import re
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evalstore.planning import participants
from tests import endpoint
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.cli.test_documents import schema_of

KEY = "sk-doctor-very-secret"
SETTINGS = "candidates: [one]\nevaluators: [one]\n"
MODEL = (
    "id: one\nprovider: desk\nproviderModelCode: m\n"
    "costs: [{costPerPromptToken: 0.001, costPerCompletionToken: 0.01}]\n"
)
HELLO = "# 👤\n\nHello\n\n---\n\nExpect a greeting.\n"


@pytest.fixture
def server() -> Iterator[endpoint.Endpoint]:
    with endpoint.running() as server:

        def reply(body: dict[str, Any]) -> str | endpoint.Answer:
            header = server.received[-1].headers.get("authorization")
            if header != f"Bearer {KEY}":
                return endpoint.failure(401, f"wrong key: {header}", "invalid_api_key")
            return "Yes." if body["model"] == "m" else endpoint.FAULTS["404"]

        server.reply = reply
        yield server


@pytest.fixture
def project(tmp_path: Path, server: endpoint.Endpoint, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with one model, at the server, and its key in the environment."""
    monkeypatch.setenv("DESK_KEY", KEY)
    monkeypatch.setenv("EVALSTORE_ALLOW_ENV", "DESK_KEY=127.0.0.1")
    folder = tree(
        tmp_path / "w",
        {
            "evalstore.yaml": SETTINGS,
            "providers/desk.yaml": provider(server.url),
            "models/one.yaml": MODEL,
            "tests/hello.md": HELLO,
        },
    )
    monkeypatch.chdir(folder)
    return folder


def provider(url: str) -> str:
    return f"code: desk\ntype: openai-compatible\nbaseURL: {url}\napiKeyEnvVar: DESK_KEY\n"


def lines(stdout: str) -> list[str]:
    return [re.sub(r"  +", "  ", line) for line in stdout.splitlines()]


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_all_is_well(project: Path, evalstore: Evalstore, server: endpoint.Endpoint) -> None:
    before = contents(project)
    ran = evalstore("doctor")
    assert (ran.exit_code, ran.stderr) == (0, "")
    printed = lines(re.sub(r"in \d\.\d\d s", "in <s>", ran.stdout))
    assert [line.split("  ")[:2] for line in printed[:3]] == [
        ["ok", "python"],
        ["ok", "evalstore"],
        ["ok", "litellm"],
    ]
    assert printed[3:] == [
        "ok  settings  evalstore.yaml",
        "ok  files  1 test file, 1 case: no problems",
        "ok  store  .evalstore/store.db does not exist yet: the first run creates it",
        "ok  environment  no .env file (none is needed)",
        "ok  model one  answered in <s> as dummy-2026",
        "ok  model one  DESK_KEY is set (from the environment); capabilities unknown; "
        "$1,000 in, $10,000 out per million tokens, from costs",
        "",
        "1 model called, all answered; the pings cost $0.0810",
    ]
    assert contents(project) == before
    assert KEY not in ran.stdout


def test_a_model_that_answers_and_judges_is_asked_once_and_little(
    project: Path, evalstore: Evalstore, server: endpoint.Endpoint
) -> None:
    evalstore("doctor", "-m", "one", "-m", "one")
    [received] = server.received
    assert (received.body["model"], received.body["max_tokens"]) == ("m", 16)
    assert "temperature" not in received.body


def test_a_model_with_another_code_as_evaluator_is_asked_as_both(
    project: Path, evalstore: Evalstore, server: endpoint.Endpoint
) -> None:
    (project / "models/one.yaml").write_text(MODEL + "evaluatorOverrides: {providerModelCode: n}\n")
    assert evalstore("doctor").exit_code == 3
    assert {request.body["model"] for request in server.received} == {"m", "n"}


def test_without_pings_nothing_is_asked(
    project: Path, evalstore: Evalstore, server: endpoint.Endpoint
) -> None:
    ran = evalstore("doctor", "--no-ping")
    assert (ran.exit_code, lines(ran.stdout)[-1]) == (0, "no model was called")
    assert server.received == []


def test_a_missing_key_is_reported_by_its_name(
    project: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DESK_KEY")
    ran = evalstore("doctor")
    assert ran.exit_code == 3
    hint = "  hint: set DESK_KEY in the environment, or in the workspace's .env"
    better = "  hint: set DESK_KEY, in the environment or in .env, to a key that the server accepts"
    assert lines(ran.stdout)[-6:] == [
        "warn  model one  DESK_KEY is not set",
        hint,
        "fail  model one  the server answered 401: wrong key: None",
        better,
        "",
        "1 model called, none answered; the pings cost $0",
    ]


def test_a_wrong_key_is_never_shown(
    project: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESK_KEY", "sk-wrong-secret")
    ran = evalstore("doctor")
    assert ran.exit_code == 3
    assert lines(ran.stdout)[-4:-2] == [
        "fail  model one  the server answered 401: wrong key: Bearer ***",
        "  hint: set DESK_KEY, in the environment or in .env, to a key that the server accepts",
    ]
    json = evalstore("doctor", "--json")
    assert json.exit_code == 3
    assert "sk-wrong-secret" not in ran.stdout + ran.stderr + json.stdout + json.stderr


def test_a_key_from_the_env_file_counts_and_the_file_is_named(
    project: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESK_KEY", "")
    monkeypatch.delenv("DESK_KEY")
    (project / ".env").write_text(f"DESK_KEY={KEY}\n")
    ran = evalstore("doctor")
    assert ran.exit_code == 0
    assert "ok  environment  .env" in lines(ran.stdout)
    assert KEY not in ran.stdout + ran.stderr


def test_an_unknown_model(project: Path, evalstore: Evalstore, documents: Any) -> None:
    edit(project / "models/one.yaml", "providerModelCode: m", "providerModelCode: nope")
    ran = evalstore("doctor")
    assert ran.exit_code == 3
    shown = lines(ran.stdout)[-4:-2]
    url = re.search(r"http://\S+/v1/chat/completions", shown[0])
    assert url is not None
    assert shown == [
        f"fail  model one  the server answered 404 at {url[0]}: The model does not exist",
        "  hint: check the name: 'providerModelCode' of the model file, and 'baseURL' of its "
        "provider",
    ]
    [item] = documents("doctor")["models"]
    assert (item["reachable"], item["known"], item["status"]) == (True, False, 404)


def test_a_refused_connection(project: Path, evalstore: Evalstore, documents: Any) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        (project / "providers/desk.yaml").write_text(provider(url))
        ran = evalstore("doctor")
        [item] = documents("doctor")["models"]
    assert ran.exit_code == 3
    assert "fail  model one  nothing listens at http://127.0.0.1:" in "\n".join(lines(ran.stdout))
    assert "hint: start the server, or correct 'baseURL' of its provider" in ran.stdout
    assert (item["reachable"], item["known"], item["class"]) == (False, None, "connection")


def test_a_server_that_hangs_is_left_in_time(
    project: Path, evalstore: Evalstore, server: endpoint.Endpoint
) -> None:
    server.reply = lambda body: endpoint.FAULTS["hang"]
    ran = evalstore("doctor", "--timeout", "0.2")
    assert ran.exit_code == 3
    assert lines(ran.stdout)[-4:-2] == [
        "fail  model one  no answer within 0.2 s",
        "  hint: raise --timeout, or lower 'concurrency' if the server is busy with your calls",
    ]


def test_a_busy_server_is_there(
    project: Path, evalstore: Evalstore, server: endpoint.Endpoint
) -> None:
    server.reply = lambda body: endpoint.FAULTS["429"]
    ran = evalstore("doctor")
    assert ran.exit_code == 0
    assert "warn  model one  the server answered 429" in "\n".join(lines(ran.stdout))


def test_models_are_asked_side_by_side(
    project: Path, evalstore: Evalstore, server: endpoint.Endpoint
) -> None:
    tree(project, {f"models/{n}.yaml": MODEL.replace("one", f"m{n}") for n in range(4)})
    (project / "evalstore.yaml").write_text("candidates: [m0, m1, m2, m3]\n")
    waiting = threading.Barrier(4, timeout=60)

    def reply(body: dict[str, Any]) -> str:
        waiting.wait()
        return "Yes."

    server.reply = reply
    assert evalstore("doctor").exit_code == 0
    assert server.most_at_once == 4


def test_a_price_nobody_knows_is_a_warning(
    project: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(participants, "is_local", lambda _url: False)
    (project / "models/one.yaml").write_text(MODEL.partition("costs")[0])
    ran = evalstore("doctor")
    assert ran.exit_code == 0
    assert "warn  model one  its price is not known" in lines(ran.stdout)
    assert "price unknown" not in ran.stdout, "that is said once"
    assert lines(ran.stdout)[-1] == "1 model called, all answered; the pings cost an unknown amount"


def test_a_currency_without_a_rate_is_a_warning(project: Path, evalstore: Evalstore) -> None:
    edit(project / "models/one.yaml", "[{costPer", "[{currency: EUR, costPer")
    assert (
        "warn  currency  models/one.yaml:4: the price is unknown: no currency file for 'EUR'"
    ) in lines(evalstore("doctor", "--no-ping").stdout)
    tree(project, {"currencies/eur.yaml": "code: EUR\nrates: [{rateInUSD: 1.1}]\n"})
    assert "ok  currency  EUR" in lines(evalstore("doctor", "--no-ping").stdout)


def test_broken_settings_end_with_2(project: Path, evalstore: Evalstore) -> None:
    (project / "evalstore.yaml").write_text("candidates: 5\nattempts: x\n")
    ran = evalstore("doctor")
    assert ran.exit_code == 2
    assert lines(ran.stdout)[3:5] == [
        "fail  settings  2 errors in the settings",
        "  hint: 'evalstore check' lists them with their lines",
    ]


def test_broken_files_end_with_2_and_models_are_asked_all_the_same(
    project: Path, evalstore: Evalstore, server: endpoint.Endpoint
) -> None:
    (project / "tests/bad.md").write_text("---\ntag: [x]\n---\n# 👤\n\nHi\n\n---\n\nE\n")
    ran = evalstore("doctor")
    assert ran.exit_code == 2
    assert "fail  files  2 test files, 1 case: 1 error" in lines(ran.stdout)
    assert len(server.received) == 1


def test_a_workspace_without_tests_is_no_error_and_the_hint_writes_one(
    project: Path, evalstore: Evalstore
) -> None:
    for test in (project / "tests").iterdir():
        test.unlink()
    ran = evalstore("doctor", "--no-ping")
    assert ran.exit_code == 0
    at = lines(ran.stdout).index("warn  files  no tests yet")
    assert lines(ran.stdout)[at + 1] == "  hint: 'evalstore init tests/hello.md' writes one"
    assert evalstore("init", "tests/hello.md").exit_code == 0
    assert "ok  files  1 test file, 1 case: no problems" in lines(
        evalstore("doctor", "--no-ping").stdout
    )


def test_a_name_that_is_not_a_model_is_an_error(project: Path, evalstore: Evalstore) -> None:
    ran = evalstore("doctor", "-m", "oen")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == "error: unknown model 'oen' (-m)\nhint: did you mean 'one'?\n"


def test_the_store_is_named_and_unchanged(project: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    before = contents(project)
    output = next(line for line in lines(evalstore("doctor").stdout) if "  store  " in line)
    assert re.fullmatch(
        r"ok  store  \.evalstore/store\.db, \d+ KiB, version \d{4}, writable "
        r"\('evalstore fsck' checks its integrity\)",
        output,
    )
    assert contents(project) == before


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("UPDATE alembic_version SET version_num = '9999'", "version 9999, newer than"),
        ("DROP TABLE alembic_version", "cannot be read: it is not a store of evalstore"),
    ],
)
def test_a_store_that_cannot_be_used_ends_with_6(
    project: Path, evalstore: Evalstore, damage: str, message: str
) -> None:
    evalstore("run")
    with sqlite3.connect(project / ".evalstore/store.db") as store:
        store.execute(damage)
    ran = evalstore("doctor")
    assert ran.exit_code == 6
    assert any(message in line for line in lines(ran.stdout) if line.startswith("fail  store"))


def test_an_older_store_is_not_migrated_here(project: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    with closing(sqlite3.connect(project / ".evalstore/store.db")) as store, store:
        store.execute("UPDATE alembic_version SET version_num = '0001'")
    before = contents(project)
    ran = evalstore("doctor", "--no-ping")
    assert ran.exit_code == 0
    assert re.search(
        r"warn +store .*version 0001; the next command migrates it to \d{4}", ran.stdout
    )
    assert contents(project) == before


def test_a_store_in_a_place_that_cannot_be_written_is_read_all_the_same(
    project: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("run")
    monkeypatch.setattr("evalstore.store.sqlite.driver.os.access", lambda _path, _mode: False)
    ran = evalstore("doctor", "--no-ping")
    assert ran.exit_code == 6
    assert re.search(r"fail +store .*version \d{4}, read-only", ran.stdout)


def test_a_store_that_is_not_a_database_ends_with_6(project: Path, evalstore: Evalstore) -> None:
    tree(project, {".evalstore/store.db": b"this is not a database, and long enough to see" * 9})
    ran = evalstore("doctor", "--no-ping")
    assert ran.exit_code == 6
    assert "store.db cannot be read: file is not a database" in ran.stdout


def test_outside_of_a_workspace(
    evalstore: Evalstore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert evalstore("doctor").stderr.startswith("error: no evalstore.yaml in ")


def test_a_script_has_nobody_to_ask(workspace: Path, evalstore: Evalstore) -> None:
    ran = evalstore("doctor")
    assert ran.exit_code == 0
    assert lines(ran.stdout)[-1] == "no model was called"


@pytest.mark.parametrize("fault", [None, "401", "429", "hang"])
def test_a_diagnosis_has_its_shape(
    project: Path, documents: Any, server: endpoint.Endpoint, fault: str | None
) -> None:
    if fault:
        server.reply = lambda body: endpoint.FAULTS[fault]
    document = documents("doctor", "--timeout", "0.5" if fault == "hang" else "60")
    jsonschema.Draft202012Validator(schema_of(["doctor"])).validate(document)
    assert document["models"][0]["answered"] is (fault is None)


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        (KEY, None, "from the environment"),
        (None, KEY, "from .env"),
        (KEY, KEY, "the same in the environment and in .env"),
        (KEY, "sk-other", "from the environment, not the other one of .env"),
    ],
)
def test_it_says_which_of_two_keys_is_used(
    project: Path,
    evalstore: Evalstore,
    documents: Any,
    monkeypatch: pytest.MonkeyPatch,
    ours: str | None,
    theirs: str | None,
    words: str,
) -> None:
    if ours is None:
        monkeypatch.delenv("DESK_KEY")
    if theirs:
        (project / ".env").write_text(f"DESK_KEY={theirs}\n")
    assert f"DESK_KEY is set ({words}); " in evalstore("doctor", "--no-ping").stdout
    assert documents("doctor", "--no-ping")["models"][0]["keyOrigin"] == words


def test_a_key_that_may_not_be_sent_leaves_that_of_env(
    project: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVALSTORE_ALLOW_ENV")
    (project / ".env").write_text("DESK_KEY=sk-other\n")
    words = "DESK_KEY is set (from .env, not the other one of the environment); "
    assert words in evalstore("doctor", "--no-ping").stdout


def test_a_refused_call_without_a_key_names_the_field_that_is_missing(
    project: Path, evalstore: Evalstore, server: endpoint.Endpoint
) -> None:
    edit(project / "providers/desk.yaml", "apiKeyEnvVar: DESK_KEY\n", "")
    ran = evalstore("doctor")
    assert ran.exit_code == 3
    assert (
        "hint: check the key in the variable that 'apiKeyEnvVar' of the provider file names; "
        in ran.stdout
    )
    assert evalstore("run").stdout.endswith(
        "incomplete; 'evalstore log --failures' shows what to fix before running again\n"
    )
    hint = re.search(r"hint: (check .*?'baseURL')", re.sub(r"\s+", " ", ran.stdout))
    assert hint is not None
    for command in (("run",), ("log", "--failures")):
        assert hint[1] in evalstore(*command).stderr


@pytest.mark.parametrize("name", ["OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENROUTER_API_BASE"])
def test_addresses_without_an_effect_are_reported(
    project: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert name not in evalstore("doctor", "--no-ping").stdout
    monkeypatch.setenv(name, "http://elsewhere")
    ran = evalstore("doctor", "--no-ping")
    assert (
        f"{name} has no effect: '{name.split('_')[0].lower()}' is called at https://" in ran.stdout
    )
    assert "hint: write a provider file with 'baseURL' to call another place" in ran.stdout
