"""Each number that divides work is drawn by tests, or it is said why not."""

from __future__ import annotations

from importlib import import_module
from random import Random

from tests import work_sizes


def test_each_number_that_divides_work_is_in_the_list() -> None:
    known = {*work_sizes.drawn_names(), *work_sizes.OF_TREES, *work_sizes.FIXED}
    assert sorted(set(work_sizes.numbers()) - known) == []
    assert len(known) == sum(
        map(len, (work_sizes.drawn_names(), work_sizes.OF_TREES, work_sizes.FIXED))
    )


def test_the_list_has_no_number_that_is_gone() -> None:
    for name in (*work_sizes.drawn_names(), *work_sizes.OF_TREES, *work_sizes.FIXED):
        module, _, constant = name.rpartition(".")
        assert type(getattr(import_module(f"evalstore.{module}"), constant)) is int, name


def test_a_drawn_number_is_no_default_of_a_parameter_which_would_keep_it() -> None:
    assert work_sizes.defaults() & {*work_sizes.drawn_names(), *work_sizes.OF_TREES} == set()


def test_numbers_are_drawn_alone_and_together() -> None:
    counts = {len(work_sizes.draw(Random(seed))) for seed in range(40)}
    assert min(counts) < 10
    assert max(counts) == len(work_sizes.drawn_names())


def test_a_change_is_undone_in_all_modules() -> None:
    module = import_module("evalstore.workspace.reader")
    before = module.KEPT_AT_ONCE
    with work_sizes.changed({"workspace.testfiles.context.KEPT_AT_ONCE": 1}):
        assert module.KEPT_AT_ONCE == 1
    assert before == module.KEPT_AT_ONCE
