"""`trust`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.cli import completions, options, output
from evalstore.interfaces.cli.app import app, here
from evalstore.interfaces.cli.options import argument, option
from evalstore.interfaces.cli.render.table import Table, print_table

if TYPE_CHECKING:
    from evalstore.runs.workspace_checks.trust import ShownFile
    from evalstore.workspace.allowed_paths import AllowedPath


@app.command()
def trust(
    paths: Annotated[
        list[str] | None,
        argument(
            "FILE | env NAME HOST",
            "Python files of checks, and model files of applications; with --revoke also "
            "hashes, allowed paths and remotes. Or a variable and a host.",
            completions.trusted_files,
        ),
    ] = None,
    network: Annotated[
        bool, option("--network", "Also allow network access to checks that need it.")
    ] = False,
    show: Annotated[bool, option("--list", "List what is trusted.")] = False,
    revoke: Annotated[bool, option("--revoke", "Withdraw the trust.")] = False,
    json: options.Json = False,
) -> None:
    """Allow code to run, or a key to be sent.

    Read the file first: it runs as you, and can read what you can. Its exact content is trusted on
    this machine; after a change, trust it again. For a model file, everything it runs is trusted:
    code, files, command line and variables. 'trust env NAME HOST' lets workspaces send the variable
    NAME of your environment to HOST (with or without a port). No file of a workspace can grant
    trust.
    """
    _require_sound(paths, show=show, revoke=revoke, network=network)
    if paths and paths[0] == "env":
        _trust_variable(paths[1:], network=network, revoke=revoke, json=json)
    elif show:
        _list_trusted(json=json)
    else:
        _trust_files(paths or (), network=network, revoke=revoke, json=json)


def _require_sound(paths: list[str] | None, *, show: bool, revoke: bool, network: bool) -> None:
    """Raise `EvalstoreError` for options that cannot be combined, or when nothing is named."""
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


def _list_trusted(*, json: bool) -> None:
    from evalstore.runs.workspace_checks import trust

    files, variables, paths = (
        trust.trusted_files(),
        trust.allowed_variables(),
        trust.allowed_paths(),
    )
    if json:
        output.document({"files": files, "variables": variables, "paths": paths})
        return
    _print_list(files)
    for header, rows in (
        (("variable", "host"), [(each.variable, each.host) for each in variables]),
        (("allowed path", "workspace"), [(each.path, each.workspace) for each in paths]),
    ):
        if rows:
            print_table(Table(header, rows))


def _trust_files(names: Sequence[str], *, network: bool, revoke: bool, json: bool) -> None:
    from evalstore.runs.workspace_checks import trust

    paths: list[AllowedPath] = []
    if revoke:
        files, paths = trust.revoke(here(), names)
    else:
        files = trust.trust(here(), names, network=network)
    if json:
        output.document({"files": files, **({"paths": paths} if revoke else {})})
        return
    for file in files:
        _print_file(file)
    for path in paths:
        output.line(f"{output.safe(path.path)}: no longer allowed")
        output.line(f"  for the workspace {output.safe(path.workspace)}")


def _trust_variable(words: list[str], *, network: bool, revoke: bool, json: bool) -> None:
    from evalstore.runs.workspace_checks import trust

    if len(words) != 2 or network:
        raise EvalstoreError(
            "'trust env' takes a variable and a host",
            hint="as in: evalstore trust env DESK_KEY localhost:8000",
        )
    decide = trust.revoke_variable if revoke else trust.allow_variable
    variable = decide(*words)
    if json:
        output.document({"files": [], "variables": [variable]})
        return
    words_of = {
        "trusted": "may be sent to",
        "kept": "may be sent already to",
        "revoked": "may no longer be sent to",
    }
    output.line(f"{variable.variable}: {words_of[variable.change]} {output.safe(variable.host)}")


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
    if output.quiet:
        return
    for line in file.lines:
        output.line(f"  | {output.safe(line)}")
    if file.count > len(file.lines):
        output.line(f"  … {output.plural(file.count - len(file.lines), 'more line')}")
