"""Writes docs/cli.md from the help of the commands: `python -m tools.cli_docs > docs/cli.md`."""

from __future__ import annotations

import re
import sys
from typing import Any

from evalstore.interfaces.cli import main as cli
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.options import GROUPS

HEAD = """\
# Commands

Made from `evalstore COMMAND --help -v`. Every command has `--help`, and nearly all have `--json`,
which prints one document with `"format": 1` in the shape of
[documents.schema.json](documents.schema.json). Results go to stdout, everything else to stderr. An
error is a line `error: ...`, usually with `hint: ...`, which says what to type or change.

## Exit codes

| exit code | meaning |
|---|---|
| 0 | done, the gate passed; the run to join has already ended (`run --join RUN`) |
| 1 | the gate failed; damage (`fsck`), no match (`grep`), differences (`diff --exit-code`) |
| 2 | invalid usage, settings or file; no run to join; `grep` could not search all |
| 3 | incomplete: calls failed, or verdicts are undecided or pending; run again |
| 4 | stopped by `--max-cost` or `--max-time`, or the cost was not confirmed |
| 5 | nothing selected |
| 6 | the store or a remote is damaged, locked, read-only, unreachable, or newer than this program |
| 70 | a bug in evalstore |
| 130 | interrupted; what was finished is stored |

If verdicts fail and others are missing, the exit code is 1, and `failed` in the JSON counts what is
missing.

## Revisions

| revision | names |
|---|---|
| `@`, `@~2` | the latest run, the second before it |
| `7f3c`, `7f3c~1` | the object whose id begins with these digits (at least 4); the run before it |
| `@{monday}`, `@{2026-11-23 14:00}`, `@{2.days}` | the newest run before that; a day is its 00:00 |
| `v1`, `v1~2` | the run that `evalstore tag v1` named; the second before it |
| `@work` | the workspace: all cases as the files are now, with their stored verdicts |
| `origin/@`, `origin/7f3c` | runs of the remote `origin`, as the last `pull` or `push` saw them |

## Output

- **Pager.** In a terminal, `diff`, `grep`, `log`, `ls`, `show` and `stats` print through
  `EVALSTORE_PAGER`, `PAGER` or `less`, if the output is longer than the screen. `--no-pager`
  switches it off.
- **Colours** are used in a terminal unless `NO_COLOR` is set or `TERM` is `dumb`. `FORCE_COLOR=1`
  or `CLICOLOR_FORCE=1` also uses them in a file; `--color` overrides all.
- **Width.** In a terminal a table leaves out columns until it fits, then cuts long texts, never
  numbers. `--wide` shows everything. In a file or a pipe tables are complete, unless `COLUMNS` is
  set.
- **Other formats.** `ls`, `log`, `diff`, `stats`, `grep`, `sql`, `show`, `status`, `check`,
  `doctor` and `remote` print their list with `-o` (`--output`) `json`, `jsonl`, `csv` or `md`.
  Columns are the members of the JSON objects; `cost.all.total` is a member of a member. `diff` has
  the column `list` (`broke`, `fixed`, `changed`, `new`, `gone`), and so has `doctor` (`findings`,
  `models`).
"""


def pages() -> str:
    """The help of every command as Markdown."""
    group: Any = cli.commands()
    parts = [HEAD, _page("evalstore", group)]
    for title, names in GROUPS.items():
        parts.append(f"## {title}\n")
        parts += [_page(f"evalstore {name}", group.commands[name], level=3) for name in names]
    parts.append(_variables(group))
    return "\n".join(parts)


VARIABLES = """\
## Environment variables

Every option has a variable: `--max-cost` of `run` is `EVALSTORE_RUN_MAX_COST`, `--store` is
`EVALSTORE_STORE`. The command line overrides it. `1` sets a flag; spaces separate the values of a
repeatable option, whose variable is usually a plural: `EVALSTORE_RUN_TAGS`. `-o` of a list is
`EVALSTORE_LS_OUTPUT_FORMAT`. These have other names:

| option | variable |
|---|---|
"""


def _variables(group: Any) -> str:
    """The environment variables whose names do not follow from their options."""
    commands = [("", "EVALSTORE", group)]
    for names in GROUPS.values():
        for name in names:
            commands.append((f"{name} ", f"EVALSTORE_{name.upper()}", group.commands[name]))
    rows = [
        f"| `{name}{parameter.opts[-1]}` | `{variable_of(prefix, parameter)}` |\n"
        for name, prefix, command in commands
        for parameter in command.params
        if parameter.param_type_name == "option" and not parameter.hidden
        if variable_of(prefix, parameter) not in usual_variables(prefix, parameter.opts[-1])
    ]
    return VARIABLES + "".join(rows)


def variable_of(prefix: str, parameter: Any) -> str:
    """The name of the environment variable of an option."""
    return str(parameter.envvar or f"{prefix}_{parameter.name.upper()}")


def usual_variables(prefix: str, option: str) -> tuple[str, ...]:
    """The names of the environment variable of an option, as the page derives them."""
    name = f"{prefix}_{option.lstrip('-').upper().replace('-', '_')}"
    return (name, f"{name}S", f"{name}_FORMAT")


def _page(title: str, command: Any, level: int = 2) -> str:
    output.verbose = True  # all options are described
    width = {"max_content_width": 80, "terminal_width": 80}
    with command.make_context(title, [], resilient_parsing=True, **width) as context:
        text = _OF_ALL.sub("", command.get_help(context))
    text = _EMPTY.sub("", text)
    if title == "evalstore status":
        text = re.sub(r"Models:\n.*?(?=\nStored)", _OF_RUN, text, flags=re.DOTALL)
    return f"{'#' * level} {title}\n\n```text\n{text}\n```\n"


_OF_ALL = re.compile(
    r"\n\n\w[^\n]*:\n +--help +Show this message and exit\.(?=\n\n|$)"  # alone under its heading
    r"|\n +--help +Show this message and exit\.|\n +--json +Print JSON \(stable schema\)\."
    r"|\n +-o, --output FORMAT +As table, json, jsonl, csv or md\.  \[default: table\]"
)
"""What the head of the page says of all commands."""
_EMPTY = re.compile(r"(?m)^(Output|Options):\n\n?(?=\n|\w)")
_OF_RUN = "Models, Selection: as of 'run'\n"


if __name__ == "__main__":
    sys.stdout.write(pages())
