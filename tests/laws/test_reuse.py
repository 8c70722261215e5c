"""The laws of reuse, for workspaces that are edited, run, edited, judged, broken off and run."""

from __future__ import annotations

import contextlib
import copy
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from evalstore.planning.options import SelectionOptions
from tests import work_sizes
from tests.laws.conftest import NewUrl, examples_of
from tests.laws.desk_model import PLAIN, Desk, File, Memory, RunSettings
from tests.laws.fakes import PLAIN as PLAIN_WANTED
from tests.laws.fakes import CrashError, Fake, Place, counted

NAMES = ("a", "b", "sub/c", "d")
OF_A_FILE: dict[str, st.SearchStrategy[Any]] = {
    "question": st.integers(0, 2),
    "instruction": st.sampled_from([0, 1, 2, 3, None]),
    "rows": st.sampled_from([(), ("Oslo",), ("Oslo", "Bergen"), ("Bergen",), ("Bergen", "Oslo")]),
    "tags": st.sampled_from([(), ("x",), ("y", "x")]),
    "special": st.sampled_from([(), ("_json_mode",), ("_has_tools",)]),
    "tool": st.booleans(),
    "schema": st.booleans(),
    "picture": st.booleans(),
    "prompts": st.sampled_from([(), ("sys",), ("sys", None)]),
    "attempts": st.sampled_from([None, 1, 2]),
    "temperature": st.sampled_from([None, 0.5, 1]),
    "only_first_judge": st.booleans(),
    "noise": st.integers(0, 9),
}
"""What each field of a test file may become."""
OF_ALL: dict[str, st.SearchStrategy[Any]] = {
    "tool": st.integers(0, 2),
    "schema": st.integers(0, 2),
    "picture": st.integers(0, 2),
    "picture_name": st.sampled_from(["one.png", "two.png"]),
    "system": st.integers(0, 2),
    "moods": st.sampled_from([(), ("kind",), ("kind", "curt")]),
    "evaluator_prompt": st.integers(0, 2),
    "candidates": st.sampled_from(
        [("first",), ("first", "twin"), ("plain", "first"), ("twin", "plain")]
    ),
    "temperature": st.sampled_from([0, 0.5]),
    "override": st.sampled_from([None, 0.5, 1.5]),
    "checks": st.tuples(*[st.sampled_from([None, "Answer", "Question 1", "Zebra"])] * 3),
    "judges": st.sampled_from([("judge",), ("judge", "judge2")]),
    "judge_temperature": st.sampled_from([0, 0.5]),
    "attempts": st.integers(1, 3),
    "per_judge": st.integers(1, 3),
    "max_age": st.sampled_from([None, 0.5, 2.5]),
}
"""And each of what files share, and of the settings."""


