"""`run --watch`, `judge --watch`: saved files lead to rounds, in a real process."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evalstore.interfaces.cli.main import main
from evalstore.planning.options import Location
from evalstore.results.log.log import log
from evalstore.runs.watch import FileWatcher
from evalstore.workspace.folder import WorkspaceFolder
from tests import endpoint
from tests.builders import HELLO, tree
from tests.forked_programs import RunningProgram, Starter
from tests.interfaces.cli.conftest import ONE, Evalstore
from tests.interfaces.cli.run.test_run import edit

pytestmark = pytest.mark.extended

ROOT = Path(__file__).parents[4]
PATIENCE = 60.0
"""Seconds until a test gives up."""
LOOKS = 0.05
"""Seconds between two looks at a terminal."""
WAITING = "watching for changes; Ctrl-C ends\n"


class Watching:
    """A process that watches, and what it has printed up to now."""

    def __init__(self, process: RunningProgram) -> None:
        self.process = process
        self._waited = 0

    @property
    def err(self) -> str:
        """All that it has said up to now."""
        return self.process.err

    def wait_for(self, text: str, count: int = 1) -> None:
        """Wait until a text has been said so often on stderr."""
        self.process.wait_until(lambda: self.err.count(text) >= count)

    def round(self) -> str:
        """Wait for the end of one more round; all that was said in it, without times."""
        self._waited += 1
        self.wait_for(WAITING, self._waited)
        return re.sub(r"\d\d:\d\d:\d\d", "<time>", self.err.split(WAITING)[self._waited - 1])

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Interrupt it, or find it at its end; the exit code."""
        self.process.send(number)
        return self.finish()

    def finish(self) -> int:
        """Wait for its end; the exit code."""
        return self.process.finish()[0]

    def documents(self) -> list[Any]:
        """The JSON documents on stdout."""
        return documents_in(self.process.out)


Watch = Callable[..., Watching]


@pytest.fixture
def watch(workspace: Path, start: Starter) -> Watch:
    """Start to watch the workspace in a process of its own."""

    def run(*arguments: str) -> Watching:
        return Watching(start(*(arguments or ("run", "--watch", "--json")), folder=workspace))

    return run


