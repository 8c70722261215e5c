"""Leases: nobody works on what another living runner has; the dead are buried."""

from __future__ import annotations

import math
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evalstore.core.errors import StoreLockedError
from evalstore.store import Store, leases
from evalstore.store import leases as module
from evalstore.store.driver import Connection
from evalstore.store.leases import BEAT_SECONDS, HUNG_SECONDS, SILENT_SECONDS, Leases
from tests.stored_rows import count_rows

A, B, C = ("a" * 32, "b" * 32, "c" * 32)


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def pass_time(clock: Clock, until: float, runner: Leases) -> None:
    """Let time pass for a runner that beats."""
    while clock.seconds + BEAT_SECONDS < until:
        clock.seconds += BEAT_SECONDS
        runner.beat()
    clock.seconds = until


def elsewhere(leases: Leases, place: str = "another machine") -> Leases:
    leases.runner = leases.runner._replace(place=place)
    return leases


def test_what_one_has_the_other_does_not_get(store: Store) -> None:
    first, second = Leases(store), Leases(store)
    assert first.claim([A, B]) == {A, B}
    assert second.claim([B, C]) == {C}
    assert [other.id for other in second.others.values()] == [first.runner.id]


def test_what_is_ours_can_be_claimed_again(store: Store) -> None:
    first = Leases(store)
    first.claim([A])
    assert first.claim([A, B]) == {A, B}


def test_what_is_given_back_is_free(store: Store) -> None:
    first, second = Leases(store), Leases(store)
    first.claim([A, B])
    first.leave()
    assert second.claim([A, B]) == {A, B}
    assert second.others == {}


