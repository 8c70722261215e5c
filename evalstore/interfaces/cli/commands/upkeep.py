"""`doctor`, `trust`, `fsck`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from evalstore.core.display import shorten_labels
from evalstore.core.errors import NO, OK, EvalstoreError
from evalstore.interfaces.cli import options, output
from evalstore.interfaces.cli.commands.remotes import show_progress
from evalstore.interfaces.cli.options import app, argument, here, option
from evalstore.interfaces.cli.output import for_here
from evalstore.interfaces.cli.render.layout import CommandOutput, Lists, Table, print_table
from evalstore.remotes.layout import repair_hint

if TYPE_CHECKING:
    from evalstore.remotes.download import RemoteCheck
    from evalstore.runs.workspace_checks.doctor import Checkup, Diagnosis
    from evalstore.runs.workspace_checks.trust import ShownFile
    from evalstore.workspace.trust import AllowedPath


_BESIDE = 8
"""The columns beside the topic and the message of a finding."""
_COLOURS = {"ok": "pass", "warn": "pending", "fail": "fail", "": None}

Row = tuple[str, str, str, str | None]
"""Level, topic, message, hint."""


@app.command()
def doctor(
    models: Annotated[
        list[str] | None,
        option("-m, --model ID", "Only this model (repeatable).", options.models),
    ] = None,
    no_ping: Annotated[bool, option("--no-ping", "Call no model.")] = False,
    timeout: Annotated[
        float, option("--timeout S", "Timeout of one ping in seconds.", min=0.001)
    ] = 20.0,
) -> Lists:
    """Check the setup and ping every model in use.

    A ping is one question with an answer of at most 16 tokens, which costs a fraction of a cent.
    Nothing is stored. Keys are never printed, only the names of their variables.

    Exit code 2: settings or files are invalid; 3: a model does not answer; 6: the store cannot be
    used.
    """
    from evalstore.runs.workspace_checks.doctor import doctor as operation

    diagnosis = operation(here(), tuple(models or ()), ping=not no_ping, timeout=timeout)
    show = partial(print_diagnosis, diagnosis)
    return Lists(diagnosis, show, diagnosis.exit_code, ["findings", "models"])


def print_diagnosis(diagnosis: Diagnosis) -> None:
    """Print a line for each finding, with a hint below each problem."""
    rows: list[Row] = [
        (finding.level, finding.topic, finding.message, finding.hint)
        for finding in diagnosis.findings
    ]
    for checkup in diagnosis.models:
        rows += _rows_of(checkup)
    columns = None if output.wide else output.table_width()
    topics = [output.safe(topic) for _, topic, _, _ in rows]
    if columns is not None:
        topics = [*shorten_labels(topics, columns // 2 - _BESIDE)]
    widest = max(map(output.columns_of, topics))
    for (level, _, message, hint), topic in zip(rows, topics, strict=True):
        start = f"{output.paint(f'{level:4}', _COLOURS[level])}  {output.pad(topic, widest)}  "
        for text in [message, *([f"hint: {for_here(hint)}"] if hint else [])]:
            room = None if columns is None else columns - widest - _BESIDE
            lines = output.wrap_sentence(output.safe(text), room) if room else [output.safe(text)]
            for line in lines:
                output.line(f"{start}{line}")
                start = " " * (widest + _BESIDE)
    output.line()
    if not diagnosis.pings:
        output.line("no model was called")
        return
    cost = diagnosis.cost
    silent = sum(1 for model in diagnosis.models if model.pinged and not model.answered)
    text = "none answered" if silent == diagnosis.pings else f"{silent} did not answer"
    output.line(
        f"{output.plural(diagnosis.pings, 'model')} called, "
        + (output.paint(text, "fail") if silent else "all answered")
        + f"; the pings cost {'an unknown amount' if cost is None else output.money(cost)}"
    )


def _price(checkup: Checkup) -> str:
    """Return the price; a warning of its own says that it is not known."""
    from evalstore.interfaces.cli.commands.workspace import price_text

    price = checkup.facts["price"]
    if price is None:
        return "reports its cost" if checkup.reports_cost else ""
    return price_text(price)


def _rows_of(checkup: Checkup) -> Iterator[Row]:
    from evalstore.interfaces.cli.commands.workspace import capabilities_text

    topic = f"model {checkup.model}"
    if (reply := checkup.reply) is not None:
        name = f" as {reply.resolved_model}" if reply.resolved_model else ""
        yield "ok", topic, f"answered in {reply.latency:.2f} s{name}", None
    can = capabilities_text(checkup.facts)
    origin = f" ({checkup.key_origin})" if checkup.key_origin else ""
    facts = (
        f"{checkup.key_variable} is set{origin}" if checkup.key_set else "",
        "capabilities unknown" if can == "?" else f"can: {can}",
        _price(checkup),
    )
    level = "" if checkup.level == "fail" else "ok"
    yield level, topic, "; ".join(fact for fact in facts if fact), None
    for level, message, hint in checkup.problems:
        yield level, topic, message, hint


# --- `trust`


@app.command()
def trust(
    paths: Annotated[
        list[str] | None,
        argument(
            "FILE | env NAME HOST",
            "Python files of checks, and model files of applications; with --revoke also "
            "hashes, allowed paths and remotes. Or a variable and a host.",
            options.trusted_files,
        ),
    ] = None,
    network: Annotated[
        bool, option("--network", "Also allow network access to checks that need it.")
    ] = False,
    show: Annotated[bool, option("--list", "List what is trusted.")] = False,
    revoke: Annotated[bool, option("--revoke", "Withdraw the trust.")] = False,
) -> CommandOutput:
    """Allow code to run, or a key to be sent.

    Read the file first: it runs as you, and can read what you can. Its exact content is trusted on
    this machine; after a change, trust it again. For a model file, everything it runs is trusted:
    code, files, command line and variables. 'trust env NAME HOST' lets workspaces send the variable
    NAME of your environment to HOST (with or without a port). No file of a workspace can grant
    trust.
    """
    _require_sound(paths, show=show, revoke=revoke, network=network)
    if paths and paths[0] == "env":
        return _trust_variable(paths[1:], network=network, revoke=revoke)
    return _list_trusted() if show else _trust_files(paths or (), network=network, revoke=revoke)


def _require_sound(paths: list[str] | None, *, show: bool, revoke: bool, network: bool) -> None:
    """Raise `EvalstoreError` for options that cannot be combined, or when nothing is named."""
    if show and (paths or revoke or network):
        raise EvalstoreError(
            "'--list' cannot be combined with anything else", hint="evalstore trust --list"
        )
    without = "without '--network', trusting a file again takes only the network away"
    options.exclude("--network", "--revoke", revoke and network, without)
    if not show and not paths:
        raise EvalstoreError(
            "no file is named", hint="evalstore trust FILE, or evalstore trust --list"
        )


def _list_trusted() -> CommandOutput:
    from evalstore.runs.workspace_checks import trust
    from evalstore.workspace.trust import AllowedPaths

    files, variables = trust.trusted_files(), trust.allowed_variables()
    paths = AllowedPaths().entries

    def show() -> None:
        _print_list(files)
        for header, rows in (
            (("variable", "host"), [(each.variable, each.host) for each in variables]),
            (("allowed path", "workspace"), [(each.path, each.workspace) for each in paths]),
        ):
            print_table(Table(header, rows))

    return CommandOutput({"files": files, "variables": variables, "paths": paths}, show)


def _trust_files(names: Sequence[str], *, network: bool, revoke: bool) -> CommandOutput:
    from evalstore.runs.workspace_checks import trust

    paths: list[AllowedPath] = []
    if revoke:
        files, paths = trust.revoke(here(), names)
    else:
        files = trust.trust(here(), names, network=network)

    def show() -> None:
        for file in files:
            _print_file(file)
        for path in paths:
            output.line(f"{output.safe(path.path)}: no longer allowed")
            output.line(f"  for the workspace {output.safe(path.workspace)}")

    return CommandOutput({"files": files, **({"paths": paths} if revoke else {})}, show)


def _trust_variable(words: list[str], *, network: bool, revoke: bool) -> CommandOutput:
    from evalstore.runs.workspace_checks import trust

    if len(words) != 2 or network:
        raise EvalstoreError(
            "'trust env' takes a variable and a host",
            hint="as in: evalstore trust env DESK_KEY localhost:8000",
        )
    decide = trust.revoke_variable if revoke else trust.allow_variable
    variable = decide(*words)
    words_of = {
        "trusted": "may be sent to",
        "kept": "may be sent already to",
        "revoked": "may no longer be sent to",
    }
    text = f"{variable.variable}: {words_of[variable.change]} {output.safe(variable.host)}"
    return CommandOutput({"files": [], "variables": [variable]}, partial(output.line, text))


def _print_list(files: list[ShownFile]) -> None:
    if not files:
        output.talk("No file is trusted.")
        return
    header = ("file", "bytes", "network", "sha256")
    rows = [
        (file.path, f"{file.size:,}", "yes" if file.network else "no", file.sha256)
        for file in files
    ]
    print_table(Table(header, rows, frozenset({"bytes"}), ("network",)))


def _print_file(file: ShownFile) -> None:
    place = file.path
    if Path(place).is_relative_to(here().directory):
        place = str(Path(place).relative_to(here().directory))
    words = {"kept": "trusted already", "revoked": "no longer trusted"}.get(file.change, "trusted")
    size = output.plural(file.size, "byte")
    count = f", {output.plural(file.count, 'line')}" if file.count else ""
    output.line(f"{output.safe(place)}: {words}")
    output.line(f"  {size}{count}, sha256 {file.sha256}")
    if file.change == "revoked":
        return
    if file.is_application:
        output.line(f"  {output.safe(file.runs)}")
    else:
        reach = "with the network, if a check asks for it" if file.network else "without a network"
        output.line(f"  may run on this machine, {reach}")
    if output.quiet:
        return
    for line in file.lines:
        output.line(f"  | {output.safe(line)}")
    if file.count > len(file.lines):
        output.line(f"  … {output.plural(file.count - len(file.lines), 'more line')}")


# --- `fsck`


_LISTED = 10
"""The runs that a bundle presumes that are listed."""


@app.command()
def fsck(
    name: Annotated[
        str | None,
        argument(
            "NAME",
            "With --remote: a remote (default: origin, or the only one), or a bundle.",
            options.remotes,
        ),
    ] = None,
    remote: Annotated[bool, option("--remote", "Check a remote instead of the store.")] = False,
    repair: Annotated[
        bool, option("--repair", "Remove from the store what can no longer be read.")
    ] = False,
) -> CommandOutput:
    """Verify every id and reference of the store or a remote.

    With --repair, verdicts whose answers are missing, and runs that lack a part or cannot be read,
    are removed from the store first. Run 'evalstore pull' before: others may have what is missing.

    Of a remote or bundle, every byte and row is checked, and nothing is changed. The files to
    remove are listed; a push from a store that has their rows writes them again. For a bundle, no
    workspace is needed.
    """
    if remote:
        other = "'evalstore fsck --remote' says what repairs a remote"
        options.exclude("--repair", "--remote", repair, other)
        return _fsck_remote(name)
    if name is not None:
        raise EvalstoreError(
            "'fsck' takes no argument without --remote", hint=f"evalstore fsck --remote {name}"
        )
    from evalstore.exchange.sync.fsck import fsck as operation

    report = operation(here(), repair=repair)

    def show() -> None:
        if repair:
            counts = [output.plural(count, kind) for kind, count in report.removed.items()]
            output.line(f"removed {', '.join(counts) or 'nothing'}")
        for damage in report.problems:
            place = f"{damage.kind} {damage.id}".rstrip()
            output.line(output.safe(f"{place}: {damage.message}"))
        output.line(checked_rows(report.checked, len(report.problems)))

    return CommandOutput(report, show, NO if report.problems else OK)


def _fsck_remote(name: str | None) -> CommandOutput:
    from evalstore.exchange.sync.fsck import RemoteFsckReport, fsck_remote

    with show_progress("checking") as listener:
        report = fsck_remote(here(), name, listener)

    def show() -> None:
        if isinstance(report, RemoteFsckReport):
            print_check(report.check)
            tell_of_repair(report.check)
            return
        output.line(f"written  {report.created} by {output.safe(report.writer)}")
        if report.presumes:
            names = ", ".join(output.short(id) for id in report.presumes[:_LISTED])
            more = len(report.presumes) - _LISTED
            runs = f"{names} and {more:,} more" if more > 0 else names
            output.line(f"needs {output.plural(len(report.presumes), 'run')}: {runs}")
        print_check(report.check)

    return CommandOutput(report, show, NO if report.check.problems else OK)


# --- the result of the check of a store, a remote or a bundle, as text


def print_check(check: RemoteCheck) -> None:
    """Print all problems with their files, and what was checked."""
    shown = set[str]()
    for problem in check.problems:
        listed = problem.indexes if problem.file not in shown else ()
        shown.add(problem.file)
        by = f"; listed by {' and '.join(listed)}" if listed else ""
        output.line(output.safe(f"{problem.file}: {problem.message}{by}"))
    for name in check.unused:
        output.line(output.safe(f"{name}: unused, no index lists it"))
    if check.newer:
        rows = output.plural(check.newer, "row")
        output.line(f"{rows} of a newer version of evalstore not checked")
    unused = f", {output.plural(len(check.unused), 'unused pack')}" if check.unused else ""
    output.line(checked_rows(check.checked, len(check.problems)) + unused)


def tell_of_repair(check: RemoteCheck) -> None:
    """Say how to repair a remote that is damaged, or what is needed to check all of it."""
    from evalstore.remotes.download import NewerRow

    if check.remove:
        output.talk(output.safe(f"hint: {repair_hint(check.remove)}", lines=True))
    elif any(isinstance(problem, NewerRow) for problem in check.problems):
        output.talk("hint: upgrade evalstore")
    elif check.problems or check.unused:
        output.talk("hint: push from every store that may have the missing rows")


def checked_rows(checked: int, problems: int) -> str:
    """Return the last line of a check: how many rows were checked, and how many problems found."""
    found = output.paint(output.plural(problems, "problem"), "fail") if problems else "all is well"
    return f"{output.plural(checked, 'row')} checked: {found}"
