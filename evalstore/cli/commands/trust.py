"""`trust`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalstore.cli import options, output
from evalstore.cli.app import app, here
from evalstore.errors import EvalstoreError

if TYPE_CHECKING:
    from evalstore.operations.trust import ShownFile, ShownVariable
    from evalstore.workspace.allowed_paths import AllowedPath


@app.command()
def trust(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE | env NAME HOST",
            help="Python files of checks, and model files of applications; with --revoke also "
            "hashes and allowed paths. Or a variable and a host.",
        ),
    ] = None,
    network: Annotated[
        bool, typer.Option("--network", help="Also allow network access to checks that need it.")
    ] = False,
    show: Annotated[bool, typer.Option("--list", help="List what is trusted.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Withdraw the trust.")] = False,
    json: options.Json = False,
) -> None:
    """Allow a check or an application to run, or a key to be sent.

    Read the file first: it runs as you, and can read what you can. Its exact content is trusted on
    this machine; after a change it has to be trusted again. Of a model file, all that it runs is
    trusted: its code, its files, its command line and its variables. 'trust env NAME HOST' lets
    workspaces send the variable NAME of your environment to HOST (with or without a port). No file
    of a workspace can grant trust.
    """
    from evalstore.operations import trust

    if show and (paths or revoke or network):
        raise EvalstoreError(
            "'--list' cannot be combined with anything else", hint="evalstore trust --list"
        )
    if revoke and network:
        raise EvalstoreError(
            "'--revoke' cannot be combined with '--network'",
            hint="without '--network', trusting a file again takes only the network away",
        )
    if not show and not paths:
        raise EvalstoreError(
            "no file is named", hint="evalstore trust FILE, or evalstore trust --list"
        )
    if paths and paths[0] == "env":
        _trust_variable(paths[1:], network=network, revoke=revoke, json=json)
        return
    allowed: list[AllowedPath] = []
    if show:
        found, allowed = trust.trusted_files(), trust.allowed_paths()
    elif revoke:
        found, allowed = trust.revoke(here(), paths or ())
    else:
        found = trust.trust(here(), paths or (), network=network)
    if json:
        content: dict[str, Any] = {"files": found}
        if show:
            content["variables"] = trust.allowed_variables()
        if show or revoke:
            content["paths"] = allowed
        output.document(content)
    elif show:
        _print_list(found)
        _print_variables(trust.allowed_variables())
        _print_allowed(allowed)
    else:
        for file in found:
            _print_one(file)
        for path in allowed:
            output.line(f"{output.safe(path.path)}: no longer allowed")
            output.line(f"  for the workspace {output.safe(path.workspace)}")


def _print_allowed(allowed: list[AllowedPath]) -> None:
    if allowed:
        header = ("allowed path", "workspace")
        output.table([(path.path, path.workspace) for path in allowed], header)


def _trust_variable(words: list[str], *, network: bool, revoke: bool, json: bool) -> None:
    from evalstore.operations import trust

    if len(words) != 2 or network:
        raise EvalstoreError(
            "'trust env' takes a variable and a host",
            hint="as in: evalstore trust env DESK_KEY localhost:8000",
        )
    decide = trust.revoke_variable if revoke else trust.allow_variable
    found = decide(*words)
    if json:
        output.document({"files": [], "variables": [found]})
        return
    words_of = {
        "trusted": "may be sent to",
        "kept": "may be sent already to",
        "revoked": "may no longer be sent to",
    }
    output.line(f"{found.variable}: {words_of[found.change]} {output.safe(found.host)}")


def _print_variables(found: list[ShownVariable]) -> None:
    if found:
        output.table(
            [(variable.variable, variable.host) for variable in found], ("variable", "host")
        )


def _print_list(found: list[ShownFile]) -> None:
    if not found:
        output.talk("No file is trusted.")
        return
    header = ("file", "bytes", "network", "sha256")
    rows = [
        (file.path, f"{file.size:,}", "yes" if file.network else "no", file.sha256)
        for file in found
    ]
    output.table(rows, header)


def _print_one(file: ShownFile) -> None:
    place = file.path
    if Path(place).is_relative_to(here().directory):
        place = str(Path(place).relative_to(here().directory))
    words = {
        "trusted": "trusted",
        "kept": "trusted already",
        "revoked": "no longer trusted",
    }[file.change]
    size = output.plural(file.size, "byte")
    count = f", {output.plural(file.count, 'line')}" if file.count else ""
    output.line(f"{output.safe(place)}: {words}")
    output.line(f"  {size}{count}, sha256 {file.sha256}")
    if file.is_application:
        if file.change != "revoked":
            output.line(f"  {output.safe(file.runs)}")
            _print_lines(file)
        return
    if file.change != "revoked":
        reach = "with the network, if a check asks for it" if file.network else "without a network"
        output.line(f"  may run on this machine, {reach}")
        _print_lines(file)


def _print_lines(file: ShownFile) -> None:
    for line in file.lines:
        output.line(f"  | {output.safe(line)}")
    if file.count > len(file.lines):
        output.line(f"  … {output.plural(file.count - len(file.lines), 'more line')}")
