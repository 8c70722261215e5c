"""Applications as models, through the command line: nothing runs until it is trusted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evalstore.interfaces.cli.main import main
from evalstore.planning.options import Location
from evalstore.runs.workspace_checks import trust as operations
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.cli.test_documents import schema_of

pytestmark = pytest.mark.extended

BOT = """\
import json
import os
from lib import name

open({note!r}, "a").write("called\\n")

def answer(messages, **options):
    document = {{"messages": messages, "options": options, "name": name}}
    return {{
        "text": json.dumps(document),
        "usage": {{"input_tokens": 10, "output_tokens": 2}},
        "cost": 0.25,
    }}
"""
PROGRAM = """\
#!/bin/sh
echo called >> {note}
echo "Hi $1 $2"
"""
TEST = "# 👤\n\nHi\n\n---\n\n```checks\n- contains: Hi\n```\n"
WAITS = "which is not trusted on this machine, so it is not called"


@pytest.fixture
def note(tmp_path: Path) -> Path:
    """Where the applications note that they were called."""
    return tmp_path / "note"


@pytest.fixture
def bots(tmp_path: Path, note: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a function and a program as candidates. Nothing is trusted."""
    monkeypatch.setenv("EVALSTORE_TRUST_FILE", str(tmp_path / "trusted"))
    folder = tree(
        tmp_path / "w",
        {
            "evalstore.yaml": "candidates: [bot, prog]\n",
            "models/bot.yaml": "provider: python\ncode: apps/bot.py\nuses: [apps/lib.py]\n",
            "models/prog.yaml": "provider: command\ncode: apps/prog.sh text --mode\n",
            "apps/bot.py": BOT.format(note=str(note)),
            "apps/lib.py": "name = 'first'\n",
            "apps/prog.sh": PROGRAM.format(note=note),
            "tests/hi.md": TEST,
        },
    )
    monkeypatch.chdir(folder)
    return folder


def trust(*models: str) -> None:
    """Trust what models run."""
    names = [f"models/{model}.yaml" for model in models]
    operations.trust(Location(Path.cwd()), names, network=False)


# --- waiting for trust


@pytest.mark.parametrize(
    "argv",
    [
        *(
            ["check"],
            ["status"],
            ["status", "--explain"],
            ["run", "-n"],
            ["run"],
            ["run", "--judge-only"],
        ),
        *(["run", "-m", "bot"], ["run", "--refresh"], ["run", "--retry-errors"], ["doctor"]),
        *(["ls", "models"], ["ls", "cases"], ["log"], ["show"], ["diff"], ["stats"], ["fsck"]),
        *(["grep", "x"], ["run", "-J", "bot"], ["run", "--offline"], ["trust", "apps/bot.py"]),
    ],
)
def test_no_command_runs_what_is_not_trusted(bots: Path, note: Path, argv: list[str]) -> None:
    main(["run", "-q"])
    main(argv)
    assert not note.exists()


BOTH = "'evalstore trust models/bot.yaml' and 'evalstore trust models/prog.yaml'"


def test_an_untrusted_application_waits_and_says_what_allows_it(
    bots: Path, evalstore: Evalstore
) -> None:
    ran = evalstore("run")
    assert ran.exit_code == 3
    assert (
        ran.stderr
        == """\
    (read it, then use "evalstore trust models/bot.yaml" to allow it)
    (read it, then use "evalstore trust models/prog.yaml" to allow it)
"""
    )
    assert (
        ran.stdout
        == f"""\
pending    tests/hi.md  bot
pending    tests/hi.md  prog

bot   ░░░░░░░░░░░░░░░░░░░░  0/0 pass  -
prog  ░░░░░░░░░░░░░░░░░░░░  0/0 pass  -
0 pass, 2 pending
    models/bot.yaml runs 'apps/bot.py:answer', {WAITS}
    models/prog.yaml runs './apps/prog.sh text --mode', {WAITS}
run <short> incomplete: 0 new answers, 0 new verdicts, $0
incomplete; {BOTH} allow the waiting models
"""
    )