class Steps:
    """What happens in the pauses between looks, one step in each; then Ctrl-C is pressed."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self._left = list(steps)

    def sleep(self, _seconds: float) -> None:
        """A pause."""
        if not self._left:
            raise KeyboardInterrupt
        self._left.pop(0)()

    monotonic = staticmethod(time.monotonic)


def nothing() -> None:
    pass


@dataclass
class Played:
    """A watch that is over."""

    exit_code: int
    rounds: list[str]
    """What was said in each round; the last one is the goodbye."""
    documents: list[Any]


Play = Callable[..., Played]


@pytest.fixture
def play(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Play]:
    """Watch in this process while edits are made, one for each further round."""
    handler = signal.getsignal(signal.SIGTERM)

    def run(*edits: Callable[[], object], command: str = "run --json") -> Played:
        steps = [step for edit in edits for step in (edit, nothing)]
        with monkeypatch.context() as patch:
            patch.setattr("evalstore.runs.watch.time", Steps(*steps))
            exit_code = main([*command.split(), "--watch"])
        out, err = capsys.readouterr()
        output = re.sub(r"\d\d:\d\d:\d\d", "<time>", err).split(f"<time> {WAITING}")
        return Played(exit_code, output, documents_in(out) if "--json" in command else [])

    yield run
    signal.signal(signal.SIGTERM, handler)


def documents_in(text: str) -> list[Any]:
    """JSON documents, each followed by a line end."""
    actual = []
    while text:
        document, end = json.JSONDecoder().raw_decode(text)
        assert text[end] == "\n"
        actual.append(document)
        text = text[end + 1 :]
    return actual


def editing(file: Path, old: str, new: str) -> Callable[[], None]:
    return lambda: edit(file, old, new)


@pytest.fixture
def weather(workspace: Path) -> Path:
    return workspace / "tests/weather.md"


@pytest.fixture
def leniently(weather: Path) -> Callable[[], None]:
    """The edit of the instructions that lets everything pass."""
    return editing(weather, "must be warm", "may be cold")


@pytest.fixture
def warmly(weather: Path) -> Callable[[], None]:
    """An edit of the question."""
    return editing(weather, "How is", "How warm is")


def counts(report: Any) -> tuple[int, int]:
    return report["asked"], report["judged"]


# --- rounds


def test_an_edit_of_instructions_is_judged_and_nothing_is_asked(
    watch: Watch, leniently: Callable[[], None]
) -> None:
    watching = watch()
    assert "2 answers to ask and 2 verdicts to make, about $" in watching.round()
    leniently()
    second = watching.round()
    assert re.match(r"\n── <time> tests/weather\.md ─+\n2 verdicts to make, at no cost\n", second)
    assert 'since the last run: 1 fixed\n  (use "evalstore diff ' in second
    assert watching.end() == 0
    before, after = watching.documents()
    assert [counts(before), counts(after)] == [(2, 2), (0, 2)]
    assert [before["gate"], after["gate"]] == ["failed", "passed"]


def test_an_edited_question_is_asked_again(play: Play, warmly: Callable[[], None]) -> None:
    played = play(warmly)
    assert "2 answers to ask and 2 verdicts to make, about $0.0" in played.rounds[1]
    assert "since the last run: 2 with the same answer\n" in played.rounds[1]
    assert counts(played.documents[1]) == (2, 2)


def test_an_edit_that_is_undone_is_recognised_from_the_store(
    weather: Path, play: Play, leniently: Callable[[], None]
) -> None:
    played = play(leniently, editing(weather, "may be cold", "must be warm"))
    assert "nothing to ask or judge: everything is stored\n" in played.rounds[2]
    assert "since the last run: 1 broke" in played.rounds[2]
    assert counts(played.documents[2]) == (0, 0)
    assert played.exit_code == 1


def test_a_file_that_is_saved_as_it_was_is_nothing_to_do(
    workspace: Path, weather: Path, play: Play
) -> None:
    played = play(weather.touch)
    assert played.rounds[1].endswith("─\nnothing to do\n")
    assert played.exit_code == 1
    assert len(played.documents) == log(Location(workspace)).total == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [("tags: [weather]", "tags: [weather, north]"), ("# 👤", "<!-- a comment -->\n# 👤")],
    ids=["tag", "comment"],
)
def test_an_edit_that_changes_no_version_is_nothing_to_do(
    weather: Path, play: Play, old: str, new: str
) -> None:
    assert play(editing(weather, old, new)).rounds[1].endswith("─\nnothing to do\n")


def test_an_edit_outside_of_the_selection_is_nothing_to_do(
    workspace: Path, play: Play, leniently: Callable[[], None]
) -> None:
    tree(workspace, {"tests/other.md": HELLO})
    assert "nothing to do" in play(leniently, command="run tests/other.md").rounds[1]


def test_another_way_to_count_votes_is_reported_though_nothing_is_to_be_done(
    workspace: Path, play: Play
) -> None:
    settings = workspace / "evalstore.yaml"
    played = play(editing(settings, "candidates:", "verdict: all\ncandidates:"))
    assert "nothing to ask or judge: everything is stored\n" in played.rounds[1]
    assert len(played.documents) == 2


def test_files_that_tests_mention_are_watched(workspace: Path, weather: Path, play: Play) -> None:
    note = workspace / "tests/note.txt"
    note.write_text("a note")
    edit(weather, "How is", "{{_file:note.txt}} How is")
    played = play(lambda: note.write_text("another note"))
    assert "tests/note.txt" in played.rounds[1]
    assert "2 answers to ask" in played.rounds[1]


def test_all_errors_in_files_are_reported_and_watched_until_they_are_gone(
    workspace: Path, play: Play
) -> None:
    item, two = workspace / "tests/one.md", workspace / "tests/two.md"
    for file in (item, two):
        file.write_text("# 👤\n\n{{no}}\n")
    played = play(lambda: item.write_text(HELLO), two.unlink)
    assert "error: tests/one.md:3:" in played.rounds[0]
    assert "error: tests/two.md:3:" in played.rounds[0]
    assert "error: tests/one.md" not in played.rounds[1]
    assert "3 answers to ask" in played.rounds[2]
    assert len(played.documents) == 1


def test_the_exit_code_of_files_with_errors_is_2(weather: Path, play: Play) -> None:
    assert play(lambda: weather.write_text("{{no}}")).exit_code == 2


def test_broken_settings_do_not_end_the_watch(workspace: Path, play: Play) -> None:
    file = workspace / "evalstore.yaml"
    settings = file.read_text()
    played = play(
        lambda: file.write_text("candidates: ["), file.unlink, lambda: file.write_text(settings)
    )
    assert "error: evalstore.yaml:" in played.rounds[1]
    assert "error: evalstore.yaml: cannot be read: No such file or directory" in played.rounds[2]
    assert "nothing to do" in played.rounds[3]
    assert played.exit_code == 1


def test_folders_of_new_settings_are_watched(workspace: Path, play: Play) -> None:
    file = tree(workspace, {"more/a.md": HELLO}) / "more/a.md"
    settings = workspace / "evalstore.yaml"
    played = play(
        editing(settings, "candidates:", "paths: {tests: more}\ncandidates:"),
        editing(file, "Hello", "Hi"),
    )
    assert "1 answer to ask and 1 verdict to make" in played.rounds[1]
    assert "── <time> more/a.md ──" in played.rounds[2]


def test_a_call_that_failed_is_tried_again_when_a_file_is_saved(
    workspace: Path, play: Play
) -> None:
    model = workspace / "models/one.yaml"
    failing = re.sub(r"\{answer: Warm.*", "{error: {status: 500}}", ONE)
    model.write_text(failing)
    played = play(lambda: model.write_text(ONE), command="run --json --retries 0")
    assert "1 answer to ask and 1 verdict to make" in played.rounds[1]
    assert [document["status"] for document in played.documents] == ["incomplete", "complete"]


def test_a_store_that_cannot_be_used_does_not_end_the_watch(
    workspace: Path, weather: Path, play: Play, leniently: Callable[[], None]
) -> None:
    versions = ["from the future"]

    def swap_version() -> None:
        with closing(sqlite3.connect(workspace / ".evalstore/store.db")) as store, store:
            versions.extend(*store.execute("SELECT version_num FROM alembic_version"))
            store.execute("UPDATE alembic_version SET version_num = ?", (versions.pop(0),))

    def break_it() -> None:
        swap_version()
        leniently()

    def repair_it() -> None:
        swap_version()
        weather.touch()

    played = play(break_it, repair_it)
    assert "error: the store" in played.rounds[1]
    assert "2 verdicts to make" in played.rounds[2]
    assert played.exit_code == 0


def test_judge_never_asks(
    evalstore: Evalstore,
    play: Play,
    leniently: Callable[[], None],
    warmly: Callable[[], None],
) -> None:
    evalstore("run")
    played = play(leniently, warmly, command="run --judge-only --json")
    assert "\n2 verdicts to make, at no cost\n" in played.rounds[1]
    assert "\nnothing to ask or judge" in played.rounds[2]
    assert [counts(document) for document in played.documents] == [(0, 0), (0, 2), (0, 0)]


def test_an_edited_key_is_used_at_once(workspace: Path, watch: Watch) -> None:
    with endpoint.running() as server:
        tree(
            workspace,
            {
                ".env": "DESK_KEY=old\n",
                "providers/desk.yaml": json.dumps(
                    {
                        "code": "desk",
                        "type": "openai-compatible",
                        "baseURL": server.url,
                        "apiKeyEnvVar": "DESK_KEY",
                    }
                ),
                "models/far.yaml": "id: far\nprovider: desk\n",
            },
        )
        server.reply = lambda _: endpoint.failure(401, "no", "bad_key")
        watching = watch("run", "--watch", "--json", "-m", "far")
        watching.round()
        server.reply = lambda _: "Warm."
        (workspace / ".env").write_text("DESK_KEY=new\n")
        watching.round()
        keys = [request.headers["authorization"] for request in server.received]
    assert set(keys[:1] + keys[-1:]) == {"Bearer old", "Bearer new"}
    assert keys[-2:] == ["Bearer new"] * 2


# --- choosing


def test_an_empty_selection_is_reported_in_one_line(weather: Path, play: Play) -> None:
    played = play(weather.touch, command="run --json --lf")
    assert played.rounds[0] == "nothing is selected: no runs yet\n"
    assert played.exit_code == 5


def test_lf_follows_what_fails_until_nothing_does(
    weather: Path, evalstore: Evalstore, play: Play, leniently: Callable[[], None]
) -> None:
    evalstore("run")
    again = editing(weather, "may be cold", "must be short")
    played = play(leniently, again, command="run --json --lf")
    assert "1 verdict to make" in played.rounds[1]
    assert "nothing is selected: nothing failed when it last ran" in played.rounds[2]
    assert [len(document["cases"]) for document in played.documents] == [1, 1]
    assert played.exit_code == 0


def test_what_needs_the_network_is_left_and_not_reported_as_stored(
    workspace: Path, play: Play
) -> None:
    played = play(command="run --json --offline -m openai/gpt-4o-mini")
    assert played.rounds[0] == "nothing to ask or judge: no model may be called for what is left\n"
    assert played.exit_code == 3


def test_changed_is_what_was_edited_since_the_last_round(
    workspace: Path, play: Play, leniently: Callable[[], None]
) -> None:
    tree(workspace, {"tests/other.md": HELLO})
    played = play(leniently, command="run --json --changed")
    assert [len(document["cases"]) for document in played.documents] == [3, 2]


@pytest.mark.parametrize("option", ["--refresh", "--retry-errors", "--dry-run"])
def test_what_makes_no_sense_at_each_save_is_refused(
    workspace: Path, evalstore: Evalstore, option: str
) -> None:
    ran = evalstore("run", "--watch", option)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"error: '--watch' cannot be combined with '{option}'")
    assert "\nhint: " in ran.stderr


def test_a_command_that_cannot_work_ends_at_once(evalstore: Evalstore, workspace: Path) -> None:
    ran = evalstore("run", "--watch", "tests/nothing.md")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: ")


# --- money

TIGHT = "maxTestOutputTokens: 2\ncandidates:"
"""An answer costs $0.03, and with this less than that is set aside for it."""


def test_max_cost_holds_for_all_rounds_together(
    workspace: Path, play: Play, warmly: Callable[[], None]
) -> None:
    edit(workspace / "evalstore.yaml", "candidates:", TIGHT)
    played = play(warmly, command="run --json --max-cost 0.07")
    assert played.exit_code == 4
    assert played.rounds[1].endswith(
        "the watch ends: the next call may cost more than is left\n"
        "  ($0.0600 of the $0.0700 of --max-cost are spent)\n"
    )
    assert [document["status"] for document in played.documents] == ["complete", "over budget"]


def test_rounds_that_cost_nothing_run_when_all_is_spent(
    workspace: Path, play: Play, leniently: Callable[[], None]
) -> None:
    edit(workspace / "evalstore.yaml", "candidates:", TIGHT)
    played = play(leniently, command="run --json --max-cost 0.06")
    assert [counts(document) for document in played.documents] == [(2, 2), (0, 2)]
    assert played.exit_code == 0


def test_max_time_bounds_a_round_and_not_the_watch(play: Play, weather: Path) -> None:
    played = play(weather.touch, command="run --json --max-time 0 --max-cost 100")
    assert [document["status"] for document in played.documents] == ["over budget"] * 2
    assert played.exit_code == 4
    assert "ended after 2 runs, $0\n" in played.rounds[2]


def test_a_price_that_nobody_agrees_to_does_not_end_the_watch(workspace: Path, play: Play) -> None:
    settings = workspace / "evalstore.yaml"
    edit(settings, "candidates:", "confirmAbove: 0.01\ncandidates:")
    played = play(editing(settings, "confirmAbove: 0.01", "confirmAbove: null"))
    assert "error: this run would ask for 2 answers" in played.rounds[0]
    assert "2 answers to ask" in played.rounds[1]
    assert len(played.documents) == 1


# --- the end


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_waiting_ends_with_the_exit_code_of_the_last_round(
    workspace: Path, watch: Watch, number: signal.Signals
) -> None:
    watching = watch()
    watching.round()
    assert watching.end(number) == 1
    assert watching.err.endswith("ended after 1 run, $0.0600\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_round_that_is_interrupted_finishes_what_is_in_flight_and_ends_the_watch(
    workspace: Path, watch: Watch, number: signal.Signals
) -> None:
    came, go = threading.Event(), threading.Event()

    def reply(_: dict[str, Any]) -> str:
        came.set()
        go.wait(PATIENCE)
        return "Warm."

    with endpoint.running() as server:
        server.reply = reply
        tree(
            workspace,
            {
                "providers/desk.yaml": json.dumps(
                    {"code": "desk", "type": "openai-compatible", "baseURL": server.url}
                ),
                "models/far.yaml": "id: far\nprovider: desk\n",
            },
        )
        watching = watch("run", "--watch", "--json", "-m", "far", "-j", "1")
        assert came.wait(PATIENCE)
        watching.process.send(number)
        watching.wait_for("interrupted: finishing what is in flight")
        go.set()
        assert watching.finish() == 130
    assert [document["status"] for document in watching.documents()] == ["interrupted"]
    assert watching.documents()[0]["asked"] == 1


def test_a_bug_ends_the_watch_aloud(
    workspace: Path, play: Play, leniently: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("all is lost")

    def break_it() -> None:
        monkeypatch.setattr("evalstore.checks.judge_replies.Verdicts.read", fail)
        leniently()

    played = play(break_it)
    assert played.exit_code == 70
    assert played.rounds[1].endswith("RuntimeError: all is lost\nthis is a bug in evalstore\n")


class Terminal:
    """A command in a terminal of 80 columns; its keys and its screen."""

    def __init__(self, socket: Path, place: Path, *arguments: str) -> None:
        self._socket = socket
        program = shlex.join([sys.executable, "-m", "evalstore", *arguments])
        script = f"PYTHONPATH={shlex.quote(str(ROOT))} {program}; echo ended with $?; read _"
        self.tmux("new-session", "-d", "-s", "w", "-x", "80", "-y", "40", "-c", str(place), script)

    def tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=PATIENCE
        ).stdout

    def press(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", "w", *keys)

    def wait_for(self, text: str, *, after: str = "") -> str:
        """The screen once a text is on it, behind another one."""
        deadline = time.monotonic() + PATIENCE
        while True:
            screen = self.tmux("capture-pane", "-p", "-J", "-t", "w")
            if text in screen.partition(after)[2] if after else text in screen:
                return screen
            assert time.monotonic() < deadline, screen
            time.sleep(LOOKS)


@pytest.fixture
def terminal(workspace: Path, tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Start a command in a terminal."""
    if not shutil.which("tmux"):
        pytest.skip("tmux is not installed")
    with ExitStack() as stack:

        def start(*arguments: str) -> Terminal:
            started = Terminal(tmp_path / "socket", workspace, *arguments)
            stack.callback(started.tmux, "kill-server")
            return started

        yield start