def test_the_leases_of_a_process_that_was_killed_are_free_at_once(
    store: Store,
) -> None:
    program = (
        "import os, signal\n"
        "from evalstore.store import Store\n"
        "from evalstore.store.leases import Leases\n"
        "from evalstore.store.location import read_location\n"
        f"Leases(Store.open(read_location({store.path!r}))).claim([{A!r}])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    assert Leases(store).claim([A]) == {A}


def test_who_leaves_removes_a_program_that_was_killed_before_it_took_anything(store: Store) -> None:
    ours = Leases(store)
    ours.claim([A])
    program = (
        "import os, signal\n"
        "from evalstore.store import Store\n"
        "from evalstore.store.leases import Leases\n"
        "from evalstore.store.location import read_location\n"
        f"Leases(Store.open(read_location({store.path!r}))).register()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    assert count_rows(store, "runners") == 2
    ours.leave()
    assert count_rows(store, "runners") == 0


def test_a_process_id_that_was_reused_is_not_the_process(store: Store) -> None:
    first = Leases(store)
    first.runner = first.runner._replace(born="long ago")
    first.claim([A])
    assert Leases(store).claim([A]) == {A}


def test_a_runner_elsewhere_is_dead_after_a_silence(store: Store) -> None:
    clock = Clock()
    other, ours = elsewhere(Leases(store)), Leases(store, monotonic=clock)
    other.claim([A])
    assert ours.claim([A]) == set()
    pass_time(clock, SILENT_SECONDS - 0.1, ours)
    assert ours.claim([A]) == set()
    pass_time(clock, SILENT_SECONDS + 0.1, ours)
    assert ours.claim([A]) == {A}


def test_a_runner_elsewhere_that_beats_lives_however_long(store: Store) -> None:
    clock = Clock()
    other, ours = elsewhere(Leases(store)), Leases(store, monotonic=clock)
    other.claim([A])
    for _ in range(10):
        assert ours.claim([A]) == set()
        clock.seconds += SILENT_SECONDS - 1
        other.beat()
    assert ours.claim([A]) == set()


def test_one_that_was_silent_itself_gives_the_others_their_time_anew(store: Store) -> None:
    clock = Clock()
    other, ours = elsewhere(Leases(store)), Leases(store, monotonic=clock)
    other.claim([A])
    assert ours.claim([A]) == set()
    clock.seconds += 10 * SILENT_SECONDS  # asleep, or without a connection to the server
    assert ours.claim([A]) == set()
    pass_time(clock, clock.seconds + SILENT_SECONDS + 0.1, ours)
    assert ours.claim([A]) == {A}


def test_a_runner_that_was_considered_dead_is_told_so_and_goes_on(store: Store) -> None:
    clock = Clock()
    other, ours = elsewhere(Leases(store)), Leases(store, monotonic=clock)
    other.claim([A])
    assert other.beat()
    ours.claim([A])
    pass_time(clock, SILENT_SECONDS + 1, ours)
    ours.claim([A])
    assert not other.beat()
    assert other.beat()
    assert not other.has(A)


def test_a_runner_that_asks_for_its_lease_is_not_considered_dead_the_moment_after(
    store: Store,
) -> None:
    clock = Clock()
    other, ours = elsewhere(Leases(store)), Leases(store, monotonic=clock)
    other.claim([A])
    ours.claim([A])
    while clock.seconds <= SILENT_SECONDS:
        clock.seconds += BEAT_SECONDS
        ours.find_alive(())  # looks at nobody
    assert other.has(A)
    assert ours.claim([A]) == set()
    seen = other.runner
    assert other.has(A)
    with store.writing() as connection:
        assert not module._delete_silent(connection, seen)
        assert module._delete_silent(connection, other.runner)


def test_the_dead_are_removed_by_whoever_beats(store: Store) -> None:
    clock = Clock()
    other, ours = elsewhere(Leases(store)), Leases(store, monotonic=clock)
    other.claim([A])
    ours.claim([B])
    pass_time(clock, SILENT_SECONDS + 4 * BEAT_SECONDS, ours)
    with store.writing() as connection:
        left = connection.execute("SELECT id FROM runners").fetchall()
    assert left == [(bytes.fromhex(ours.runner.id),)]


def test_live_runners_are_counted_for_each_of_their_accounts(store: Store) -> None:
    clock = Clock()
    ours, second, third = Leases(store, monotonic=clock), Leases(store), elsewhere(Leases(store))
    ours.accounts, second.accounts = frozenset({"a", "b"}), frozenset({"b", "c"})
    third.accounts = frozenset({"b"})
    for runner in (second, third):
        runner.claim([])
    assert ours.count_sharers() == {"a": 1, "b": 3}
    pass_time(clock, SILENT_SECONDS + 1, ours)
    assert ours.count_sharers() == {"a": 1, "b": 2}
    second.leave()
    assert ours.count_sharers() == {"a": 1, "b": 1}


def test_a_process_that_hangs_is_given_up(store: Store) -> None:
    clock = Clock()
    other, ours = Leases(store), Leases(store, monotonic=clock)
    other.claim([A])
    assert ours.claim([A]) == set()
    pass_time(clock, HUNG_SECONDS + 1, ours)
    assert ours.claim([A]) == {A}


def test_a_process_that_is_stopped_is_given_up_and_goes_on(store: Store) -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        clock = Clock()
        other, ours = Leases(store), Leases(store, monotonic=clock)
        born = leases.start_time(sleeper.pid)
        other.runner = other.runner._replace(pid=sleeper.pid, born=born)
        other.claim([A])
        os.kill(sleeper.pid, signal.SIGSTOP)
        os.waitpid(sleeper.pid, os.WUNTRACED)
        assert ours.claim([A, B]) == {B}  # it may go on soon
        pass_time(clock, HUNG_SECONDS + 1, ours)
        assert ours.claim([A, B]) == {A, B}
        os.kill(sleeper.pid, signal.SIGCONT)
        os.waitpid(sleeper.pid, os.WCONTINUED)
        assert not other.beat()
        assert other.claim([A]) == set()
        ours.leave()
        assert other.claim([A]) == {A}
    finally:
        sleeper.kill()
        sleeper.communicate()


def test_one_that_was_given_up_takes_nothing_away_when_it_ends(store: Store) -> None:
    clock = Clock()
    other, ours = elsewhere(Leases(store)), Leases(store, monotonic=clock)
    other.claim([A])
    ours.claim([A])
    pass_time(clock, SILENT_SECONDS + 1, ours)
    ours.claim([A])
    assert other.claim([A, B]) == {B}  # it was not dead after all
    assert Leases(store).claim([B]) == set()
    other.leave()
    assert Leases(store).claim([A, B]) == {B}


def test_the_dead_of_this_machine_are_cleared_away_at_the_beginning(store: Store) -> None:
    dead = Leases(store)
    dead.runner = dead.runner._replace(born="long ago")
    dead.claim([A, B])
    Leases(store).claim([C])
    with store.writing() as connection:
        left = connection.execute("SELECT count(*) FROM leases").fetchone()
    assert left == (1,)


def test_thousands_can_be_claimed_at_once(store: Store) -> None:
    keys = {f"{number:032x}" for number in range(20_000)}
    assert Leases(store).claim(keys) == keys


def test_a_process_that_is_gone_was_never_born() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert leases.start_time(child.pid) in ("", "?")


def test_a_process_that_nobody_has_waited_for_is_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert child.stdout
    child.stdout.read()  # ends when the process does
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    try:
        assert leases.start_time(child.pid) in ("", "?")
    finally:
        child.stdout.close()
        child.wait()


# --- what is kept of a runner, and for how long


def runners(store: Store) -> list[tuple[str, int]]:
    with store.writing() as connection:
        rows = connection.execute("SELECT id, beat FROM runners ORDER BY id").fetchall()
    return [(id.hex(), beat) for id, beat in rows]


def leases_of(store: Store) -> dict[str, str]:
    with store.writing() as connection:
        rows = connection.execute("SELECT id, runner FROM leases").fetchall()
    return {id.hex(): runner.hex() for id, runner in rows}


def test_the_times_are_these_and_several_beats_fit_into_a_silence() -> None:
    assert (module.BEAT_SECONDS, SILENT_SECONDS, HUNG_SECONDS) == (3.0, 15.0, 120.0)


def test_each_beat_counts_one_more(store: Store) -> None:
    leases = Leases(store)
    leases.beat()
    assert runners(store) == []  # nobody waits for one that has claimed nothing
    leases.claim([A])
    assert runners(store) == [(leases.runner.id, 0)]
    leases.beat()
    leases.beat()
    assert runners(store) == [(leases.runner.id, 2)]


def test_that_a_runner_elsewhere_lives_is_known_from_its_second_beat_on(store: Store) -> None:
    clock = Clock()
    leases, other = Leases(store, monotonic=clock), elsewhere(Leases(store, monotonic=clock))
    other.claim([A])
    assert leases.find_alive([other.runner.id]) == {other.runner.id: -math.inf}
    clock.seconds = 3.0
    other.beat()
    assert leases.find_alive([other.runner.id]) == {other.runner.id: 3.0}
    clock.seconds = 4.0
    assert leases.find_alive([other.runner.id]) == {other.runner.id: 3.0}


def test_a_runner_of_this_machine_lives_now_from_its_first_beat_on(store: Store) -> None:
    clock = Clock()
    leases, other = Leases(store, monotonic=clock), Leases(store)
    other.claim([A])
    clock.seconds = 4.0
    assert leases.find_alive([other.runner.id, leases.runner.id]) == {other.runner.id: 4.0}


def test_one_that_leaves_leaves_nothing_and_may_come_back(store: Store) -> None:
    leases = Leases(store)
    leases.leave()
    leases.claim([A])
    leases.leave()
    assert (runners(store), leases_of(store)) == ([], {})
    leases.beat()
    assert runners(store) == []
    leases.claim([B])
    assert leases_of(store) == {B: leases.runner.id}


@pytest.mark.parametrize("next_step", [Leases.has_others, Leases.leave])
def test_one_that_slept_does_not_remove_those_that_slept_too(
    store: Store, next_step: Callable[[Leases], object]
) -> None:
    clock = Clock()
    ours, other = Leases(store, monotonic=clock), elsewhere(Leases(store))
    other.claim([A])
    ours.claim([A, B])
    clock.seconds += 3600
    next_step(ours)
    assert other.has(A)


def test_before_a_claim_there_is_nobody_else(store: Store) -> None:
    leases = Leases(store)
    assert leases.others == {}


def test_a_lease_is_ours_until_somebody_else_has_it(store: Store) -> None:
    first, second = Leases(store), Leases(store)
    first.claim([A])
    assert (first.has(A), first.has(B), second.has(A)) == (True, False, False)
    first.leave()
    second.claim([A])
    assert (first.has(A), second.has(A)) == (False, True)


def test_only_leases_of_ones_own_are_given_back(store: Store) -> None:
    first, second = Leases(store), Leases(store)
    first.claim([A])
    second.claim([B, C])
    with store.writing() as connection:
        module.delete_leases(connection, second.runner.id, [A, B])
    assert leases_of(store) == {A: first.runner.id, C: second.runner.id}
    with store.writing() as connection:
        module.delete_leases(connection, first.runner.id, [])
        module.take_leases(connection, first.runner.id, [])
    assert len(leases_of(store)) == 2


class Counted:
    """A connection that notes what is called."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.called: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.called.append(name)
        return getattr(self.connection, name)


def test_leases_of_a_dead_runner_are_taken_by_one_runner_and_few_statements(store: Store) -> None:
    dead, first, second = Leases(store), Leases(store), Leases(store)
    keys = [f"{number:032x}" for number in range(300)]
    dead.claim(keys[:200])
    for runner in (first, second):
        runner.register()
    with store.writing() as connection:
        counted = Counted(connection)
        module.take_leases(cast("Connection", counted), first.runner.id, keys)
    assert len(counted.called) == 3
    assert leases_of(store) == dict.fromkeys(keys, first.runner.id)
    assert second.claim(keys) == set()
    assert [runner.has(keys[0]) for runner in (dead, first, second)] == [False, True, False]
    with store.writing() as connection:  # by one that took the first for dead
        module.take_leases(connection, second.runner.id, keys[:1])
    assert [runner.has(keys[0]) for runner in (dead, first, second)] == [False, False, True]
    assert len(leases_of(store)) == len(keys)


def test_a_claim_can_be_made_without_waiting(path: Path, file_store: Store) -> None:
    store = file_store
    with closing(Store.open(path, busy=120)) as other:
        leases = Leases(other)
        began = time.monotonic()
        with store.writing(), pytest.raises(StoreLockedError):
            leases.claim([A], wait=False)
        assert time.monotonic() - began < 60
        assert leases.claim([A], wait=False) == {A}


@pytest.mark.parametrize(("place", "seconds"), [("elsewhere", SILENT_SECONDS), ("", HUNG_SECONDS)])
def test_a_silence_as_long_as_the_limit_is_too_long(
    store: Store, place: str, seconds: float
) -> None:
    clock = Clock()
    other, ours = Leases(store), Leases(store, monotonic=clock)
    if place:
        elsewhere(other, place)
    other.claim([A])
    assert ours.claim([A]) == set()
    pass_time(clock, seconds, ours)
    assert ours.claim([A]) == {A}


# --- what the system tells of processes


def stat_answers(monkeypatch: pytest.MonkeyPatch, answer: list[str] | OSError) -> None:
    def stat(_pid: int) -> list[str]:
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(leases, "_stat", stat)


@pytest.mark.skipif(not Path("/proc/uptime").exists(), reason="only Linux tells")
def test_a_process_was_born_when_it_was_started() -> None:
    def now() -> float:
        return float(Path("/proc/uptime").read_text().split()[0]) * os.sysconf("SC_CLK_TCK")

    before = now()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert before - 10 <= float(leases.start_time(child.pid)) <= now() + 10
    finally:
        child.communicate(b"\n")


@pytest.mark.parametrize(
    ("answer", "born"),
    [
        (["S", *map(str, range(1, 40))], "19"),
        (["T", *map(str, range(1, 40))], "19"),
        (["Z", *map(str, range(1, 40))], ""),
        (["X", *map(str, range(1, 40))], ""),
        (["S", "1"], "?"),
        (PermissionError(), "?"),
    ],
)
def test_when_a_process_was_born(
    answer: list[str] | OSError, born: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stat_answers(monkeypatch, answer)
    assert leases.start_time(1) == born


@pytest.mark.parametrize(
    ("has_proc", "name", "error", "born"),
    [
        (True, "posix", None, ""),
        (False, "posix", None, "?"),
        (False, "posix", ProcessLookupError(), ""),
        (False, "posix", PermissionError(), "?"),
        (False, "nt", AssertionError("it would end the process"), "?"),
    ],
)
def test_without_proc_signal_zero_shows_whether_a_process_exists(
    has_proc: bool,
    name: str,
    error: BaseException | None,
    born: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def kill(*arguments: int) -> None:
        assert arguments == (4711, 0)
        if error is not None:
            raise error

    def path(text: str) -> Path:
        assert text == "/proc/self/stat"
        return tmp_path if has_proc else tmp_path / "none"

    stat_answers(monkeypatch, FileNotFoundError())
    monkeypatch.setattr(leases, "Path", path)
    monkeypatch.setattr(leases, "os", SimpleNamespace(name=name, kill=kill))
    assert leases.start_time(4711) == born


def test_any_name_of_a_process_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "stat"
    file.write_bytes(b"7 (a) R \xff) S 1 2\n")
    paths = {"/proc/7/stat": file}
    monkeypatch.setattr(leases, "Path", paths.__getitem__)
    assert leases._stat(7) == ["S", "1", "2"]


def test_a_place_is_a_machine_since_its_start_and_a_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot, space = tmp_path / "boot", tmp_path / "space"
    boot.write_text("b00t\n")
    space.symlink_to("pid:[1]")
    paths = {"/proc/sys/kernel/random/boot_id": boot, "/proc/self/ns/pid": space}
    monkeypatch.setattr(leases, "Path", paths.__getitem__)
    assert leases.machine_id() == f"{platform.node()} b00t pid:[1]"
    boot.unlink()
    assert leases.machine_id() == platform.node() != ""


def test_the_runner_that_has_begun_a_run_is_seen_until_it_is_recorded(store: Store) -> None:
    """Else another one, which looks just then, would record it as a dead runner's."""
    first, second = Leases(store), Leases(store)
    store.add_shared_run("a" * 32, {}, None)
    first.claim(["b" * 32])
    store.write_share("a" * 32, first.runner.id, 0.0, 0.0, {"leads": True, "ended": True})
    first.leave(stays=True)
    assert second.claim(["b" * 32]) == {"b" * 32}
    assert set(second.find_alive([first.runner.id])) == {first.runner.id}
    store.remove_shared_runs(["a" * 32])
    assert second.find_alive([first.runner.id]) == {}
