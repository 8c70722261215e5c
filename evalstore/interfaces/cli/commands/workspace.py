"""`init`, `ls`, `check`."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from evalstore.core import clock
from evalstore.core.display import BROKEN_PENDING, STILL_BROKEN, WORKSPACE, case_name, status_word
from evalstore.core.errors import OK, USAGE, EvalstoreError, Problem, UnsuitedError
from evalstore.files.temporary_list import TemporaryList
from evalstore.interfaces.cli import options, output
from evalstore.interfaces.cli.options import Globals, app, argument, here, option
from evalstore.interfaces.cli.render.layout import (
    CommandOutput,
    Lists,
    Table,
    print_table,
)
from evalstore.planning.options import Kind, SelectionOptions

if TYPE_CHECKING:
    from evalstore.checks.base import CheckExample, CheckSetting
    from evalstore.checks.parser import CheckExplanation
    from evalstore.results.table.cases import ResultFilter
    from evalstore.results.table.list import Listing
    from evalstore.runs.workspace_checks.doctor import CheckReport


_LISTED = 4
"""Values that a cell of a table shows at most; JSON has all."""
_MODEL_COLUMNS = (
    *("model", "provider", "code", "used as", "capabilities"),
    *("$/1M in", "$/1M out", "$/call", "price from", "active"),
)
NUMBERS = frozenset({"cases", "times", "revision", "$/1M in", "$/1M out", "$/call"})
OPTIONAL: dict[str, tuple[str, ...]] = {
    "tests": ("tags",),
    "cases": ("judging version", "test version", "tags"),
    "models": ("code", "price from", "active", "provider", "capabilities", "used as"),
    "evaluators": ("id", "prompt"),
    "prompts": ("ids",),
    "tools": ("ids",),
    "schemas": ("ids",),
    "results": ("answer", "cause", "run"),
    "runs": ("commit", "author", "message", "arguments", "status", "cases"),
    "checks": ("example", "settings", "description"),
}
"""The columns of each list that a narrow terminal leaves out, in this order."""
_SHORTENED = {
    "cases": {"row": 16},
    "checks": {"description": 36, "settings": 20, "example": 28},
    "results": {"reason": 20},
}
"""The columns of each list that are cut to this width before one is left out."""


@app.command()
def init(
    directory: Annotated[
        Path | None, argument("DIR|FILE", "The folder (default: the current one), or a test file.")
    ] = None,
    example: Annotated[bool, option("--example", "Copy the example workspace.")] = False,
    bare: Annotated[bool, option("--bare", "Write no example test or models.")] = False,
    adopt: Annotated[
        Path | None, option("--from DIR", "Adopt the ai-tester project in DIR.")
    ] = None,
) -> CommandOutput:
    """Create a workspace and its store, or a test file.

    Existing files are not changed, nor are those of an adopted project. In a workspace, a FILE.md
    in the tests folder becomes a new test file with comments that explain it.
    """
    if directory is not None and directory.suffix == ".md":
        if example or bare or adopt:
            raise EvalstoreError(
                "'--example', '--bare' and '--from' are for a folder", hint="name no test file"
            )
        from evalstore.exchange.init import new_test

        test = new_test(here(), str(directory))

        def show_test() -> None:
            output.line(f"wrote {output.safe(test.written)}")
            _tell_next("Next: edit it, then run it:", [test.next])

        return CommandOutput(test, show_test)
    from evalstore.exchange.init import init as operation

    base = here().directory
    made = operation(
        base / (directory or "."),
        example=example,
        bare=bare,
        adopt_from=None if adopt is None else base / adopt,
        store=here().store,
        allow_outside=here().allow_outside,
        start=base,
        warn=output.warn,
    )

    def show() -> None:
        for name in made.written:
            output.line(f"wrote {output.safe(name)}")
        for name in made.kept:
            output.line(f"kept  {output.safe(name)} (already exists, left unchanged)")
        for note in made.notes:
            output.talk(f"note: {output.safe(note)}")
        _tell_next("Next:", made.next)

    return CommandOutput(made, show)


def _tell_next(title: str, commands: list[str]) -> None:
    """Print commands as they are typed in the current folder, or in the one of a first `cd`."""
    output.talk(title)
    first, *others = map(output.for_here, commands)
    if first.startswith("cd "):
        folder = (Globals.folder or Path()) / shlex.split(first)[1]
        first, others = shlex.join(["cd", str(folder)]), commands[1:]
    for command in (first, *others):
        output.talk(f"  {output.safe(command)}")


@app.command()
@options.grouped(selection=options.selection("paths", "models", "tags", "exclude_tags", "name"))
def ls(
    kind: Annotated[
        Kind,
        argument(
            "KIND",
            "tests, cases, results, models, evaluators, prompts, tools, schemas, tags, "
            "labels, runs or checks.",
        ),
    ] = "tests",
    full: Annotated[
        bool, option("--full", "With cases: include messages and instructions (JSON).")
    ] = False,
    *,
    selection: SelectionOptions,
    run: Annotated[
        str,
        option(
            "--run REV",
            "With results: those of a run, or of the workspace.",
            options.runs,
        ),
    ] = "@work",
    verdict: Annotated[
        list[str] | None, option("--verdict WORD", "With results: such as fail,undecided.")
    ] = None,
    grep: Annotated[
        str, option("--grep TEXT", "With results: words in answer, test or feedback.")
    ] = "",
    broke: Annotated[
        bool,
        option("--broke", f"With results: {STILL_BROKEN.lower()}."),
    ] = False,
    since: Annotated[
        str | None,
        option("--since REV|DATE", "With --broke: what broke after a run, or since a date."),
    ] = None,
) -> Lists:
    """List tests, cases, results, runs, checks and more.

    'ls checks NAME' explains a check, and needs no workspace. 'ls results' lists verdicts, each
    with its reason.
    """
    if kind == "checks" and selection.paths:
        return _explain_checks(selection.paths)
    if kind == "results":
        from evalstore.results.table.cases import ResultFilter

        wanted = ResultFilter(
            selection.paths,
            selection.models,
            selection.tags,
            selection.exclude_tags,
            selection.name,
            tuple(word.strip() for value in verdict or () for word in value.split(",")),
            grep,
            broke,
            since,
        )
        return _list_results(run, wanted)
    chosen = {"--model": selection.models, "--verdict": verdict, "--grep": grep}
    for name, value in {**chosen, "--broke": broke, "--since": since}.items():
        options.need(name, "results", value, "write 'evalstore ls results'")
    from evalstore.results.table.list import list_things

    lists_all = full or (kind == "labels" and output.verbose)
    listing = list_things(here(), kind, selection, full=lists_all)
    if full and output.format == "table":
        output.format = "json"
    output.left_out(listing.left_out)
    exit_code = USAGE if listing.left_out else OK
    return Lists(listing, partial(_print_listing, listing), exit_code, [kind], f"ls {kind}")


def _list_results(revision: str, wanted: ResultFilter) -> Lists:
    from evalstore.core.display import FAILING
    from evalstore.results.table.cases import MOST_WITH_CAUSE, describe_results, find_filtered
    from evalstore.results.table.list import Listing
    from evalstore.store.events import RUNS_SEARCHED

    is_data = output.format != "table"
    is_less = bool(wanted.verdicts) and "pending" not in wanted.verdicts and not is_data
    query = replace(wanted, verdicts=(*wanted.verdicts, "pending")) if is_less else wanted
    with find_filtered(here(), revision, query) as (project, found):
        dated_in = found.run if wanted.broke or not is_data else None
        described = describe_results(
            here(), project, found.batches, is_data=is_data, dated_in=dated_in, broke=wanted.broke
        )
        rows = TemporaryList(described)
        several = len(found.run.candidates) > 1 and len(wanted.models) != 1
    found_since = [
        row["since"] for row in rows if not is_data and (wanted.broke or row["verdict"] in FAILING)
    ]
    pending = 0 if is_data else sum(row["verdict"] == "pending" for row in rows)
    if is_less and pending:
        rows = TemporaryList(row for row in rows if row["verdict"] != "pending")
    columns = ("verdict", "case", "model", "since", "run", "answer", "cause", "reason")
    is_dated = wanted.broke or bool(found_since)
    left_out = {
        "model": not several,
        **dict.fromkeys(("since", "run"), not is_dated),
        "cause": not wanted.broke,
    }
    shown = tuple(name for name in columns if not left_out.get(name))
    listing = Listing("results", rows, shown)

    def show() -> None:
        _print_listing(listing)
        if wanted.grep and not rows:
            output.talk("(results without an answer are not searched)")
        if None in found_since:
            given = "SINCE and CAUSE are" if wanted.broke else "SINCE is"
            most = f"{MOST_WITH_CAUSE} results, from {RUNS_SEARCHED} runs"
            output.talk(f"({given} given for at most {most})")
        if wanted.broke and wanted.since is None and revision in ("@", "@work"):
            output.talk(f"({STILL_BROKEN.lower()}; '--since REV' lists what broke since REV)")
        if pending and is_less:
            output.talk(f"({pending:,} more pending: '--verdict pending' lists them)")
        elif pending and wanted.broke:
            output.talk(f"({pending:,} of these: {BROKEN_PENDING})")

    return Lists(listing, show, names=["results"], kind="ls results")


def _result_cells(row: dict[str, Any]) -> dict[str, Any]:
    """Return the cells of a result."""
    reason = row["feedback"].replace("\n", " · ")
    since = row.get("since")
    is_now = since == WORKSPACE
    return {
        "verdict": row["verdict"],
        "case": case_name(row["file"], row["row"], row["promptName"]),
        "model": row["model"],
        "since": "now" if is_now else since and output.ago(row["started"]),
        "run": None if is_now else since,
        "answer": next(iter(row["sessions"]), ""),
        "cause": ", ".join(row.get("changes", ())),
        "reason": reason,
    }


def _explain_checks(names: Sequence[str]) -> Lists:
    from evalstore.checks.parser import explain_check

    if len(names) > 1 or output.format not in ("table", "json"):
        raise EvalstoreError(
            "'ls checks' explains one check, as text or JSON",
            hint=f"evalstore ls checks {names[0]} --json",
        )
    explanation = explain_check(names[0])
    return Lists(explanation, partial(print_check_explanation, explanation))


def _print_listing(listing: Listing) -> None:
    """Print a list for people, with what it needs to be understood."""
    others = output.plural(listing.unlisted, "label") if listing.unlisted else ""
    void = f"no longer {'counts' if listing.unlisted == 1 else 'count'}"
    why = "not listed" if listing.left_out else f"that {void}; -v lists them"
    notes = [f"(left out: {others} {why})"] if others and not listing.uncounted else []
    if listing.rows:
        print_table(_table(listing))
    else:
        where = " that count in the workspace" if others else ""
        output.talk("\n".join((f"No {listing.kind}{where}.", *notes)))
    if listing.uncounted:
        columns = ("file", "row", "prompt", "model", "label", "by", "note", "reason")
        output.line(f"{others} {void}:")
        print_table(_table(replace(listing, rows=listing.uncounted, columns=columns)))
    if not listing.rows:
        return
    if listing.kind == "models" and any(capabilities_text(row) == "?" for row in listing.rows):
        for text in output.wrap(_UNKNOWN, output.width()):
            output.talk(text)
    if listing.kind == "labels":
        known = [row["agrees"] for row in listing.rows if row["agrees"] is not None]
        told = "no labelled answer has been judged completely by checks and judges"
        if known:
            verb = "agrees" if len(known) == 1 else "agree"
            labels = f"{sum(known):,} of {output.plural(len(known), 'label')} {verb}"
            told = f"{labels} with checks and judges ({output.percent(sum(known) / len(known))})"
        output.talk("\n".join((f"{told}.", *notes)))
    if listing.kind == "checks":
        output.talk("'evalstore ls checks NAME' shows settings and examples.")
        output.talk("'not: true' reverses a check: {contains: Paris, not: true}")


def _table(listing: Listing) -> Table:
    """Lay out a list as a table; the columns of models are composed of several fields."""
    cells = _CELLS.get(listing.kind, dict)
    columns = tuple(_TITLES.get(name, name) for name in listing.columns)
    titled = ({_TITLES.get(k, k): cell for k, cell in cells(row).items()} for row in listing.rows)
    if isinstance(listing.rows, TemporaryList):
        return _lay_out(listing.kind, columns, titled)
    rows = [*titled]
    if listing.kind == "models":
        has_calls = any(row["$/call"] for row in rows)
        columns = tuple(name for name in _MODEL_COLUMNS if name != "$/call" or has_calls)
    if listing.kind == "labels":
        columns = tuple(name for name in columns if any(row[name] for row in rows))
    return _lay_out(listing.kind, columns, rows)


def _lay_out(kind: str, columns: tuple[str, ...], rows: Iterable[dict[str, Any]]) -> Table:
    cells = ([_cell(row.get(column)) for column in columns] for row in rows)
    return Table(
        columns,
        cells if isinstance(rows, Iterator) else [*cells],
        NUMBERS,
        OPTIONAL.get(kind, ()),
        _SHORTENED.get(kind, {}),
        prose={"checks": "description", "results": "reason"}.get(kind),
    )


_UNKNOWN = "(?: unknown; the model file can declare it under 'capabilities')"


def _model_cells(row: dict[str, Any]) -> dict[str, Any]:
    """Return the cells of a model with its capabilities and prices; unknown values are `?`."""
    tokens = zip(("$/1M in", "$/1M out"), _token_prices(row["price"]), strict=True)
    return {
        **row,
        "used as": (row["used"] or "").replace("evaluator", "judge"),
        "capabilities": capabilities_text(row),
        **dict(tokens),
        "$/call": f"{row['price']['call']:,.6g}" if row["price"] and row["price"]["call"] else "",
        "price from": price_source(row["price"], with_calls=False),
        "active": "yes" if row["active"] else "no",
    }


def _run_cells(row: dict[str, Any]) -> dict[str, Any]:
    """Return the cells of a run, with its time relative to now and a short commit.

    The status of a complete run of some cases or candidates is that it is partial.
    """
    cases, status = row.get("cases"), status_word(row["status"])
    words = shlex.split(row["selection"] or "")
    is_of_some = bool(cases and cases["selected"] < cases["total"])
    is_of_some = is_of_some or not {"-m", "--lf", "--retry-errors"}.isdisjoint(words)
    started = datetime.fromisoformat(row["started"]).timestamp()
    return {
        **row,
        "status": "partial" if is_of_some and status == "complete" else status,
        "started": clock.local_minute(round(started * 1e6)),
        "gitCommit": output.short(row.get("gitCommit") or ""),
    }


_TITLES = {"tests": "test version", "evaluation": "judging version"}
_TITLES |= {"evaluator": "judge", "gitCommit": "commit", "selection": "arguments"}
"""The titles of columns that are not the names of their fields."""


_CELLS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "checks": lambda row: {**row, "settings": ", ".join(it["name"] for it in row["settings"])},
    "results": _result_cells,
    "labels": lambda row: (
        row | {"prompt": row["promptName"] or "", "judged": row.get("judged") or "-"}
    ),
    "models": _model_cells,
    "runs": _run_cells,
}


def capabilities_text(row: dict[str, Any]) -> str:
    """List the capabilities declared in the model file, and further ones from litellm's table."""
    declared, known = row["capabilities"], row["knownCapabilities"] or {}
    besides = {word: can for word, can in known.items() if word not in declared}
    parts = [_words(declared)] if declared else []
    parts += [f"{_words(besides)} (litellm)"] if besides else []
    return "; ".join(parts) or "?"