class Machine(RuleBasedStateMachine):
    """Edits and runs a workspace beside a model of what its runs must ask."""

    new_url: Callable[[], str | None]
    """Returns the URL of a new store; None for a file."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.fake = Fake()
        self.sizes = contextlib.ExitStack()
        self.place = Place(self.folder, self.fake, self.new_url())
        self.project = Desk()
        self.memory = Memory()
        self.seen: dict[Any, Any] = {}
        self.place.write(self.project.render())

    def teardown(self) -> None:
        try:
            self.sizes.close()
            # What is stored never changes, so that what is sound in the end always was.
            assert not self.seen or self.place.damages() == []
        finally:
            shutil.rmtree(self.folder)

    # --- edits, each followed by what a user may do then

    @initialize(data=st.data(), seed=st.integers(0, 9_999))
    def begin(self, data: st.DataObject, seed: int) -> None:
        """Start with some of everything, so that there is something to edit."""
        random = Random(seed)
        sizes = {**work_sizes.draw_trees(random), **work_sizes.draw(random)}
        self.sizes.enter_context(work_sizes.changed(sizes))
        for name in _draw_some(data, NAMES, least=1, most=len(NAMES)):
            self.project.files[name] = File()
            for field in _draw_some(data, OF_A_FILE, most=5):
                self._edit(data, name, field)
        for field in _draw_some(data, OF_ALL, most=4):
            setattr(self.project, field, data.draw(OF_ALL[field]))
        self._run()

    @rule(
        data=st.data(), fields=st.lists(st.sampled_from(sorted(OF_A_FILE)), min_size=1, max_size=3)
    )
    def edit_a_file(self, data: st.DataObject, fields: list[str]) -> None:
        for field in fields:
            self._edit(data, self._draw_name(data), field)
        self._go_on(data)

    @rule(data=st.data(), field=st.sampled_from(sorted(OF_ALL)))
    def edit_what_all_share(self, data: st.DataObject, field: str) -> None:
        setattr(self.project, field, data.draw(OF_ALL[field]))
        self._go_on(data)

    @rule(data=st.data(), limit=st.sampled_from([None, 5, 8, 20]))
    def set_the_limit(self, data: st.DataObject, limit: int | None) -> None:
        self.project.limit = limit
        self._go_on(data)

    @rule(data=st.data(), name=st.sampled_from(NAMES), is_copy=st.booleans())
    def add(self, data: st.DataObject, name: str, is_copy: bool) -> None:
        old = self.project.files[self._draw_name(data)]
        self.project.files[name] = copy.copy(old) if is_copy else File()
        for field in _draw_some(data, OF_A_FILE, most=2):
            self._edit(data, name, field)
        self._go_on(data)

    @precondition(lambda self: len(self.project.files) > 1)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        del self.project.files[self._draw_name(data)]
        self._go_on(data)

    @rule(data=st.data(), name=st.sampled_from(NAMES))
    def rename(self, data: st.DataObject, name: str) -> None:
        self.project.files[name] = self.project.files.pop(self._draw_name(data))
        self._go_on(data)

    @rule(days=st.integers(1, 3), max_age=st.sampled_from([None, 0.5, 1.5, 2.5]))
    def let_days_pass(self, days: int, max_age: float | None) -> None:
        self.memory.day += days
        self.place.day += days
        self._run(RunSettings(max_age=max_age))

    def _draw_name(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.project.files)))

    def _edit(self, data: st.DataObject, name: str, field: str) -> None:
        file = self.project.files[name]
        setattr(file, field, data.draw(OF_A_FILE[field]))
        if file.schema and file.tool:
            file.schema, file.tool = field == "schema", field == "tool"
        if file.instruction is None and not file.is_structured:
            file.instruction = 0

    # --- commands

    def _go_on(self, data: st.DataObject) -> None:
        """What comes after an edit: a run most of the time."""
        commands = [self._run] * 4 + [self._judge, self._run_in_vain, lambda: None]
        command = data.draw(st.sampled_from(range(len(commands) + 6)))
        if command < len(commands):
            commands[command]()
        elif command < len(commands) + 2:
            self._run_until_it_breaks_off(
                data.draw(st.integers(0, 6)), data.draw(st.integers(1, 4))
            )
        elif command < len(commands) + 5:
            attempts = data.draw(st.sampled_from([None, 1, 2, 3]))
            max_age = data.draw(st.sampled_from([None, 0.5, 1.5]))
            self._run(
                RunSettings(attempts=attempts, max_age=max_age, refresh=data.draw(st.booleans()))
            )
        else:
            self._judge(RunSettings(judge_only=True, refresh=True))

    def _run(self, options: RunSettings = PLAIN) -> None:
        self._write()
        expected = _wanted(options)
        before = self._status(expected)
        ask, judge = self.memory.run(self.project, options)
        with counted(self.fake) as (asked, judged):
            report = self.place.run(expected)
        assert asked == ask
        assert judged == judge
        assert (before.ask, report.asked) == (ask.total(), ask.total())
        assert before.judge >= report.judged
        assert (report.status, report.failed) == ("complete", 0)
        if not options.refresh:
            self._is_finished(expected)

    def _judge(self, options: RunSettings = RunSettings(judge_only=True)) -> None:  # noqa: B008 - it is frozen
        self._write()
        ask, judge = self.memory.run(self.project, options)
        with counted(self.fake) as (asked, judged):
            self.place.run(_wanted(options), judge_only=True)
        assert not ask
        assert not asked
        assert judged == judge

    def _run_in_vain(self) -> None:
        self._write()
        self.fake.failing = True
        with counted(self.fake) as (asked, judged):
            report = self.place.run()
        self.fake.failing = False
        assert not asked
        assert not judged
        # Checks need nobody else, and what a judge said is used again.
        self.memory.run(self.project, RunSettings(judge_only=True), calls=False)
        assert report.status == ("incomplete" if self._status().items else "complete")

    def _run_until_it_breaks_off(self, calls: int, at_once: int) -> None:
        self._write()
        ask, judge = self.memory.run(self.project)
        self.fake.crash_after = calls
        with counted(self.fake) as (asked, judged):
            with contextlib.suppress(CrashError):
                self.place.run(concurrency=at_once)
            self.fake.crash_after = None
            self.place.run()
        # Calls take no time here, so none is lost in flight and none is paid twice; but of a
        # judgement that takes two calls, the first may be.
        assert asked == ask
        assert all(judged[key] - judge[key] in (0, 1) for key in judged | judge)
        assert all("Expect 3" in key.instructions for key in judged if judged[key] != judge[key])
        self._is_finished()

    # --- what must hold

    def _write(self) -> None:
        self.place.write(self.project.render())

    def _status(self, selection: SelectionOptions = PLAIN_WANTED) -> Any:
        actual = self.place.status(selection)
        assert all(item.reason for item in actual.items)
        return actual

    def _is_finished(self, selection: SelectionOptions = PLAIN_WANTED) -> None:
        after = self._status(selection)
        assert (after.items, after.ask, after.judge) == ([], 0, 0)
        with counted(self.fake) as (asked, judged):
            report = self.place.run(selection)
        assert not asked
        assert not judged
        assert (report.asked, report.judged) == (0, 0)
        assert not report.totals.verdicts["pending"]
        tables = [table for table, _ in self.place.rows()]
        assert tables.count("sessions") == self.memory.answers
        assert tables.count("evaluations") == self.memory.evaluations

    @invariant()
    def nothing_stored_changes(self) -> None:
        if isinstance(self.place.store, Path) and not self.place.store.exists():
            return
        rows = self.place.rows()
        assert self.seen.items() <= rows.items()
        self.seen = rows


def _draw_some(
    data: st.DataObject, names: Iterable[str], *, least: int = 0, most: int
) -> list[str]:
    """Different names, in an order that no hash seed decides."""
    return data.draw(
        st.lists(st.sampled_from(sorted(names)), unique=True, min_size=least, max_size=most)
    )


def _wanted(options: RunSettings) -> SelectionOptions:
    max_age = None if options.max_age is None else f"{options.max_age}d"
    return SelectionOptions(attempts=options.attempts, max_age=max_age, refresh=options.refresh)


def test_whatever_is_edited_a_run_asks_just_what_was_never_answered(new_url: NewUrl) -> None:
    # Not shrunk: a failing history takes minutes to shorten, and reads well as it is.
    phases = (Phase.explicit, Phase.generate)
    expected = settings(max_examples=examples_of(new_url), stateful_step_count=6, phases=phases)
    machine = type("Machine", (Machine,), {"new_url": staticmethod(new_url)})
    run_state_machine_as_test(machine, settings=expected)