def test_on_a_terminal_it_shows_the_new_verdict_until_ctrl_c(
    terminal: Callable[..., Terminal], leniently: Callable[[], None]
) -> None:
    started = terminal("run", "--watch")
    assert "It is cold there." in started.wait_for("watching for changes")
    leniently()
    fixed = "since the last run: 1 fixed"
    screen = started.wait_for("watching for changes", after=fixed)
    assert "2 pass (100.0%" in screen
    assert "gate passed" in screen
    started.press("C-c")
    screen = started.wait_for("ended with")
    assert "ended after 2 runs, $0.0600" in screen
    assert "ended with 0" in screen


def test_what_was_typed_before_a_question_is_not_an_answer_nor_is_ctrl_c(
    workspace: Path, terminal: Callable[..., Terminal], warmly: Callable[[], None]
) -> None:
    settings = workspace / "evalstore.yaml"
    edit(settings, "candidates:", "confirmAbove: 0.01\ncandidates:")
    started = terminal("run", "--watch")
    started.wait_for("continue? [y/N]:")
    started.press("y", "Enter")
    started.wait_for("watching for changes")
    started.press("y", "Enter")
    warmly()
    started.wait_for("$0.0600; continue? [y/N]:", after="watching for changes")
    started.press("C-c")
    screen = started.wait_for("ended with")
    assert "ended after 1 run, $0.0600" in screen
    assert "ended with 130" in screen


