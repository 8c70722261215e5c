"""The life of one test: the runs at which it changed, what was edited, and the results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from evalstore import deserialize
from evalstore.errors import EvalstoreError
from evalstore.operations.views.prompt_names import prompt_label
from evalstore.operations.views.rendering import settings_of, text_of
from evalstore.planning.opening import open_project, open_store, open_workspace
from evalstore.planning.options import SelectionOptions
from evalstore.planning.reasons import RowIndex
from evalstore.planning.renames import follow_file, name_in_newest_run, name_in_workspace
from evalstore.planning.results import as_result, compute_results
from evalstore.reports.word_diff import ChangedLine, lines_apart
from evalstore.store.case_tree import find_same
from evalstore.store.results import results_of
from evalstore.store.trees import find_entry
from evalstore.values import Case, CaseFile, Json

if TYPE_CHECKING:
    from evalstore.planning.options import Location
    from evalstore.planning.project import Project
    from evalstore.store import Store
    from evalstore.values import Result

SYSTEM, SHOWN, TOLD, CHECKS, SETTINGS = (
    *("system prompt", "test text", "instructions", "checks", "settings"),
)
"""What of a test can be edited."""
NEW, GONE, CANDIDATES, OTHERS = "new", "gone", "candidates", "other rows"


@dataclass(frozen=True, slots=True)
class Version:
    """A test as it was from one run on."""

    run: str | None
    """The first run that had it so; None: the workspace has it so, and no run yet."""
    started: int
    """Of that run, in microseconds since 1970, UTC."""
    edits: tuple[str, ...]
    """What differs from the version before."""
    verdicts: Mapping[str, tuple[str, ...]]
    """By candidate; one for each system prompt."""
    parts: Mapping[str, str]
    """What was shown and told, by the name of the part; empty when the test was gone."""
    candidates: tuple[str, ...] = ()
    """What is said of candidates that are new, changed or gone."""
    row: str = ""
    """What the case was called then; empty when the test was gone."""
    prompts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By candidate what to call the system prompt of each verdict, when there are several."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What differs in one part of a test."""

    part: str
    hunks: tuple[tuple[ChangedLine, ...], ...]


Asked = Mapping[str, tuple[str, Json]]
"""Candidates: from display ids to the id of the model version and the temperature."""


@dataclass
class _Span:
    """Runs one after the other that had a test file and its candidates the same."""

    run: str | None
    started: int
    node: str | None
    asked: Asked
    leaves: list[str] = field(default_factory=list)
    """Its results: leaves of result trees, oldest first."""
    case: Case | None = None
    results: list[Result] = field(default_factory=list)


def versions_of(where: Location, file: str, row: str) -> list[Version]:
    """The versions of a case since its first run, newest first; none when no run knows it."""
    with ExitStack() as stack:
        project: Project | None = None
        with suppress(EvalstoreError):  # what is wrong with the workspace does not matter here
            project = stack.enter_context(open_project(where))
        store = project.store if project else stack.enter_context(open_store(where))
        folder = open_workspace(where).settings.paths["tests"]
        spans = _spans(store, name_in_newest_run(project, file) if project else file, folder)
        now = name_in_workspace(project, file) if project else file
        files = store.load_case_files(list({span.node for span in spans if span.node}))
        spans = _joined(spans, files)
        _add_now(spans, files, project, now)
        _follow(spans, files, row)
        _add_results(store, spans, file)
        if project and spans and spans[-1].run is None and spans[-1].case:
            spans[-1].results = _results_now(project, now, spans[-1].case.row)
        contents = _load(store, project, [span.case for span in spans if span.case])
        found = list(_versions(spans, files, contents, partial(_prompt_name, project)))
    return found[::-1]


