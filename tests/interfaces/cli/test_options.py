"""Tables of options: what is given arrives in the fields, and what is not has their defaults."""

from __future__ import annotations

import shlex
from typing import Any, get_type_hints

import pytest

from evalstore.interfaces.cli.commands.run import MODE, RUN, Mode
from evalstore.interfaces.cli.main import GLOBAL, GlobalOptions, commands
from evalstore.interfaces.cli.options import SELECTION, OptionGroup, app, grouped, selection
from evalstore.planning.options import RunOptions, SelectionOptions

GROUPS = {
    "selection": (SelectionOptions, SELECTION),
    "run": (RunOptions, RUN),
    "mode": (Mode, MODE),
    "global": (GlobalOptions, GLOBAL),
}
SELECTING = """
    -m one -m two -J judge -t a -t b --exclude-tag c -k 'x and y' -r 3 --changed --lf --sample 4
    --seed 5 --shard 1/2 --limit 6 --refresh --max-age 30d --retry-errors --offline --keep-going
    a.md b.md::2
"""
RUNNING = """
    -j 1 --timeout 0.5 --retries 2 --threshold 1 --fail-on none --max-cost 2.5 --max-time 3 -y -x
    --message note --executor dask --workers 7 --scheduler local --judge-only
"""


def values_of(command: str, line: str) -> dict[str, Any]:
    """The values that the options of a line have."""
    program: Any = commands()
    context = program.commands[command].make_context(command, shlex.split(line))
    return dict(context.params)


@pytest.mark.parametrize("name", GROUPS)
def test_options_that_are_not_given_have_the_defaults_of_the_fields(name: str) -> None:
    make, table = GROUPS[name]
    group = OptionGroup(make, table)
    values = {parameter.name: parameter.default for parameter in group.parameters}
    assert group.take(values) == make()
    assert values == {}, "the values of a group are not left to the command"


@pytest.mark.parametrize("name", ["selection", "mode", "global"])
def test_every_field_has_an_option(name: str) -> None:
    make, table = GROUPS[name]
    assert set(table) == set(get_type_hints(make))


def test_options_of_the_selection_arrive_in_their_fields() -> None:
    assert selection().take(values_of("status", SELECTING)) == SelectionOptions(
        paths=("a.md", "b.md::2"),
        tags=("a", "b"),
        exclude_tags=("c",),
        name="x and y",
        models=("one", "two"),
        evaluators=("judge",),
        attempts=3,
        changed=True,
        last_failed=True,
        sample=4,
        seed=5,
        shard="1/2",
        limit=6,
        refresh=True,
        max_age="30d",
        retry_errors=True,
        offline=True,
        keep_going=True,
    )


def test_options_of_a_run_arrive_in_their_fields() -> None:
    assert OptionGroup(RunOptions, RUN).take(values_of("run", RUNNING)) == RunOptions(
        concurrency=1,
        timeout=0.5,
        retries=2,
        threshold=1.0,
        fail_on="none",
        message="note",
        max_cost=2.5,
        max_time=3.0,
        yes=True,
        exit_first=True,
        executor="dask",
        workers=7,
        scheduler="local",
        judge_only=True,
    )


def test_bytes_of_a_note_that_are_not_utf8_are_kept_as_escapes() -> None:
    assert values_of("run", "--message caf\udce9")["message"] == "caf\\udce9"


def test_the_annotations_of_a_command_are_evaluated_before_typer_reads_them() -> None:
    """Typer reads them four times, and evaluating those that are text takes most of that."""
    commands()
    texts = [
        f"{command.callback.__name__}: {name}"
        for command in app.registered_commands
        if command.callback
        for name, annotation in command.callback.__annotations__.items()
        if isinstance(annotation, str)
    ]
    assert texts == []


def test_a_command_with_groups_is_called_with_their_objects_and_its_own_options() -> None:
    calls = []

    @grouped(selection=selection("tags"), mode=OptionGroup(Mode, MODE))
    def command(selection: SelectionOptions, mode: Mode, limit: int = 3) -> None:
        calls.append((selection, mode, limit))

    call: Any = command
    call(
        tags=["a"],
        watch=True,
        dry_run=False,
        explain=False,
        every=False,
        exports=None,
        remote=None,
        json=False,
        join=None,
        until_eof=False,
        limit=4,
    )
    assert calls == [(SelectionOptions(tags=("a",)), Mode(watch=True), 4)]