# --- the lookout


Look = Callable[..., FileWatcher]


@pytest.fixture
def look(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Look:
    """Look at the workspace while steps are taken, one in each pause."""

    def start(*steps: Callable[[], object]) -> FileWatcher:
        monkeypatch.setattr("evalstore.runs.watch.time", Steps(*steps))
        return FileWatcher(WorkspaceFolder(workspace))

    return start


def test_a_save_in_two_steps_is_one_change(workspace: Path, weather: Path, look: Look) -> None:
    file_watcher = look(
        nothing,
        lambda: weather.rename(workspace / "old"),
        lambda: weather.write_text("x"),
        *[nothing] * 3,
    )
    assert file_watcher.wait() == ["tests/weather.md"]
    with pytest.raises(KeyboardInterrupt):
        file_watcher.wait()


def test_all_files_of_a_change_are_named(workspace: Path, look: Look) -> None:
    files = {"tests/new.md": "x", "models/new.yaml": "x", ".env": "A=b"}
    assert look(lambda: tree(workspace, files), nothing).wait() == sorted(files)


@pytest.mark.parametrize(
    "name", ["tests/.weather.md.swp", "tests/weather.md~", "tests/4913", ".evalstore/store.db"]
)
def test_what_editors_and_runs_leave_behind_is_not_a_change(
    workspace: Path, look: Look, name: str
) -> None:
    file_watcher = look(lambda: tree(workspace, {name: "x"}), nothing)
    with pytest.raises(KeyboardInterrupt):
        file_watcher.wait()


def test_a_mentioned_file_that_appears_is_a_change(workspace: Path, look: Look) -> None:
    name = workspace / "tests/note.txt"
    file_watcher = look(lambda: name.write_text("x"), nothing)
    file_watcher.follow_mentioned([str(name)])
    assert file_watcher.wait() == ["tests/note.txt"]


def test_what_changes_between_two_waits_is_not_lost(weather: Path, look: Look) -> None:
    file_watcher = look(weather.touch, nothing, nothing, nothing)
    file_watcher.wait()
    edit(weather, "How is", "How warm is")
    assert file_watcher.wait() == ["tests/weather.md"]


def test_a_folder_that_cannot_be_read_is_a_change(workspace: Path, look: Look) -> None:
    name = workspace / "tests" / os.fsdecode(b"\xff.md")
    assert "tests" in look(lambda: name.write_text("x"), nothing).wait()
