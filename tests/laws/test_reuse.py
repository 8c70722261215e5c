"""The laws of reuse, for workspaces that are edited, run, edited, judged, broken off and run."""

from __future__ import annotations

import copy
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.laws.desk_model import Desk, File, Memory
from tests.laws.fakes import BugError, Fake, Place, counted

NAMES = ("a", "b", "sub/c", "d")
CITIES = st.sampled_from([(), ("Oslo",), ("Oslo", "Bergen"), ("Bergen",), ("Bergen", "Oslo")])


class Machine(RuleBasedStateMachine):
    """Edits and runs a workspace beside a model of what its runs must ask."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.fake = Fake()
        self.place = Place(self.folder, self.fake)
        self.desk = Desk()
        self.memory = Memory()
        self.seen: dict[Any, Any] = {}
        self.place.write(self.desk.render())

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    # --- edits of one file

    @rule(
        data=st.data(),
        field=st.sampled_from(
            ["question", "instruction", "rows", "tags", "special", "tool", "schema", "picture"]
        ),
    )
    def edit(self, data: st.DataObject, field: str) -> None:
        file = self._draw_file(data)
        values: dict[str, st.SearchStrategy[Any]] = {
            "question": st.integers(0, 2),
            "instruction": st.sampled_from([0, 1, 2, 3, None]),
            "rows": CITIES,
            "tags": st.sampled_from([(), ("x",), ("y", "x")]),
            "special": st.sampled_from([(), ("_json_mode",), ("_has_tools",)]),
            "tool": st.booleans(),
            "schema": st.booleans(),
            "picture": st.booleans(),
        }
        setattr(file, field, data.draw(values[field]))
        if file.schema and file.tool:
            file.schema, file.tool = field == "schema", field == "tool"
        if file.instruction is None and not file.is_structured:
            file.instruction = 0

    @rule(
        data=st.data(),
        field=st.sampled_from(["prompts", "attempts", "temperature", "only_first_judge", "noise"]),
    )
    def set_up(self, data: st.DataObject, field: str) -> None:
        values: dict[str, st.SearchStrategy[Any]] = {
            "prompts": st.sampled_from([(), ("sys",), ("sys", None)]),
            "attempts": st.sampled_from([None, 1, 2]),
            "temperature": st.sampled_from([None, 0.5, 1]),
            "only_first_judge": st.booleans(),
            "noise": st.integers(0, 9),
        }
        setattr(self._draw_file(data), field, data.draw(values[field]))

    @rule(data=st.data(), name=st.sampled_from(NAMES))
    def add_or_copy(self, data: st.DataObject, name: str) -> None:
        self.desk.files[name] = (
            copy.copy(self._draw_file(data)) if data.draw(st.booleans()) else File()
        )

    @precondition(lambda self: len(self.desk.files) > 1)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        del self.desk.files[data.draw(st.sampled_from(sorted(self.desk.files)))]

    @rule(data=st.data(), name=st.sampled_from(NAMES))
    def rename(self, data: st.DataObject, name: str) -> None:
        old = data.draw(st.sampled_from(sorted(self.desk.files)))
        self.desk.files[name] = self.desk.files.pop(old)

    # --- edits of what files share, and of the settings

    @rule(
        data=st.data(),
        field=st.sampled_from(
            ["tool", "schema", "picture", "picture_name", "system", "moods", "evaluator_prompt"]
        ),
    )
    def edit_shared(self, data: st.DataObject, field: str) -> None:
        values: dict[str, st.SearchStrategy[Any]] = {
            "picture_name": st.sampled_from(["one.png", "two.png"]),
            "moods": st.sampled_from([(), ("kind",), ("kind", "curt")]),
        }
        setattr(self.desk, field, data.draw(values.get(field, st.integers(0, 2))))

    @rule(
        data=st.data(),
        field=st.sampled_from(
            [
                "candidates",
                "temperature",
                "override",
                "judges",
                "judge_temperature",
                "attempts",
                "per_judge",
                "limit",
            ]
        ),
    )
    def set_settings(self, data: st.DataObject, field: str) -> None:
        values: dict[str, st.SearchStrategy[Any]] = {
            "candidates": st.sampled_from(
                [("first",), ("first", "twin"), ("plain", "first"), ("twin", "plain")]
            ),
            "temperature": st.sampled_from([0, 0.5]),
            "override": st.sampled_from([None, 0.5, 1.5]),
            "judges": st.sampled_from([("judge",), ("judge", "judge2")]),
            "judge_temperature": st.sampled_from([0, 0.5]),
            "attempts": st.integers(1, 3),
            "per_judge": st.integers(1, 3),
            "limit": st.sampled_from([None, 5, 8, 20]),
        }
        setattr(self.desk, field, data.draw(values[field]))

    def _draw_file(self, data: st.DataObject) -> File:
        return self.desk.files[data.draw(st.sampled_from(sorted(self.desk.files)))]

    # --- commands

    @rule()
    def run(self) -> None:
        self._write()
        before = self._status()
        ask, judge = self.memory.run(self.desk)
        with counted(self.fake) as (asked, judged):
            report = self.place.run()
        assert asked == ask
        assert judged == judge
        assert (before.ask, report.asked) == (ask.total(), ask.total())
        assert before.judge >= report.judged
        assert (report.status, report.failed) == ("complete", 0)
        self._is_finished()

    @rule()
    def judge(self) -> None:
        self._write()
        ask, judge = self.memory.run(self.desk, judge_only=True)
        with counted(self.fake) as (asked, judged):
            self.place.run(judge_only=True)
        assert not ask
        assert not asked
        assert judged == judge

    @rule()
    def run_in_vain(self) -> None:
        self._write()
        self.fake.failing = True
        with counted(self.fake) as (asked, judged):
            report = self.place.run()
        self.fake.failing = False
        assert not asked
        assert not judged
        # Checks need nobody else.
        self.memory.run(_without_judges(self.desk), judge_only=True)
        assert report.status == ("incomplete" if self._status().items else "complete")

    @rule(calls=st.integers(0, 6), at_once=st.integers(1, 4))
    def run_until_it_breaks_off(self, calls: int, at_once: int) -> None:
        self._write()
        ask, judge = self.memory.run(self.desk)
        self.fake.crash_after = calls
        with counted(self.fake) as (asked, judged):
            try:
                self.place.run(concurrency=at_once)
            except BugError:
                assert self.fake.calls >= calls
            self.fake.crash_after = None
            self.place.run()
        # Calls in flight do not take time here, so none is lost and none is paid twice; but
        # of a judgement that takes two calls, the first may be.
        assert asked == ask
        assert all(judged[key] - judge[key] in (0, 1) for key in judged | judge)
        assert all("Expect 3" in key.instructions for key in judged if judged[key] != judge[key])
        self._is_finished()

    # --- what must hold

    def _write(self) -> None:
        self.place.write(self.desk.render())

    def _status(self) -> Any:
        found = self.place.status()
        assert all(item.reason for item in found.items)
        return found

    def _is_finished(self) -> None:
        after = self._status()
        assert (after.items, after.ask, after.judge) == ([], 0, 0)
        with counted(self.fake) as (asked, judged):
            report = self.place.run()
        assert not asked
        assert not judged
        assert (report.asked, report.judged) == (0, 0)
        assert not report.verdicts["pending"]
        tables = [table for table, _ in self.place.rows()]
        assert tables.count("sessions") == self.memory.answers
        assert tables.count("evaluations") == self.memory.evaluations

    @invariant()
    def nothing_stored_changes(self) -> None:
        if not (self.folder / ".evalstore/store.db").exists():
            return
        rows = self.place.rows()
        assert self.seen.items() <= rows.items()
        if rows != self.seen:
            assert self.place.damages() == []
        self.seen = rows


def _without_judges(desk: Desk) -> Desk:
    found = copy.deepcopy(desk)
    found.judges = ()
    return found


def test_whatever_is_edited_a_run_asks_just_what_was_never_answered() -> None:
    run_state_machine_as_test(Machine, settings=settings(stateful_step_count=14))
