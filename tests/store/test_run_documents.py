"""Texts with which programs describe runs in progress: what is not as they write it is refused."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest

from evalstore import __version__
from evalstore.core.errors import NewerError, StoreError
from evalstore.files.json_output import camel_case
from evalstore.planning.options import SelectionOptions
from evalstore.runs.execution.execution_counts import ExecutionCounts, ModelSpending
from evalstore.runs.execution.sharing.run_share import describe_counts
from evalstore.runs.run_record import _OPTIONS
from evalstore.store.leases import (
    CALLS,
    SELECTION,
    UnreadableError,
    explain,
    read_accounts,
    read_counts,
    read_description,
    require_amounts,
)

DESCRIPTION: dict[str, Any] = {
    "format": 1,
    "version": __version__,
    "files": {"evalstore.yaml": "candidates: [one]\n"},
    "config": "evalstore.yaml",
    "overrides": [],
    "cases": "a" * 32,
    "started": 1_700_000_000_000_000,
    "selection": {"paths": ["a.md"], "attempts": 2, "keepGoing": True, "shard": "1/2"},
    "message": None,
    "git": ("0" * 40, None),
    "author": None,
    "sources": None,
    "planned": {"ask": 2, "judge": 0},
    "options": dict.fromkeys(("concurrency", "timeout", "retries", "max_time"))
    | {"judge_only": False, "exit_first": True},
}
TEXTS = {
    "a list": "[]",
    "a text": '"x"',
    "null": "null",
    "half an object": "{",
    "deep": "[" * 100_000,
    "deep inside": '{"x":' * 100_000,
    "a number without end": '{"format": ' + "1" * 5_000 + "}",
    "NaN": '{"format": NaN}',
    "half a character": '{"format": 1, "version": "\\ud800"}',
    "very long": '{"format": "' + "x" * 2**25 + '"}',
    "without the rest": '{"format":1,"version":"0.1.0"}',
}
FIELDS: dict[str, dict[str, Any]] = {
    "no files": {"files": None},
    "a file of a number": {"files": {"evalstore.yaml": 7}},
    "problem": {"problem": ["x"]},
    "author": {"author": {"a": 1}},
    "an unknown option": {"options": {"executor": "dask"}},
    "an odd option": {"options": {"concurrency": "x"}},
    "no calls at once": {"options": {"concurrency": 0}},
    "an endless time": {"options": {"timeout": 10**400}},
    "git": {"git": [1]},
    "settings elsewhere": {"config": "/etc/passwd"},
    "settings above": {"config": "../../x"},
    "a time that no clock shows": {"started": 2**63},
    "too many seconds": {"options": {"max_time": 2**70}},
    "a flag for a time": {"started": True},
    "an unknown selection": {"selection": {"fun": 1}},
    "an odd selection": {"selection": {"tags": "a"}},
    "a sample of no case": {"selection": {"sample": 0}},
    "no attempt": {"selection": {"attempts": 0}},
    "a snapshot": {"cases": "A" * 32},
    "overrides": {"overrides": "a=b"},
    "format": {"format": True},
    "planned": {"planned": {"ask": "x"}},
}


def test_a_description_is_returned_as_it_was_written() -> None:
    assert read_description(json.dumps(DESCRIPTION)) == DESCRIPTION
    assert read_description(json.dumps(DESCRIPTION | {"more": 1})) == DESCRIPTION


def test_a_description_with_a_problem_may_have_nothing_else() -> None:
    alone = {"format": 1, "version": "0.1.0", "problem": "it has a key"}
    assert read_description(json.dumps(alone)) == alone


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_a_text_that_describes_no_run_is_refused(text: str) -> None:
    with pytest.raises(UnreadableError):
        read_description(text)


@pytest.mark.parametrize("changed", FIELDS.values(), ids=FIELDS.keys())
def test_a_field_that_no_program_writes_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(UnreadableError):
        read_description(json.dumps(DESCRIPTION | changed))


def test_all_options_of_a_run_and_its_selection_are_known() -> None:
    assert {*SELECTION} == {camel_case(member.name) for member in fields(SelectionOptions)}
    values = {"paths": ["a"], "name": "a", "attempts": 1, "changed": True, "keepGoing": True}
    read_description(json.dumps(DESCRIPTION | {"selection": values}))
    assert {*DESCRIPTION["options"]} == {*_OPTIONS}


def test_the_error_tells_damage_from_another_version() -> None:
    run = "b" * 32
    damaged = explain(run, "it is odd", json.dumps(DESCRIPTION))
    assert str(damaged) == "run bbbbbbbb, which is in progress, cannot be read: it is odd"
    assert damaged.hint
    assert run in damaged.hint
    other = explain(run, "it is odd", json.dumps(DESCRIPTION | {"version": "0.0.1\n\x1b[2J"}))
    assert f"; it was begun by evalstore 0.0.1\\n\\x1b[2J, and this is {__version__}" in str(other)
    newer = explain(run, "it is odd", json.dumps(DESCRIPTION | {"format": 2}))
    assert isinstance(newer, NewerError)
    assert "was written by a newer evalstore: the format 2 of its" in str(newer)
    assert type(explain(run, "it is odd", "[")) is StoreError


def test_counts_are_returned_as_a_runner_has_noted_them_without_what_is_not_known() -> None:
    outcome = ExecutionCounts(asked=2, cost=0.5, failures={"no": 1})
    outcome.spending["one", "candidate"] = ModelSpending(calls=2, cost=0.5)
    counts = describe_counts(outcome, leads=True, ended=False)
    assert json.loads(json.dumps(read_counts(json.dumps(counts)))) == counts
    more = counts | {"sessions": {}, "__class__": 1}
    more["spending"] = [["one", "candidate", {**counts["spending"][0][2], "__dict__": {}}]]
    assert json.loads(json.dumps(read_counts(json.dumps(more)))) == counts
    assert read_counts("{}") == {}
    assert {*CALLS, "cost"} == {member.name for member in fields(ModelSpending)}


@pytest.mark.parametrize(
    "text",
    [
        *("[]", "null", "{", '{"asked":"x"}', '{"asked":-1}', '{"asked":1.5}', '{"cost":-1}'),
        *('{"cost":Infinity}', '{"cost":1e999}', '{"noted":"y"}', '{"priced":0}'),
        *('{"spending":{}}', '{"spending":[1]}', '{"spending":[["a","b",{}]]}'),
        *('{"spending":[["a","candidate",{"calls":"x"}]]}', '{"failures":{"a":null}}'),
        *('{"spending":[["a",["candidate"],{}]]}', '{"leads":"yes"}', "[" * 100_000),
    ],
)
def test_counts_that_no_runner_notes_are_refused(text: str) -> None:
    with pytest.raises(UnreadableError):
        read_counts(text)


@pytest.mark.parametrize(
    "wrong", [-0.5, 2**63, 10**400, *map(float, ("nan", "inf", "-inf")), "1", None]
)
def test_amounts_that_nobody_can_spend_are_refused(wrong: Any) -> None:
    require_amounts(0.0, 0.5)
    for pair in ((wrong, 0.0), (0.0, wrong)):
        with pytest.raises(UnreadableError, match="is not an amount"):
            require_amounts(*pair)


@pytest.mark.parametrize("text", ["7", "{", "[[1]]", "[1]", "{}", "[" * 100_000, '"a"'])
def test_accounts_are_a_list_of_texts(text: str) -> None:
    assert read_accounts('["a"]') == read_accounts(b'["a"]') == ["a"]
    assert read_accounts(text) is None