def edits_between(was: Version | None, now: Version) -> list[Edit]:
    """What differs part by part; of the first version everything is new."""
    before = was.parts if was else {}
    found: list[Edit] = []
    for part in dict.fromkeys((*now.parts, *before)):
        hunks = lines_apart(before.get(part, ""), now.parts.get(part, ""))
        if hunks:
            found.append(Edit(part, tuple(map(tuple, hunks))))
    return found


# --- runs


def _spans(store: Store, file: str, folder: str) -> list[_Span]:
    """The runs that knew the file, oldest first, without those that changed nothing of it.

    `file` is its path in the newest of them.
    """
    newest_first = store.find_runs()
    runs = newest_first[::-1]
    then = [*follow_file(store, [run for _, run in newest_first], file, folder)][::-1]
    leaves: dict[str, str] = {}
    for path in {path for path, _ in then}:
        roots = {run["results"] for (_, run), (at, _) in zip(runs, then, strict=True) if at == path}
        leaves |= find_entry(roots, path, store.load_nodes)
    spans: list[_Span] = []
    for (id, run), (_, node) in zip(runs, then, strict=True):
        last = spans[-1] if spans else None
        if last is None and node is None:
            continue
        asked: Asked = {
            one["id"]: (one["model"], one.get("temperature")) for one in run.get("candidates", ())
        }
        if last and "models" in (run.get("selection") or {}):
            asked = last.asked  # the command line has named them
        if last is None or (node, asked) != (last.node, last.asked):
            last = _Span(id, run["started"], node, asked)
            spans.append(last)
        if node and run["results"] in leaves:
            last.leaves.append(leaves[run["results"]])
    return spans


def _joined(spans: Iterable[_Span], files: Mapping[str, CaseFile]) -> list[_Span]:
    """The spans, without those that have the same file as the one before in other nodes."""
    found: list[_Span] = []
    for span in spans:
        last = found[-1] if found else None
        if (
            last
            and last.node
            and span.node
            and last.asked == span.asked
            and find_same(span.node, files[span.node], {last.node: files[last.node]})
        ):
            last.leaves += span.leaves
        else:
            found.append(span)
    return found


def _add_now(
    spans: list[_Span], files: dict[str, CaseFile], project: Project | None, file: str
) -> None:
    """Add the file as the workspace has it, when no run has had it so."""
    if project is None or (file in project.reading.tests and file not in project.reading.files):
        return
    node = project.reading.nodes.get(file)
    last = spans[-1].node if spans else None
    if node == last or (
        node and last and find_same(node, project.reading.files[file], {last: files[last]})
    ):
        return
    asked = spans[-1].asked if spans else {}
    now = _Span(None, 0, node, asked)
    if node is not None:
        files[node] = project.reading.files[file]
    spans.append(now)


def _follow(spans: Sequence[_Span], files: Mapping[str, CaseFile], row: str) -> None:
    """Find the case in every version: by its label in the newest that has it, then by likeness."""
    start = next(
        (
            number
            for number in range(len(spans) - 1, -1, -1)
            if _labelled(spans[number], files, row)
        ),
        None,
    )
    if start is None:
        return
    spans[start].case = _labelled(spans[start], files, row)
    for numbers in (range(start - 1, -1, -1), range(start + 1, len(spans))):
        known = spans[start].case
        assert known is not None
        for number in numbers:
            node = spans[number].node
            spans[number].case = (
                RowIndex(files[node]).find(known) if node and node in files else None
            )
            known = spans[number].case or known


def _labelled(span: _Span, files: Mapping[str, CaseFile], row: str) -> Case | None:
    if span.node is None or span.node not in files:
        return None
    return next((case for case in files[span.node].cases if case.row == row), None)


def _add_results(store: Store, spans: Sequence[_Span], file: str) -> None:
    """The results of each version: in its first run, with those that later runs added."""
    rows: dict[str, set[str]] = {}
    for span in spans:
        for id in _ends(span):
            rows.setdefault(id, set()).update([span.case.row] if span.case else ())
    results = results_of(store, file, rows)
    for span in spans:
        if span.case:
            row = span.case.row
            span.results += [seen for id in _ends(span) for seen in results[id] if seen.row == row]