def _words(capabilities: dict[str, bool]) -> str:
    return ", ".join(word if can else f"no {word}" for word, can in capabilities.items())


def _token_prices(price: dict[str, Any] | None) -> tuple[str, str]:
    return ("?", "?") if price is None else (f"{price['input']:,.6g}", f"{price['output']:,.6g}")


def price_text(price: dict[str, Any] | None) -> str:
    """Describe a price in words."""
    if price is None:
        return "price unknown"
    if price["source"] == "local":
        return "local: costs nothing"
    tokens = "${} in, ${} out per million tokens".format(*_token_prices(price))
    return f"{tokens}, from {price_source(price)}"


def price_source(price: dict[str, Any] | None, *, with_calls: bool = True) -> str:
    """Name the source of a price, and its parts that do not depend on tokens.

    The price of a call is left out without `with_calls`.
    """
    if price is None:
        return "unknown"
    rate = f"{price['currency']} at {price['rate']:g}" if price["currency"] else ""
    parts = (
        f"{price['source']} ({rate})" if rate else price["source"],
        f"${price['call']:,.6g} a call" if with_calls and price["call"] else "",
        f"${price['hour']:,.6g} an hour" if price["hour"] else "",
    )
    return " + ".join(part for part in parts if part)


def _cell(value: object) -> str:
    if isinstance(value, list):
        listed = [
            f"{item} ×{count}" if count > 1 else item
            for item, count in Counter(map(_cell, value)).items()
        ]
        more = f" … {len(listed)} in all" if len(listed) > _LISTED else ""
        return ", ".join(listed[:_LISTED]) + more
    if isinstance(value, dict):  # the cases of a run
        return f"{value['selected']:,} of {value['total']:,}"
    text = "" if value is None else str(value)
    return (
        output.short(text)
        if len(text) == 32 and all(digit in "0123456789abcdef" for digit in text)
        else text
    )


