"""What a run tells GitHub: annotations, a summary of the step, and a comment on a pull request.

The comment is what `report --markdown` prints. Texts of models and files are in code, where they
call nobody and link to nothing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from evalstore import __version__
from evalstore.core.clock import minute
from evalstore.core.display import (
    case_name,
    percent,
    plural,
    safe,
    saved_text,
    short,
)
from evalstore.core.errors import Problem
from evalstore.core.runs import Run, shared_cost_text, spending_text
from evalstore.core.values import CellKey, Decision, Result
from evalstore.exchange.exports.formats import code_block, code_span, cut
from evalstore.planning.cell_results import find_feedback
from evalstore.planning.open_project import open_catalogue
from evalstore.planning.options import Location, is_partial
from evalstore.planning.project import Project
from evalstore.results.answer.judgements import attempts_text
from evalstore.results.compare.diff import compare_run
from evalstore.results.compare.diff_result import Diff, count_cases, describe_pair, summary_lines
from evalstore.results.edits.edited_files import find_run_edits
from evalstore.results.flips.result_history import JudgedResult, find_attempts, find_history
from evalstore.results.flips.verdict_changes import by_title, find_earlier_breaks
from evalstore.results.labels import find_later_labels
from evalstore.results.names import TestLines, prompt_labels
from evalstore.results.report_overview import Overview, count_texts, make_overview
from evalstore.results.stats.groups import PARTLY_TEXT
from evalstore.results.stats.stats import Stats, StatsCollector, sum_spent
from evalstore.runs.run_report import RunReport
from evalstore.runs.run_text import list_results, run_counts_text, scope_text
from evalstore.store import Store
from evalstore.store.events import is_all_scripted
from evalstore.store.results import RowResults, iterate_cases, iterate_results
from evalstore.store.revisions import names_of_runs, resolve_run
from evalstore.workspace.folder import WorkspaceFolder

MARK = b"### evalstore: "
"""The bytes with which a report begins."""
MOST_CHARACTERS = 60_000
"""Characters of a report: a comment on GitHub has at most 65,536, a summary more."""
_MOST_PAIRS = 20
"""Pairs that are listed with their feedback."""
_LONGEST = 1_000
"""Characters of a feedback."""


def markdown_report(location: Location, revision: str = "@", compare: str | None = None) -> str:
    """Return a run in Markdown, compared with another one, by default with the previous one.

    Raises `RevisionError` for an unknown run.
    """
    with open_catalogue(location) as project:
        store = project.store
        run = resolve_run(store, revision)
        collector = StatsCollector(project, run, [("model",)])
        totals = None
        if any(run.verdicts.values()):  # before the comparison, which takes memory
            totals = collector.finish(rerolls=False)[0]
        usd = collector.saved
        saved = saved_text(usd, is_simulated=is_all_scripted(store, run)) if usd else ""
        compared = compare_run(location, project, run, compare, answers=False)
        searched = find_earlier_breaks(location, project, run, compared)
        broken = by_title(searched or ())
        breaks = [it for listed in broken.values() for it in listed[:_MOST_PAIRS]]
        flips = compared.flips.values() if compared else ()
        pairs = [*chain.from_iterable(each[:_MOST_PAIRS] for each in flips)]
        failing, new_prompts = _find_new_failures(project, run, compared)
        listed = [*(pair.now for pair in pairs if pair.now), *failing[:_MOST_PAIRS]]
        attempts = _count_attempts(store, run, listed)
        quoted = [*(it.result for it in breaks), *failing[:_MOST_PAIRS]]
        feedback = find_feedback(store, (result.decision for result in quoted))
        names = names_of_runs(store)
        folder, rows = project.settings.paths["tests"], RowResults(store)
        earlier = {
            result: f", {': '.join(filter(None, (broke, changes)))}"
            for _, result, since, started in breaks
            for broke in [f"broke in run {_run_name(since, names)}, {minute(started)}"]
            for history in [find_history(store, folder, result, run, rows=rows)]
            for changes in [history.changes_in(since, code_span) if history else ""]
        }
        note, _ = find_later_labels(store, run, _name)
        spent = sum_spent(store, run)
        overview = make_overview(
            *(run, totals, compared, searched or (), _name),
            pending=run.verdicts.get("pending", 0),
            compare=collector.compare,
        )
        (edits,) = find_run_edits(location, store, [run])
    new = {it: f", {n}" if (n := attempts.get(it.cell)) else "" for it in failing}
    prompts = compared.prompts if compared else {}
    return _join(
        [
            *_headline(run, compared, overview, names),
            *(
                [f"Edits: {'; '.join(code_span(str(each)) for each in edits)}.", ""]
                if edits
                else []
            ),
            *_candidates(overview),
            *chain.from_iterable(
                (f"{each[0].upper()}{each[1:]}.", "")
                for each in (*count_texts(run, run.verdicts, compared, searched), note)
                if each
            ),
            *(_broken(compared, attempts) if compared else ()),
            *chain.from_iterable(
                _failing(title, [it.result for it in listed], prompts, earlier, feedback)
                for title, listed in broken.items()
            ),
            *_failing(
                "New and not passing" if compared else "Not passing",
                *(failing, new_prompts, new, feedback),
            ),
            *(_noise(compared, totals) if compared else ()),
            *_costs(run, saved, shared_cost_text(*spent)),
        ]
    )


def _find_new_failures(
    project: Project, run: Run, compared: Diff | None
) -> tuple[list[Result], Mapping[str, Mapping[str | None, str]]]:
    """Return what does not pass and is new, of a first run whatever does not pass.

    With it the names of system prompts, by the test file that has several.
    """
    if compared:
        return [pair.either for pair in compared.new.new_failures()], compared.prompts
    failures: list[Result] = []

    def read() -> Iterator[Result]:
        for batch in iterate_results(project.store, run):
            failures.extend(each for each in batch if each.verdict not in (None, "pass"))
            yield from batch

    several = prompt_labels(project, read())
    return sorted(failures, key=attrgetter("cell")), several


def _count_attempts(store: Store, run: Run, results: Sequence[Result]) -> dict[CellKey, str]:
    """Return how many attempts fail of each of these results that has several."""
    cells = {result.cell for result in results if result.required_answers > 1}
    records = [
        JudgedResult(run, None, result, case)
        for file in sorted({file for file, *_ in cells})
        for batch in iterate_cases(store, run, file)
        for result, case in batch
        if result.cell in cells
    ]
    attempts = find_attempts(store, records)
    return {
        record.result.cell: attempts_text(attempt.verdict for attempt in listed)
        for record in records
        if (listed := attempts.get(record.result.evaluations))
    }


def _join(lines: Sequence[str]) -> str:
    """Return the lines as a text that is not too long; it is cut between two of them."""
    text, left = "", MOST_CHARACTERS
    for number, line in enumerate(lines):
        if not line and text.endswith("\n\n"):
            continue
        left -= len(line) + 1
        if left < 0:
            return f"{text}\n({plural(len(lines) - number, 'more part')}: the report is too long)\n"
        text += f"{line}\n"
    return text


def _headline(
    run: Run,
    compared: Diff | None,
    overview: Overview,
    names: Mapping[str, Sequence[str]],
) -> Iterator[str]:
    yield from (f"{MARK.decode()}{overview.sentence}", "")
    scope = scope_text(run)
    counts = run_counts_text(run) + ", $0" * (run.cost == 0)  # else the sentence has it
    about = f", with {code_span(scope)}" * bool(scope)
    if is_partial(run) and counts.startswith("complete"):
        counts = f"partial{counts.removeprefix('complete')}"
    versus = ", with no earlier run to compare with"
    if compared:
        versus = f", compared with {_run_name(compared.was, names)}{compared.filled_text}"
    message = code_span(run.message or "")
    quoted = message if message.startswith("`") else f"“{message}”"
    told = ", ".join([minute(run.started), *([quoted] if message else [])])
    name = f"{_run_name(run.id, names)} ({told})"
    yield from (f"Run {name} is {counts}{about}{versus}.", "")


def _run_name(id: str, names: Mapping[str, Sequence[str]]) -> str:
    """Return the short id of a run as code, with its names."""
    return f"`{short(id)}`" + "".join(f" ({_name(name)})" for name in names.get(id, ()))


def _candidates(overview: Overview) -> Iterator[str]:
    """Yield a table of the candidates, and what to know of it."""
    if not (rows := overview.candidates):
        return
    columns = {
        "candidate": [_name(row.name).replace("|", "\\|") for row in rows],
        "passed": [row.rate for row in rows],
        "95% interval": [" to ".join(map(percent, row.interval or ())) for row in rows],
        "results": ["" if row.is_counted else row.group.counts for row in rows],
        "change": [f"{it.text} {it.part}".rstrip() if (it := row.shift) else "" for row in rows],
        "100 answers": [row.cost for row in rows],
        "latency": [row.latency for row in rows],
    }
    shown = {title: cells for title, cells in columns.items() if any(cells)}
    yield f"| {' | '.join(shown)} |"
    yield f"|---|{'---:|' * (len(shown) - 1)}"
    yield from (f"| {' | '.join(cells)} |" for cells in zip(*shown.values(), strict=True))
    yield ""
    notes = [overview.note, PARTLY_TEXT * any(row.is_partly for row in rows)]
    for note in filter(None, notes):
        yield from (f"{note}.", "")


def _name(name: str) -> str:
    """Return the name of a file, a case or a model as code."""
    return code_span(name, is_name=True)


def _broken(compared: Diff, attempts: Mapping[CellKey, str]) -> Iterator[str]:
    """Yield what broke or became undecided with its reason and feedback, and what was fixed."""
    for word, pairs in compared.flips.items():
        listed = []
        for pair in pairs[:_MOST_PAIRS]:
            facts = describe_pair(compared, pair)
            why = f" ({code_span(facts.reason)})" if facts.reason else ""
            verdicts = " -> ".join(
                f"{side.word} (run `{side.run}`)" if side.run else side.word
                for side in facts.verdicts
            )
            count = attempts.get(pair.either.cell, "")
            about = f"{verdicts}{f', {count}' if count else ''}{why}"
            told = compared.feedback.get(pair.either.decision, "") if word != "fixed" else ""
            listed.append((pair.either, facts.prompt, about, told))
        hint = f": `evalstore diff {short(compared.was)} {short(compared.now)}`"
        yield from _list(word.capitalize(), [*pairs.rows()], listed, hint)


def _failing(
    title: str,
    results: Sequence[Result],
    prompts: Mapping[str, Mapping[str | None, str]],
    about: Mapping[Result, str],
    feedback: Mapping[Decision, str],
) -> Iterator[str]:
    """Yield a list of results with what is said about each."""
    listed = (
        (
            result,
            prompts.get(result.file, {}).get(result.prompt, ""),
            f"{result.word or 'answered'}{about[result]}",
            feedback.get(result.decision, ""),
        )
        for result in results[:_MOST_PAIRS]
    )
    yield from _list(title, [result[:2] for result in results], listed)


def _list(
    title: str,
    rows: Sequence[object],
    listed: Iterable[tuple[Result, str, str, str]],
    hint: str = "",
) -> Iterator[str]:
    """Yield the first results with these cases, and how many there are; nothing without any."""
    if rows:
        counts = count_cases(rows)
        yield from (f"#### {title}" + f" ({', '.join(counts)})" * bool(counts[1:]), "")
        yield from _by_case(listed)
        if len(rows) > _MOST_PAIRS:
            yield f"… and {len(rows) - _MOST_PAIRS:,} more{hint}"
        yield ""


def _by_case(entries: Iterable[tuple[Result, str, str, str]]) -> Iterator[str]:
    """Yield results, with those of a case below its name if they are several.

    Each is given with the name of its prompt if the file has several, the verdict and feedback,
    which is written once below results that have the same.
    """
    listed = [*entries]
    counts = Counter(result[:2] for result, *_ in listed)
    alike, case = 0, ("", "")
    following = [*(feedback for *_, feedback in listed[1:]), ""]
    for (result, prompt, about, feedback), after in zip(listed, following, strict=True):
        is_one, indent = counts[result[:2]] == 1, "  " * (counts[result[:2]] > 1)
        if case != result[:2] and not is_one:
            yield f"- **{_name(case_name(*result[:2]))}**"
        case, alike = result[:2], alike + 1
        name = f"**{_name(case_name(*case, prompt or None))}** "
        if not is_one:
            name = f"{_name(prompt)} " if prompt else ""
        yield f"{indent}- {name}{_name(result.model)}: {about}"
        if feedback == after:
            continue
        if feedback:
            block = code_block(cut(feedback, _LONGEST)).split("\n")
            told = [f"Reasons for these {alike:,} results:", ""] if alike > 1 else []
            yield from ("", "\n".join(f"{indent}  {it}".rstrip() for it in (*told, *block)), "")
        alike = 0


def _noise(compared: Diff, totals: Stats | None) -> Iterator[str]:
    """Yield the pass rates of both runs, and whether their difference may be chance."""
    yield from (f"#### Since run `{short(compared.was)}`", "")
    for line in summary_lines(compared, quote=_name):
        yield f"- {line.text}"
    for note in compared.notes:
        parts = (": ".join(map(code_span, part.split(": "))) for part in note.split("; "))
        yield f"- {'; '.join(parts)}"
    if totals and totals.total.flip is not None:
        yield f"- flakiness: {percent(totals.total.flip)} of pairs of attempts disagree"
    yield ""


def _costs(run: Run, saved: str, spent: str) -> Iterator[str]:
    yield from ("#### Cost", "")
    if saved:
        yield f"Reuse saved {saved}."
    for spending in run.spending:
        part = " (judging)" if spending["part"] == "evaluator" else ""
        calls = plural(spending["calls"], "call")
        yield f"- {_name(spending['model'])}{part}: {calls}, {spending_text(spending)}"
    yield ""
    yield f"All runs up to this one cost {spent}."


MOST = 10
"""The annotations of a kind that GitHub shows for a step."""
_LONGEST_MESSAGE = 1_000
"""Characters of a message."""


class Annotation(NamedTuple):
    """A message on a line of a file, or on the whole run."""

    kind: str
    """`error`, `warning` or `notice`."""
    title: str
    message: str
    file: str = ""
    line: int = 1

    @property
    def command(self) -> str:
        """Return the command that a step prints, with its texts escaped."""
        place = {"file": self.file, "line": str(self.line)} if self.file else {}
        escaped = {name: _escape(text) for name, text in {**place, "title": self.title}.items()}
        properties = ",".join(
            f"{name}={text.replace(':', '%3A').replace(',', '%2C')}"
            for name, text in escaped.items()
        )
        return f"::{self.kind} {properties}::{_escape(self.message)}"


def annotate(report: RunReport, workspace: WorkspaceFolder) -> Iterator[Annotation]:
    """Yield the failures of a run, the new ones first, at most as many as GitHub shows."""
    lines = TestLines(workspace)
    folder = folder_in_checkout(workspace.root)
    prompts = report.totals.prompts
    shown = list(islice(_failures(report), MOST))
    for result, feedback, change in shown:
        prompt = prompts.get(result.file, {}).get(result.prompt)
        word = change if change == "broke" else result.word
        name = case_name(result.file, result.row, prompt)
        yield Annotation(
            "error",
            f"{word}: {name}, {result.model}",
            feedback or f"the verdict is '{result.word}'",
            f"{folder}{result.file}",
            lines.find(result.file, result.row),
        )
    verdicts = report.verdicts
    rest = verdicts["fail"] + verdicts["error"] - len(shown)
    if rest > 0:
        yield Annotation("notice", "evalstore", f"{plural(rest, 'more failure')} in the log")
    if undecided := verdicts["undecided"]:
        yield Annotation("notice", "evalstore", f"{plural(undecided, 'result')} undecided")
    for message, count in islice(report.failures.items(), MOST):
        yield Annotation("warning", f"evalstore: {plural(count, 'call')} failed", message)


def annotate_problems(problems: Iterable[Problem], root: Path) -> Iterator[Annotation]:
    """Yield the problems of files, of each severity at most as many as GitHub shows."""
    folder = folder_in_checkout(root)
    counts = Counter[str]()
    for problem in problems:
        kind = "error" if problem.severity == "error" else "warning"
        counts[kind] += 1
        if counts[kind] <= MOST:
            hint = f"\n{problem.hint}" if problem.hint else ""
            file = f"{folder}{problem.file}"
            yield Annotation(kind, "evalstore", problem.message + hint, file, problem.line or 1)


def _failures(report: RunReport) -> Iterator[tuple[Result, str, str]]:
    """Yield the failing results with their feedback, those that are new first, each once."""
    seen = set()
    for entry in list_results(report).entries:
        if entry.result.verdict in ("fail", "error"):
            seen.add(entry.result.cell)
            yield entry.result, entry.feedback, entry.change
    for result, feedback in report.lines():
        if result.verdict in ("fail", "error") and result.cell not in seen:
            yield result, feedback, ""


def folder_in_checkout(root: Path) -> str:
    """Return the path of the workspace in the checkout, with a slash at its end, or nothing."""
    checkout = os.environ.get("GITHUB_WORKSPACE")
    if not checkout:
        return ""
    try:
        inside = root.resolve().relative_to(Path(checkout).resolve()).as_posix()
    except ValueError:
        return ""
    return "" if inside == "." else f"{inside}/"


def _escape(text: str) -> str:
    text = cut(text, _LONGEST_MESSAGE)
    return safe(text, lines=True).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_RULES = {
    "error": ("file-error", "A file has an error, so its tests cannot run."),
    "warning": ("file-warning", "A file has something that is probably not meant."),
}
"""Maps severities to the id of a rule and its description."""
_HELP = (
    "`evalstore check` prints the same problems with their hints. Correct the file at this line."
)
"""GitHub requires a help text and a full description for each rule."""


def sarif_log(problems: Iterable[Problem], root: Path) -> dict[str, Any]:
    """Return a log with a result for each problem.

    Paths are relative to the checkout of GitHub Actions, elsewhere to the workspace `root`.
    """
    folder = folder_in_checkout(root)
    rules = [
        {
            "id": id,
            "shortDescription": {"text": text},
            "fullDescription": {"text": text},
            "help": {"text": _HELP},
            "defaultConfiguration": {"level": severity},
        }
        for severity, (id, text) in _RULES.items()
    ]
    driver = {"name": "evalstore", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(problem, folder) for problem in problems],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(problem: Problem, folder: str) -> dict[str, Any]:
    severity = "error" if problem.severity == "error" else "warning"
    text = problem.message + (f"\n{problem.hint}" if problem.hint else "")
    region = {"startLine": max(problem.line or 1, 1)}
    if problem.line and problem.column:
        region["startColumn"] = problem.column
    location = {"uri": quote(os.fsencode(f"{folder}{problem.file}"))}
    return {
        "ruleId": _RULES[severity][0],
        "level": severity,
        "message": {"text": safe(text, lines=True)},
        "locations": [{"physicalLocation": {"artifactLocation": location, "region": region}}],
    }