def _ends(span: _Span) -> list[str]:
    """The results of the first and the last run of a span that had its case."""
    leaves = (*span.leaves[:1], *span.leaves[-1:]) if span.case else ()
    return list(dict.fromkeys(leaves))


def _results_now(project: Project, file: str, row: str) -> list[Result]:
    """What stored answers make of a case as it is now."""
    with suppress(EvalstoreError):
        plan = project.plan(SelectionOptions(paths=(f"{file}::{row}",)))
        settled = compute_results(plan, project.settings.verdict)
        return [
            as_result(result)
            for result in settled
            if (result.cell.file, result.cell.case.row) == (file, row)
        ]
    return []


# --- versions


def _versions(
    spans: Sequence[_Span],
    files: Mapping[str, CaseFile],
    contents: Mapping[str, Json],
    name: Callable[[str | None], str],
) -> Iterator[Version]:
    before: _Span | None = None
    parts_before: Mapping[str, str] = {}
    for span in spans:
        parts = _parts(span.case, contents, files[span.node]) if span.case and span.node else {}
        edits: list[str] = []
        candidates = tuple(_candidates(before, span)) if before else ()
        if not span.case:
            edits = [GONE] if before and before.case else []
        elif before is None or not before.case:
            edits = [NEW]
        else:
            names = dict.fromkeys((*parts_before, *parts))
            changed = [one for one in names if parts_before.get(one) != parts.get(one)]
            edits = list(dict.fromkeys(_kind(one) for one in changed))
            edits += [CANDIDATES] if candidates else []
            if not edits and before.node != span.node:
                edits = [OTHERS]
        if edits:
            row = span.case.row if span.case else ""
            words, prompts = _verdicts(span.results, name)
            yield Version(
                span.run, span.started, tuple(edits), words, parts, candidates, row, prompts
            )
        if span.case or (before and before.case):
            before, parts_before = span, parts


def _kind(part: str) -> str:
    """What a part belongs to: several are numbered."""
    return part.rstrip("0123456789 ")


def _candidates(was: _Span, now: _Span) -> Iterator[str]:
    """What became of the candidates of this case."""
    here = {result.model for result in (*was.results, *now.results)}
    for id in sorted({*was.asked, *now.asked} & here):
        if id not in was.asked:
            yield f"{id} is new"
        elif id not in now.asked:
            yield f"{id} is gone"
        elif was.asked[id][0] != now.asked[id][0]:
            yield f"the model of {id} changed"
        elif was.asked[id][1] != now.asked[id][1]:
            yield f"temperature of {id}: {was.asked[id][1]} -> {now.asked[id][1]}"


_ByModel = dict[str, tuple[str, ...]]


def _verdicts(
    results: Iterable[Result], name: Callable[[str | None], str]
) -> tuple[_ByModel, _ByModel]:
    """The last word on each candidate, one for each system prompt, and what these are called.

    What is pending counts when there is nothing else.
    """
    found: dict[str, dict[int, Result]] = {}
    for one in sorted(results, key=lambda one: (one.model, one.prompt_number)):
        last = found.setdefault(one.model, {})
        if one.word != "pending" or one.prompt_number not in last:
            last[one.prompt_number] = one
    return (
        {
            id: tuple(result.word or "answered" for result in last.values())
            for id, last in found.items()
        },
        {
            id: tuple(name(result.prompt) for result in last.values())
            for id, last in found.items()
            if len(last) > 1
        },
    )


def _prompt_name(project: Project | None, prompt: str | None) -> str:
    if project is None:
        return "no prompt" if prompt is None else prompt[:8]
    return prompt_label(project, prompt)


# --- what was shown and told