# --- prints the explanation of a check type


_INDENT = 2


def print_check_explanation(check: CheckExplanation) -> None:
    """Print what a check does, its settings and its examples."""
    name = output.paint(output.safe(check.type), bold=True)
    output.line(f"{name} passes if {output.safe(check.description)}.")
    for line in output.wrap(_without_markup(check.notes), output.width()) if check.notes else ():
        output.line(output.safe(line))
    _print_settings("Settings", check.settings, check.main)
    if not check.settings:
        output.line()
        output.line("It has no settings of its own.")
    _print_settings("Settings of every check", check.common, None)
    _print_examples(check.examples)


def _without_markup(text: str) -> str:
    """Remove Markdown's links and backticks from a text."""
    text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
    return re.sub(r"`(\".*?\")`", r"\1", text).replace("`", "'")


def _print_settings(title: str, settings: Iterable[CheckSetting], main: str | None) -> None:
    from evalstore.checks.parser import default_text

    settings = tuple(settings)
    if not settings:
        return
    output.line()
    output.line(output.faint(f"{title}:"))
    width = max(len(setting.name) for setting in settings)
    for setting in settings:
        words = [_without_markup(setting.type.words)]
        if default := default_text(setting):
            words.append(default if setting.required else f"default {default}")
        if setting.name == main:
            words.append("or written as the value of the check")
        text = f"{_without_markup(setting.description)} ({'; '.join(words)})"
        for number, line in enumerate(output.wrap(text, output.width() - width - 2 * _INDENT)):
            name = setting.name if number == 0 else ""
            output.line(f"{' ' * _INDENT}{name.ljust(width)}  {output.safe(line)}")