def test_status_and_check_say_what_waits(bots: Path, evalstore: Evalstore) -> None:
    shown = evalstore("status").stdout
    assert "2 answers wait for trust:\n" in shown
    assert "No other pending work.\n" in shown
    checked = evalstore("check")
    assert checked.exit_code == 0
    assert checked.stderr.splitlines()[0] == (
        f"warning: models/bot.yaml: it runs 'apps/bot.py:answer', {WAITS}"
    )
    examined = evalstore("doctor").stdout
    assert "'apps/bot.py:answer' is not trusted on this machine" in examined
    assert "read what it runs, then 'evalstore trust models/bot.yaml'" in examined


def test_what_waits_for_trust_is_found_in_a_remote(
    bots: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answers of others count without trust: nothing runs here for them."""
    (bots / "tests/checks").mkdir()
    (bots / "tests/checks/own.py").write_text("def judge(answer):\n    return True\n")
    edit(bots / "tests/hi.md", "- contains: Hi", "- python: {file: checks/own.py, function: judge}")
    trust("bot", "prog")
    evalstore("trust", "-q", "tests/checks/own.py")
    evalstore("remote", "add", "origin", "shared")
    assert evalstore("run", "--fail-on", "none").exit_code == 0
    assert evalstore("push").exit_code == 0
    monkeypatch.setenv("EVALSTORE_TRUST_FILE", str(bots / "nobody"))
    here = ("--store", "empty.db")
    for path in (bots / ".evalstore/remotes").iterdir():
        path.unlink()
    unread = (
        "origin was not read yet: 'evalstore pull origin --for-plan' copies what it has of these "
        "answers"
    )
    assert evalstore("run", *here).stderr.splitlines()[0] == unread
    shown = evalstore("status", *here).stdout.splitlines()
    assert "2 answers wait for trust:" in shown
    assert shown[-2:] == ["No other pending work.", unread]
    read = evalstore("status", *here, "--remote", "origin").stdout
    known = "origin has 2 of the 2 answers: 'evalstore pull origin --for-plan' copies them"
    assert read.splitlines()[-1] == known
    ran = evalstore("run", "--remote", "origin", "tests/hi.md", "--fail-on", "none", *here)
    assert ran.stderr.startswith("pulled 2 answers, 2 verdicts from origin")
    assert ran.exit_code == 0
    assert evalstore("status", *here).stdout.startswith("Nothing to do: 2 answers of 2 candidates")


def test_the_documents_name_the_model_files(bots: Path, documents: Any) -> None:
    files = ["models/bot.yaml", "models/prog.yaml"]
    status, run = documents("status"), documents("run")
    assert (status["untrusted"], run["untrusted"]) == (files, files)
    assert (status["ask"], status["left"]) == (0, {"ask": 0, "judge": 0})
    assert (run["asked"], run["failed"], run["verdicts"]["pending"]) == (0, 0, 2)


def test_the_trust_that_a_check_has_is_not_enough(bots: Path, note: Path) -> None:
    uses = "python: {file: ../apps/bot.py, function: answer}"
    tree(bots, {"tests/hi.md": TEST.replace("contains: Hi", uses)})
    assert main(["trust", "--network", "apps/bot.py"]) == 0
    assert main(["run", "-q"]) == 3
    assert not note.exists()


def test_trust_of_an_application_is_not_trust_for_checks(bots: Path, evalstore: Evalstore) -> None:
    trust("bot")
    tree(bots, {"tests/hi.md": TEST.replace("contains: Hi", "python: {file: ../apps/bot.py, "
                                            "function: answer}")})  # fmt: skip
    assert "bot.py is not trusted on this machine, so its checks wait" in evalstore("run").stdout


def test_trust_shows_what_is_trusted(bots: Path, evalstore: Evalstore) -> None:
    tree(bots, {"models/bot.yaml": "provider: python\ncode: apps/lib.py:name\nenv: [A_KEY, B]\n"})
    shown = evalstore("trust", "models/bot.yaml", "models/prog.yaml").stdout.splitlines()
    assert shown[0] == "models/bot.yaml: trusted"
    quiet = evalstore("trust", "-q", "models/bot.yaml").stdout.splitlines()
    assert quiet == ["models/bot.yaml: trusted already", *shown[1:3]]  # and not what is in it
    assert shown[1].startswith("  15 bytes, 2 lines, sha256 ")
    assert shown[2:6] == [
        "  runs apps/lib.py:name with the network and A_KEY, B",
        "  | --- apps/lib.py",
        "  | name = 'first'",
        "models/prog.yaml: trusted",
    ]
    assert shown[7] == (
        "  runs ./apps/prog.sh text --mode with the network and no variables of your environment"
    )


def test_trust_refuses_what_nothing_would_run(bots: Path, evalstore: Evalstore) -> None:
    tree(bots, {"models/plain.yaml": "provider: openai\n", "models/bad.yaml": "provider: python\n"})
    for name, message in (
        ("models/plain.yaml", "is not the model file of an application, so nothing would run"),
        ("evalstore.yaml", "is not a model file of this workspace, so nothing would run it"),
        ("models/none.yaml", "file 'models/none.yaml' not found"),
        ("models/bad.yaml", "models/bad.yaml:1: the application has no 'code'"),
    ):
        ran = evalstore("trust", name)
        assert (ran.exit_code, message in ran.stderr) == (2, True), ran.stderr


def test_the_documents_of_trust_match_their_schema(bots: Path, documents: Any) -> None:
    for argv in (["models/bot.yaml"], ["--list"], ["--revoke", "models/bot.yaml"]):
        jsonschema.validate(documents("trust", *argv), schema_of(["trust"]))


# --- after trust


def test_once_trusted_both_answer(bots: Path, note: Path, documents: Any) -> None:
    trust("bot", "prog")
    ran = documents("run")
    assert (ran["asked"], ran["judged"], ran["untrusted"]) == (2, 2, [])
    assert ran["verdicts"]["pass"] == 2
    assert note.read_text() == "called\ncalled\n"
    spent = {spending["model"]: spending["cost"] for spending in ran["spending"]}
    assert spent == {"bot": 0.25, "prog": None}
    assert documents("run")["asked"] == 0
    assert main(["fsck", "-q"]) == 0


@pytest.mark.parametrize(
    ("changed", "model"),
    [
        ({"apps/lib.py": "name = 'second'\n"}, "bot"),
        ({"apps/bot.py": "def answer(m): return 'text'\n"}, "bot"),
        ({"models/bot.yaml": "provider: python\ncode: apps/bot.py:other\n",
          "apps/bot.py": "def other(m): return 'text'\n"}, "bot"),
        ({"models/bot.yaml": "provider: python\ncode: apps/bot.py\nuses: [apps/lib.py]\n"
          "env: [HIDDEN_KEY]\n"}, "bot"),
        ({"apps/prog.sh": "#!/bin/sh\necho text\n"}, "prog"),
        ({"models/prog.yaml": "provider: command\ncode: apps/prog.sh text --more\n"}, "prog"),
        ({"models/prog.yaml": "provider: command\ncode: sh apps/prog.sh text --mode\n"}, "prog"),
    ],
)  # fmt: skip
def test_any_change_needs_trust_again(
    bots: Path, note: Path, documents: Any, changed: dict[str, str], model: str
) -> None:
    trust("bot", "prog")
    tree(bots, changed)
    other = {"bot": "prog", "prog": "bot"}[model]
    ran = documents("run", "--refresh")
    assert ran["untrusted"] == [f"models/{model}.yaml"]
    assert [spending["model"] for spending in ran["spending"]] == [other]
    assert note.read_text() == "called\n"


def test_a_change_back_and_a_change_that_runs_nothing_need_no_trust(
    bots: Path, documents: Any
) -> None:
    trust("bot", "prog")
    tree(bots, {"apps/lib.py": "name = 'second'\n"})
    tree(bots, {"apps/lib.py": "name = 'first'\n"})
    text = (bots / "models/bot.yaml").read_text()
    tree(bots, {"models/bot.yaml": f"{text}costs: [{{costPerCall: 1}}]\ntags: [x]\n"})
    assert documents("run")["untrusted"] == []


def test_an_edit_asks_again_and_says_why(bots: Path, evalstore: Evalstore) -> None:
    trust("bot", "prog")
    evalstore("run")
    tree(bots, {"apps/lib.py": "name = 'second'\n"})
    words = "what models/bot.yaml runs ('apps/bot.py:answer') has changed since you trusted it"
    assert f"1 answer waits for trust:\n    {words}" in evalstore("status").stdout
    trust("bot")
    explained = evalstore("status", "--explain").stdout
    assert "tests/hi.md  bot  the candidate's code changed: apps/lib.py\n" in explained
    assert "Would ask (1):" in explained


def test_the_cached_status_is_not_used_after_an_edit(bots: Path, documents: Any) -> None:
    trust("bot", "prog")
    documents("run")
    assert documents("status")["ask"] == 0
    tree(bots, {"apps/lib.py": "name = 'second'\n"})
    assert documents("status")["untrusted"] == ["models/bot.yaml"]


def test_a_revoked_application_waits_again(
    bots: Path, documents: Any, evalstore: Evalstore
) -> None:
    trust("bot", "prog")
    assert evalstore("trust", "--revoke", "models/bot.yaml").stdout.startswith(
        "models/bot.yaml: no longer trusted\n"
    )
    assert documents("run")["untrusted"] == ["models/bot.yaml"]


def test_a_link_to_another_file_needs_trust_again(bots: Path, documents: Any) -> None:
    trust("bot", "prog")
    tree(bots, {"apps/other.sh": "#!/bin/sh\necho text\n"})
    (bots / "apps/prog.sh").unlink()
    (bots / "apps/prog.sh").symlink_to("other.sh")
    assert documents("run")["untrusted"] == ["models/prog.yaml"]


# --- what an application is sent


def asked(documents: Any, *argv: str) -> list[Any]:
    """What the function of `bot` was called with, for each answer of a new run."""
    trust("bot")
    ran = documents("run", "-m", "bot", *argv)
    sessions = [session for case in ran["cases"] for session in case["sessions"]]
    shown = [documents("show", session) for session in sessions]
    return [json.loads(turn["text"]) for answer in shown for turn in answer["turns"]]


def test_a_function_gets_the_conversation_in_openai_s_form(bots: Path, documents: Any) -> None:
    tree(
        bots,
        {
            "evalstore.yaml": "candidates: [bot]\nattempts: 2\n",
            "models/bot.yaml": (
                "provider: python\ncode: apps/bot.py\nuses: [apps/lib.py]\n"
                "providerOptions: {style: short}\n"
            ),
            "tools/look.yaml": "name: look\ndescription: Looks.\n",
            "tests/hi.md": (
                "---\navailableTools: [look]\ntags: [_has_tools]\n"
                "options: {temperature: 0.5, seed: 7}\n---\n"
                "# ⚙️\n\nBe kind.\n\n# 👤\n\nHi `{{_file:dot.png}}`\n\n"
                "---\n\n```checks\n- contains: Hi\n```\n"
            ),
            "tests/dot.png": b"\x89PNG\r\n\x1a\n",
        },
    )
    both = asked(documents)
    assert len(both) == 2
    assert both[0] == both[1]
    assert [message["role"] for message in both[0]["messages"]] == ["system", "user"]
    parts = both[0]["messages"][1]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url"]
    options = both[0]["options"]
    assert options["tools"][0]["function"]["name"] == "look"
    assert {name: options[name] for name in ("temperature", "seed", "style")} == {
        "temperature": 0.5,
        "seed": 7,
        "style": "short",
    }


def test_a_conversation_of_several_turns(bots: Path, documents: Any) -> None:
    source = "def answer(messages):\n    return f'turn {len(messages)}'\n"
    turns = "# 👤\n\nOne\n\n# 🤖 @first\n\n# 👤\n\nTwo\n\n---\n\n```checks\n- equals: turn 3\n```\n"
    tree(bots, {"apps/bot.py": source, "tests/hi.md": turns})
    trust("bot")
    assert documents("run", "-m", "bot")["verdicts"]["pass"] == 1


def test_a_function_can_judge(bots: Path, documents: Any) -> None:
    judge = "def answer(messages, **options):\n    return {'pass': True, 'feedback': 'kind'}\n"
    tree(
        bots,
        {
            "evalstore.yaml": "candidates: [prog]\nevaluators: [judge]\n",
            "models/judge.yaml": "provider: python\ncode: apps/judge.py\n",
            "apps/judge.py": judge,
            "tests/hi.md": "# 👤\n\nHi\n\n---\n\nBe kind.\n",
        },
    )
    trust("prog")
    waiting = documents("run")
    assert (waiting["asked"], waiting["untrusted"]) == (1, ["models/judge.yaml"])
    trust("judge")
    ran = documents("run")
    assert (ran["asked"], ran["verdicts"]["pass"]) == (0, 1)


def test_all_that_waits_for_trust_is_named_at_once(
    bots: Path, documents: Any, evalstore: Evalstore
) -> None:
    """What answers, what judges and what checks, before there is an answer to judge."""
    tree(
        bots,
        {
            "evalstore.yaml": "candidates: [prog]\nevaluators: [bot]\n",
            "tests/checks/own.py": "def judge(answer):\n    return True\n",
            "tests/hi.md": (
                "# 👤\n\nHi\n\n---\n\nBe kind.\n\n"
                "```checks\n- python: {file: checks/own.py, function: judge}\n```\n"
            ),
        },
    )
    files = ["models/bot.yaml", "models/prog.yaml", "tests/checks/own.py"]
    assert documents("status")["untrusted"] == files
    shown = evalstore("status").stdout.splitlines()
    assert shown[2:6] == [
        "1 answer waits for trust:",
        f"    models/bot.yaml runs 'apps/bot.py:answer', {WAITS}",
        f"    models/prog.yaml runs './apps/prog.sh text --mode', {WAITS}",
        "    tests/checks/own.py is not trusted on this machine, so its checks wait",
    ]
    assert documents("run")["untrusted"] == files
    assert evalstore("trust", "-q", *files).exit_code == 0
    status = documents("status")
    assert (status["untrusted"], status["ask"], status["judge"]) == ([], 1, 2)


def test_keys_come_from_the_user_or_from_the_workspace(
    bots: Path, documents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["MINE_KEY", "BOTH_KEY", "THEIRS_KEY", "LD_PRELOAD", "PYTHONPATH", "NONE_KEY"]
    source = (
        "import json, os\ndef answer(messages):\n"
        f"    return json.dumps([os.environ.get(name) for name in {names!r}])\n"
    )
    env = "BOTH_KEY=workspace\nTHEIRS_KEY=theirs\nLD_PRELOAD=/x.so\nPYTHONPATH=/x\nOTHER_KEY=x\n"
    model = f"provider: python\ncode: apps/bot.py\nenv: [{', '.join(names)}]\n"
    tree(bots, {"apps/bot.py": source, ".env": env, "models/bot.yaml": model})
    monkeypatch.setenv("MINE_KEY", "user")
    monkeypatch.setenv("BOTH_KEY", "user")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert asked(documents) == [["user", "user", "theirs", None, None, None]]


def test_a_difference_says_that_the_code_changed(bots: Path, evalstore: Evalstore) -> None:
    trust("bot", "prog")
    evalstore("run")
    tree(bots, {"apps/prog.sh": "#!/bin/sh\necho Bye\n"})
    trust("prog")
    assert evalstore("run").exit_code == 1
    assert "the candidate's code changed: apps/prog.sh" in evalstore("diff", "@~1", "@").stdout


CRASH = """\
def answer(messages, **options):
    return str(1 // 0)
"""
BUSY = """\
def answer(messages, **options):
    raise ConnectionError("the index is busy")
"""
FIX = "incomplete; 'evalstore log --failures' shows what to fix before running again\n"


@pytest.mark.parametrize("file", ["apps/bot.py", "apps/lib.py"])
def test_a_part_of_an_application_is_not_trusted_alone(
    bots: Path, evalstore: Evalstore, file: str
) -> None:
    ran = evalstore("trust", file)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (
        2,
        "",
        f"error: '{file}' is part of the application 'models/bot.yaml', trusted as a whole\n"
        "hint: evalstore trust models/bot.yaml\n",
    )


@pytest.mark.parametrize(
    ("code", "advice"),
    [(CRASH, FIX), (BUSY, "incomplete; running again may help\n")],
    ids=["a bug of the application", "a transient error"],
)
def test_running_again_is_recommended_for_transient_errors_only(
    bots: Path, evalstore: Evalstore, code: str, advice: str
) -> None:
    tree(bots, {"apps/bot.py": code})
    edit(bots / "evalstore.yaml", "[bot, prog]", "[bot]\nretries: 0")
    trust("bot")
    ran = evalstore("run")
    assert ran.exit_code == 3
    assert ran.stdout.endswith(advice)


def test_a_run_with_both_kinds_of_failures_says_which_help_to_repeat(
    bots: Path, evalstore: Evalstore
) -> None:
    tree(bots, {"apps/bot.py": CRASH, "apps/prog.sh": "#!/bin/sh\nexit 75\n"})
    edit(bots / "evalstore.yaml", "[bot, prog]", "[bot, prog]\nretries: 0")
    trust("bot", "prog")
    assert evalstore("run").stdout.endswith(
        "incomplete; running again may help with 1 failed call; the others need to be fixed first\n"
    )


MIXED = """\
def answer(messages, **options):
    text = messages[-1]["content"]
    return {"text": text, "cost": 0.25} if text == "Hi" else text
"""


def test_an_answer_without_a_price_does_not_hide_the_reported_costs(
    bots: Path, evalstore: Evalstore, documents: Any
) -> None:
    tree(bots, {"apps/bot.py": MIXED, "tests/ho.md": TEST.replace("\nHi\n", "\nHo Hi\n")})
    edit(bots / "evalstore.yaml", "[bot, prog]", "[bot]")
    trust("bot")
    ran = evalstore("run").stdout
    least = "at least $0.2500 (1 call without a price)"
    assert f"bot  2 calls  0 tokens in  0 out  {least}\n" in ran
    assert f"complete: 2 new answers, 2 new verdicts, {least}\n" in ran
    assert f"2 new verdicts, {least}\n" in evalstore("show").stdout
    assert f"2 new verdicts, {least}\n" in evalstore("log").stdout
    assert "the price of 1 answer or verdict is unknown" in evalstore("stats").stderr
    document = documents("run", "--refresh")
    jsonschema.Draft202012Validator(schema_of(["run"])).validate(document)
    assert document["cost"] is None
    [spending] = document["spending"]
    assert (spending["cost"], spending["knownCost"], spending["unpriced"]) == (None, 0.25, 1)


def test_an_answer_of_a_scripted_model_without_costs_is_free(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    model = workspace / "models/one.yaml"
    model.write_text(model.read_text().partition("costs:")[0])
    session = documents("run")["cases"][0]["session"]
    assert "\n$0, " in evalstore("show", session).stdout


JUDGE = """\
def answer(messages, **options):
    return {{"text": '{{"pass": true, "feedback": "{words}"}}', "cost": 0.125}}
"""


def test_an_application_that_judges_is_explained_by_its_code(
    bots: Path, evalstore: Evalstore
) -> None:
    tree(
        bots,
        {"apps/bot.py": JUDGE.format(words="fine"), "tests/hi.md": "# 👤\n\nHi\n\n---\n\nGood?\n"},
    )
    edit(bots / "evalstore.yaml", "[bot, prog]", "[prog]\nevaluators: [bot]")
    trust("bot", "prog")
    assert evalstore("run").exit_code == 0
    tree(bots, {"apps/bot.py": JUDGE.format(words="good")})
    trust("bot")
    shown = evalstore("status", "--explain").stdout
    assert "at an unknown price (that of 'bot')" in shown  # nothing is stored of the new code
    assert "the judge's code changed: apps/bot.py" in shown
    assert "new judge" not in shown


def test_an_estimate_takes_what_stored_answers_and_judgements_have_cost(
    bots: Path, evalstore: Evalstore, documents: Any
) -> None:
    judged = {
        "apps/bot.py": JUDGE.format(words="fine"),
        "tests/hi.md": "# 👤\n\nHi\n\n---\n\nGood?\n",
    }
    tree(bots, judged)
    edit(bots / "evalstore.yaml", "[bot, prog]", "[bot]\nevaluators: [bot]")
    trust("bot")
    assert "at an unknown price (that of 'bot')" in evalstore("status").stdout
    assert evalstore("run").exit_code == 0
    edit(bots / "tests/hi.md", "Hi", "Hello")
    assert ", about $0.2500" in evalstore("status").stdout
    assert documents("status")["cost"] == 0.25


def test_several_models_that_wait_are_not_told_as_one(bots: Path, evalstore: Evalstore) -> None:
    assert evalstore("run").stdout.endswith(f"incomplete; {BOTH} allow the waiting models\n")
    trust("bot")
    advice = "incomplete; 'evalstore trust models/prog.yaml' allows the waiting model\n"
    assert evalstore("run").stdout.endswith(advice)


def test_an_estimate_of_edited_code_takes_what_the_answers_before_have_cost(
    bots: Path, evalstore: Evalstore
) -> None:
    reply = "def answer(messages, **options):\n    return {{'text': {!r}, 'cost': 0.125}}\n"
    tree(bots, {"apps/bot.py": reply.format("Hi")})
    edit(bots / "evalstore.yaml", "[bot, prog]", "[bot]")
    trust("bot")
    evalstore("run")
    tree(bots, {"apps/bot.py": reply.format("Ho")})
    trust("bot")
    assert ", about $0.1250" in evalstore("status").stdout
    tree(bots, {"tests/new.md": TEST.replace("\nHi\n", "\nWhat is new?\n")})
    assert ", about $0.2500" in evalstore("status").stdout  # of its other answers
    bounded = evalstore("run", "--max-cost", "1")
    assert bounded.exit_code == 2
    assert "what an application reports comes too late" in bounded.stderr


def test_the_page_of_an_answer_names_the_files_of_the_code(
    bots: Path, evalstore: Evalstore, documents: Any
) -> None:
    edit(bots / "evalstore.yaml", "[bot, prog]", "[bot]")
    trust("bot")
    session = documents("run")["cases"][0]["session"]
    pages = [evalstore("show", name).stdout for name in (session, "tests/hi.md")]
    for page in pages:
        assert "\ncode apps/bot.py <short>\n" in page
        assert "model options" not in page
        assert ", judging version <short>" in " ".join(page.split())


def test_doctor_does_not_ask_for_the_price_of_an_application_that_reports_its_cost(
    bots: Path, evalstore: Evalstore
) -> None:
    trust("bot", "prog")
    shown = evalstore("doctor").stdout
    of_bot = [line for line in shown.splitlines() if "model bot" in line]
    assert "its price is not known" not in "".join(of_bot)
    assert "reports its cost" in "".join(of_bot)
    assert "model prog   its price is not known\n" in shown
    assert "or let the application report its 'cost'\n" in shown


def test_an_edited_test_of_a_model_that_is_not_trusted_is_pending(
    bots: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust("bot", "prog")
    evalstore("run", "--yes")
    monkeypatch.setenv("EVALSTORE_TRUST_FILE", str(bots / "nobody"))
    test = bots / "tests/hi.md"
    test.write_text(test.read_text().replace("# 👤\n\n", "# 👤\n\nNow: ", 1))
    shown = evalstore("status").stdout
    assert "  M.  tests/hi.md  1 new or edited case pending\n" in shown, shown
    assert "2 answers wait for trust" in shown
