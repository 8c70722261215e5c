"""Leases: nobody works on what another living runner has; the dead are buried."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from evalstore.store import Store
from evalstore.store import leases as module
from evalstore.store.leases import HUNG_SECONDS, SILENT_SECONDS, Leases

A, B, C = ("a" * 32, "b" * 32, "c" * 32)


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(tmp_path / "store.db", create=True)) as opened:
        yield opened


def elsewhere(leases: Leases, place: str = "another machine") -> Leases:
    leases.runner = leases.runner._replace(place=place)
    return leases


def test_what_one_has_the_other_does_not_get(store: Store) -> None:
    first, second = Leases(store), Leases(store)
    assert first.claim([A, B]) == {A, B}
    assert second.claim([B, C]) == {C}
    assert [one.id for one in second.others.values()] == [first.runner.id]


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
    store: Store, tmp_path: Path
) -> None:
    program = (
        "import os, signal\n"
        "from pathlib import Path\n"
        "from evalstore.store import Store\n"
        "from evalstore.store.leases import Leases\n"
        f"Leases(Store.open(Path({str(tmp_path / 'store.db')!r}))).claim([{A!r}])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    assert Leases(store).claim([A]) == {A}


def test_a_number_that_another_process_has_by_now_is_no_life(store: Store) -> None:
    first = Leases(store)
    first.runner = first.runner._replace(born="long ago")
    first.claim([A])
    assert Leases(store).claim([A]) == {A}


def test_a_runner_elsewhere_is_dead_after_a_silence(store: Store) -> None:
    clock = Clock()
    other, ours = elsewhere(Leases(store)), Leases(store, monotonic=clock)
    other.claim([A])
    assert ours.claim([A]) == set()
    clock.seconds = SILENT_SECONDS - 0.1
    assert ours.claim([A]) == set()
    clock.seconds = SILENT_SECONDS + 0.1
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


def test_a_process_that_hangs_is_given_up(store: Store) -> None:
    clock = Clock()
    other, ours = Leases(store), Leases(store, monotonic=clock)
    other.claim([A])
    assert ours.claim([A]) == set()
    clock.seconds = HUNG_SECONDS + 1
    assert ours.claim([A]) == {A}


def test_a_process_that_is_stopped_keeps_its_leases(store: Store) -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        clock = Clock()
        other, ours = Leases(store), Leases(store, monotonic=clock)
        born = module._born(sleeper.pid)
        other.runner = other.runner._replace(pid=sleeper.pid, born=born)
        other.claim([A])
        os.kill(sleeper.pid, signal.SIGSTOP)
        os.waitpid(sleeper.pid, os.WUNTRACED)
        assert (ours.claim([A, B]), ours.stopped) == ({B}, {})  # it may go on soon
        clock.seconds = HUNG_SECONDS + 1
        assert ours.claim([A, B]) == {B}
        assert ours.stopped == {A: other.runner}
        os.kill(sleeper.pid, signal.SIGCONT)
        os.waitpid(sleeper.pid, os.WCONTINUED)
        assert ours.claim([A]) == {A}  # it goes on, but does nothing
        assert ours.stopped == {}
    finally:
        sleeper.kill()
        sleeper.communicate()


def test_one_that_was_given_up_takes_nothing_away_when_it_ends(store: Store) -> None:
    clock = Clock()
    other, ours = elsewhere(Leases(store)), Leases(store, monotonic=clock)
    other.claim([A])
    ours.claim([A])
    clock.seconds = SILENT_SECONDS + 1
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
    assert module._born(child.pid) in ("", "?")


def test_a_process_that_nobody_has_waited_for_is_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert child.stdout
    child.stdout.read()  # ends when the process does
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    try:
        assert module._born(child.pid) in ("", "?")
    finally:
        child.stdout.close()
        child.wait()