def _print_examples(examples: tuple[CheckExample, ...]) -> None:
    if not examples:
        return
    output.line()
    output.line(output.faint("Examples:" if len(examples) > 1 else "Example:"))
    for example in examples:
        output.line(f"{' ' * _INDENT}- {output.safe(example.check)}")
        for line in _answers(example):
            output.line(f"{' ' * 3 * _INDENT}{line}")


def _answers(example: CheckExample) -> Iterator[str]:
    from evalstore.checks.parser import example_text

    for verdict, answer in (("pass", example.passing), ("fail", example.failing)):
        if answer is not None:
            word = output.paint(verdict, verdict)
            yield f"{word}  {output.safe(example_text(answer))}"


# --- `check`


@app.command()
@options.grouped(selection=options.selection("paths"))
def check(
    selection: SelectionOptions,
    schema: Annotated[
        bool, option("--schema", "Print JSON Schemas of files, for editors.")
    ] = False,
    into: Annotated[Path | None, option("--into DIR", "With --schema: write them to DIR.")] = None,
    format: Annotated[
        Literal["text", "sarif"], option("--format FORMAT", "As text or sarif (SARIF 2.1.0).")
    ] = "text",
) -> Lists:
    """Validate all files without calling a model.

    'check --schema KIND' prints the JSON Schema of a kind of file: frontmatter, checks, prompt,
    settings, model, provider, currency or tool. It needs no workspace.
    """
    is_alone = into is not None and not schema
    options.need("--into", "--schema", is_alone, "write '--schema --into DIR'")
    if schema:
        output.format = "table"
        return Lists(None, partial(_print_schemas, selection.paths, into))
    from evalstore.runs.workspace_checks.doctor import check as operation

    if format != "text" and output.format != "table":
        raise UnsuitedError("'--format' cannot be combined with '--json' or '--output'")
    report = operation(here(), selection.paths)
    report.problems.extend(_problems_of_browser())
    if output.is_github():
        from evalstore.exchange.markdown_report import annotate_problems
        from evalstore.workspace.settings.settings import find_root

        for annotation in annotate_problems(report.problems, find_root(here().directory)):
            output.workflow_command(annotation.command)
    show = partial(_print_sarif if format == "sarif" else _print_check, report)
    return Lists(report, show, USAGE if report.errors else OK, ["problems"])


