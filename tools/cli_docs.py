"""Writes docs/cli.md from the help of the commands: `python -m tools.cli_docs > docs/cli.md`."""

from __future__ import annotations

import sys
from typing import Any

from evalstore.interfaces.cli import main as cli
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.app import GROUPS
from evalstore.interfaces.cli.commands import stats, workspace

HEAD = """\
# Commands

Made from `evalstore COMMAND --help -v` by `make docs`; a test keeps it true. Without `-v`, a long
help only names the advanced options.

Data goes to stdout, messages (progress, notes, hints, errors) to stderr. With `--json` a command
prints one JSON document with `"format": 1`, in the shape of
[documents.schema.json](documents.schema.json), which stays stable. Every option
has an environment variable, such as `EVALSTORE_RUN_CONCURRENCY`; they are listed
[below](#environment-variables). An error is a line `error: ...`, mostly followed by `hint: ...`
with what to type or change.

## Output

In a terminal the output of `diff`, `grep`, `log`, `ls`, `show` and `stats` goes through
`EVALSTORE_PAGER`, else `PAGER`, else `less` (with `LESS=FRX` unless you have set others, so
what fits on the screen is only printed); `--no-pager`, or the pager `cat`, prints it.
Leaving the pager early does not change the exit code; a pager that cannot be started is an
error (2).

Colours are used in a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`; `FORCE_COLOR=1` or
`CLICOLOR_FORCE=1` has them in a file or a pipe, too. `--color` overrides all three.

In a terminal a table fits the screen: columns are left out in the order below until it does, then
long texts are cut, never numbers; a note on stderr says so, and `--wide` shows everything. In a
file or a pipe a table is complete unless the variable `COLUMNS` is set.

| table | left out first to last |
|---|---|
{columns}

A row of results in `run` and `show` has no header. First the ids of further answers are left out,
then the mark and the older run of a result move to a line of their own, then the names of the case
and the model are cut. The bar of a candidate in `run` is left out before its name is shorter than
16 columns, and a model has half of the screen in `doctor`. Other lines are wrapped between words;
only what is copied whole, such as a path or a command in a hint, can be wider than the screen.

`ls`, `log`, `diff`, `stats`, `grep`, `show`, `status`, `check`, `doctor` and `remote` print
their list with `-o` as `json` (the same as `--json`), `jsonl` (an object of the document's list
per line), `csv` or `md` (a Markdown table). The columns of `csv` and `md` are the members of these
objects, an object within them as `cost.all.total`; without a row they are the header alone. `diff`
has the column `list`: `broke`, `fixed`, `changed`, `new` or `gone`; so has `doctor`: `findings` or
`models`. In `csv` a text that a spreadsheet would take for a formula begins with an apostrophe.
The list of `show` has the results of a run, of the workspace or of a file.

## Exit codes

| exit code | meaning |
|---|---|
| 0 | done, the gate passed; the run to join is recorded already (`run --join RUN`) |
| 1 | the gate failed; damage (`fsck`), no match (`grep`), differences (`diff --exit-code`) |
| 2 | invalid usage, settings or file; no run to join; `grep` could not search all |
| 3 | incomplete: calls failed, or verdicts are undecided or pending; run again |
| 4 | stopped by `--max-cost` or `--max-time`, or the cost was not confirmed |
| 5 | nothing selected |
| 6 | the store or a remote is damaged, locked, read-only, unreachable, or newer than this program |
| 70 | a bug in evalstore |
| 130 | interrupted; what was finished is stored |

A failed verdict counts more than something missing: then the exit code is 1, and `failed` in the
JSON says how much is missing.

## Revisions

`@` is the latest run, `@~2` the second before it, `7f3c` the run (or any
other stored thing) whose id starts so, with at least 4 digits. Any revision that names a run
may be followed by `~` and a number, as in git: `7f3c~1` is the run before `7f3c`. For `stats`,
`show`, `diff` and `view` there is also `@work`, the workspace: all cases as the files have them
now, each with the verdict that stored answers and judgements give it.

`origin/@` is the latest run that the remote `origin` has, and `origin/@~2` and `origin/7f3c` are
others of its runs, as far as the last `pull` or `push` has seen them. Only a pulled run
can be shown.
"""


def _optional_columns() -> str:
    """The columns that a narrow terminal leaves out, a line of Markdown for each table."""
    tables = {f"ls {kind}": names for kind, names in workspace.OPTIONAL.items()}
    tables["stats"] = tuple(name or "the bar" for name in stats.OPTIONAL)
    return "\n".join(f"| `{table}` | {', '.join(names)} |" for table, names in tables.items())


def pages() -> str:
    """The help of every command as Markdown."""
    group: Any = cli.commands()
    parts = [HEAD.format(columns=_optional_columns()), _page("evalstore", group)]
    for title, names in GROUPS.items():
        parts.append(f"## {title}\n")
        parts += [_page(f"evalstore {name}", group.commands[name], level=3) for name in names]
    parts.append(_variables(group))
    return "\n".join(parts)


VARIABLES = """\
## Environment variables

An option on the command line overrides its variable. A flag is set by `1`, the values of a
repeatable option are separated by blanks. A variable is ignored where its option has no
meaning, such as `EVALSTORE_REMOTE_GRACE` in `evalstore remote show`; on the command line that is
an error.

| command | option | variable |
|---|---|---|
"""


def _variables(group: Any) -> str:
    """The environment variable of each option."""
    commands = [("evalstore", "EVALSTORE", group)]
    for names in GROUPS.values():
        for name in names:
            commands.append((name, f"EVALSTORE_{name.upper()}", group.commands[name]))
    rows = [
        f"| {name} | `{parameter.opts[-1]}` | `{variable_of(prefix, parameter)}` |\n"
        for name, prefix, command in commands
        for parameter in command.params
        if parameter.param_type_name == "option" and not parameter.hidden
    ]
    return VARIABLES + "".join(rows)


def variable_of(prefix: str, parameter: Any) -> str:
    """The name of the environment variable of an option."""
    return str(parameter.envvar or f"{prefix}_{parameter.name.upper()}")


def _page(title: str, command: Any, level: int = 2) -> str:
    output.verbose = True  # all options are described
    width = {"max_content_width": 100, "terminal_width": 100}
    with command.make_context(title, [], resilient_parsing=True, **width) as context:
        return f"{'#' * level} {title}\n\n```text\n{command.get_help(context)}\n```\n"


if __name__ == "__main__":
    sys.stdout.write(pages())