def _load(store: Store, project: Project | None, cases: Sequence[Case]) -> dict[str, Json]:
    """The contents of all versions that these cases are made of."""
    wanted = {
        "test": {id for case in cases for id in case.tests},
        "prompt": {id for case in cases for id in (*case.prompts, *case.judge_prompts) if id},
        "evaluation": {case.evaluation for case in cases if case.evaluation},
    }
    found: dict[str, Json] = {}
    for kind, ids in wanted.items():
        found |= store.load_contents(kind, ids)
    if project is not None:
        fresh = project.reading.contents
        ids = {id for some in wanted.values() for id in some} - found.keys()
        found |= {id: json.loads(fresh[id][1]) for id in ids if id in fresh}
    tools = {id for one in found.values() for id in one.get("tools", ())}
    return found | store.load_contents("tool", tools)


def _parts(case: Case, contents: Mapping[str, Json], file: CaseFile) -> dict[str, str]:
    """What is shown to candidates and told to evaluators, by the name of the part."""
    found: dict[str, str] = {}
    for number, prompt in enumerate(case.prompts, 1):
        name = f"{SYSTEM} {number}" if len(case.prompts) > 1 else SYSTEM
        found[name] = _messages(contents.get(prompt, {}), bare=True) if prompt else ""
    conversations = [(id, len(list(same))) for id, same in groupby(case.tests)]
    for number, (id, times) in enumerate(conversations, 1):
        name = f"{SHOWN} {number}" if len(conversations) > 1 else SHOWN
        held = f"\n(held {times} times)" if times > 1 else ""
        found[name] = _messages(contents.get(id, {})) + held
    told = contents.get(case.evaluation or "", {})
    found[TOLD] = text_of(deserialize.restore_parts(told.get("instructions", ())))
    found[CHECKS] = "\n".join(_check(one) for one in told.get("checks", ()))
    found[SETTINGS] = "\n".join(_settings(case, contents, file))
    return {name: text for name, text in found.items() if text}


def _messages(content: Json, *, bare: bool = False) -> str:
    """Messages with their roles; a single bare one without."""
    messages = deserialize.restore_messages(content.get("messages", ()))
    if bare and len(messages) == 1:
        return text_of(messages[0].parts)
    return "\n\n".join(
        f"{message.name or message.role}:\n"
        + ("(filled by the candidate)" if message.filled else text_of(message.parts))
        for message in messages
    )


def _check(check: Json) -> str:
    lines = [str(check.get("type", ""))]
    for name, value in sorted(settings_of(check).items()):
        told = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"    {name}: " + told.replace("\n", "\n        "))
    return "\n".join(lines)


def _settings(case: Case, contents: Mapping[str, Json], file: CaseFile) -> Iterator[str]:
    for id in dict.fromkeys(case.tests):
        test = contents.get(id, {})
        for tool in test.get("tools", ()):
            yield f"tool {contents.get(tool, {}).get('name', '')} {tool[:8]}"
        if test.get("schema"):
            yield f"schema {test['schema'][:8]}"
        for name, value in sorted(test.get("options", {}).items()):
            yield f"{name}: {json.dumps(value, ensure_ascii=False)}"
        for tag in test.get("specialTags", ()):
            yield f"tag {tag}"
    for name, setting in (
        ("temperature", case.temperature),
        ("seed", case.seed),
        ("limit", case.limit),
        ("attempts", file.attempts),
        ("threshold", file.threshold),
    ):
        if setting is not None:
            yield f"{name}: {setting}"
    if file.evaluators is not None:
        yield f"evaluators: {', '.join(file.evaluators) or 'none'}"
    for id in case.judge_prompts:
        text = _messages(contents.get(id, {}), bare=True)
        yield f"evaluator prompt {id[:8]}\n    " + text.replace("\n", "\n    ")
    if case.judged_by != ("models",):
        yield f"judged by: {', '.join(case.judged_by)}"
    if case.recorded:
        yield f"recorded answer {case.recorded[:8]}"