def _print_check(report: CheckReport) -> None:
    for problem in report.problems:
        output.problem(problem)
    warnings = len(report.problems) - report.errors
    errors = output.paint(output.plural(report.errors, "error"), "fail")
    output.line(
        f"{output.plural(report.files, 'test file')}, {output.plural(report.cases, 'case')}: "
        + (errors if report.errors else "no errors")
        + (f", {output.plural(warnings, 'warning')}" if warnings else "")
    )


def _print_schemas(kinds: Sequence[str], folder: Path | None) -> None:
    from evalstore.workspace.schemas import TITLES, schema_text, write_schemas

    if folder is not None:
        for path in write_schemas(here().directory, folder, kinds):
            output.line(f"wrote {output.safe(str(path))}")
    elif kinds:
        for kind in kinds:
            output.line(schema_text(kind).rstrip())
    else:
        print_table(Table(("kind", "files"), [[*row] for row in TITLES.items()]))
        output.talk("'evalstore check --schema KIND' prints one, '--schema --into DIR' writes all.")


def _print_sarif(report: CheckReport) -> None:
    from json import dumps

    from evalstore.exchange.markdown_report import sarif_log
    from evalstore.workspace.settings.settings import find_root

    output.data_line(dumps(sarif_log(report.problems, find_root(here().directory)), indent=2))


def _problems_of_browser() -> Iterable[Problem]:
    """Return problems in the browser's settings, which only the browser can check."""
    from evalstore.workspace.settings.settings import BrowserSettings, browser_settings

    file, browser = browser_settings(here().directory, here().config)
    if browser == BrowserSettings():
        return ()
    from evalstore.interfaces.tui.appearance import find_problems

    return find_problems(file, browser)
