"""The command `ls`: lists the contents of the workspace or the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

from evalstore.checks.parser import explain_checks
from evalstore.core import deserialize
from evalstore.core.batches import in_batches
from evalstore.core.clock import iso, today
from evalstore.core.errors import FileProblem, Problem
from evalstore.core.hashing import subject_of
from evalstore.core.values import (
    SPECIAL_TAGS,
    AnswerRef,
    Case,
    Json,
    Message,
    Part,
    SampleRef,
    Text,
)
from evalstore.files.access import LARGEST_TEXT, normalise
from evalstore.files.json_output import to_json
from evalstore.files.temporary_list import TemporaryList
from evalstore.planning import participants
from evalstore.planning.cell_results import as_result, verdict_without_labels
from evalstore.planning.open_project import open_project, open_store
from evalstore.planning.options import Location, SelectionOptions, describe_selection
from evalstore.planning.participants import require_tag, tags_of
from evalstore.planning.planner import require_sound, resolve_scope, select
from evalstore.planning.project import Project, files_of
from evalstore.planning.status_report import compute_workspace
from evalstore.providers.price_table import Price, find_support
from evalstore.results.answer.judgements import OTHER_VERSION, TOGETHER
from evalstore.results.labels import read_labels
from evalstore.results.names import label_prompts, prompt_label
from evalstore.store.events import RUNS_SEARCHED, Label
from evalstore.store.results import SessionResults
from evalstore.workspace.model_files import Model, bare_model
from evalstore.workspace.reader import Reading
from evalstore.workspace.settings.settings import Settings
from evalstore.workspace.testfiles.conversations import RepeatedConversation
from evalstore.workspace.testfiles.parser import read_test


@dataclass
class Listing:
    """A table: one mapping for each line."""

    kind: str
    rows: Collection[dict[str, Json]]
    """Those of cases are in a temporary file."""
    columns: tuple[str, ...]
    """The columns that are printed; the rows may contain more."""
    left_out: list[Problem] = field(default_factory=list)
    """Errors of test files that are left out."""
    unlisted: int = 0
    """Labels that do not count in the workspace."""
    uncounted: list[dict[str, Json]] = field(default_factory=list)
    """These labels, each with the reason, if all are listed."""

    def document(self) -> Json:
        """Return the rows as JSON; those in a file as an iterator."""
        return {self.kind: iter(self.rows) if isinstance(self.rows, TemporaryList) else self.rows}


def list_things(
    location: Location, kind: str, selection: SelectionOptions, *, full: bool = False
) -> Listing:
    """Return all items of a kind in the workspace or the store.

    With `full`, cases with their messages, and labels with those that no longer count.
    """
    if kind == "checks":
        return _checks()
    if kind == "runs":
        return _runs(location)
    with open_project(location) as project:
        if kind in ("tests", "cases", "tags", "labels"):
            require_sound(project, replace(selection, keep_going=True))
        return replace(_LISTS[kind](project, selection, full), left_out=project.left_out)


def _checks() -> Listing:
    rows = [
        {**to_json(check), "example": check.examples[0].check if check.examples else None}
        for check in explain_checks()
    ]
    return Listing("checks", rows, ("type", "description", "settings", "example"))


def _runs(location: Location) -> Listing:
    with open_store(location) as store:
        rows: list[dict[str, Json]] = [
            {
                "run": run.id,
                "started": iso(run.started),
                "status": run.status,
                "message": run.message,
                "selection": describe_selection(run.selection) or None,
                **({"author": run.author} if run.author else {}),
                **({"cases": run.cases._asdict()} if run.cases else {}),
                **({"gitCommit": run.git.commit} if run.git else {}),
            }
            for run in store.find_runs()
        ]
    columns = ("run", "started", "status", "cases", "selection", "author", "gitCommit", "message")
    filled = {column for row in rows for column, value in row.items() if value is not None}
    always = ("run", "started", "status", "selection", "message")
    kept = tuple(column for column in columns if column in always or column in filled)
    return Listing("runs", rows, kept)


def _selected(project: Project, selection: SelectionOptions) -> Iterator[tuple[str, Case]]:
    criteria = select(project, selection)
    matches = criteria.matcher()
    files, is_any = files_of(project.reading), False
    for path, file in files.items():
        for _, case in criteria.by_name(path, enumerate(file.cases)):
            if matches(path, case):
                is_any = True
                yield path, case
    if selection.tags and not is_any:
        require_tag(selection.tags, tags_of(files.values()))


def _tests(project: Project, selection: SelectionOptions, _full: bool) -> Listing:
    counts: Counter[str] = Counter(path for path, _ in _selected(project, selection))
    tags = {
        path: sorted({tag for case in file.cases for tag in case.tags})
        for path, file in project.reading.files.items()
    }
    rows: list[dict[str, Json]] = [
        {"file": path, "cases": count, "tags": tags[path]} for path, count in counts.items()
    ]
    return Listing("tests", rows, ("file", "cases", "tags"))


def _cases(project: Project, selection: SelectionOptions, full: bool) -> Listing:
    rows = TemporaryList(_describe_cases(project, selection, full))
    return Listing("cases", rows, ("file", "row", "tests", "evaluation", "tags"))


def _describe_cases(
    project: Project, selection: SelectionOptions, full: bool
) -> Iterator[dict[str, Json]]:
    describer = CaseDescriber(project)
    for batch in in_batches(_selected(project, selection)):
        if full:
            describer.read(case for _, case in batch)
        for path, case in batch:
            yield {
                "file": path,
                "row": case.row,
                "tests": list(case.tests),
                "evaluation": case.evaluation,
                "tags": list(case.tags),
                **(describer.describe(path, case) if full else {}),
            }


def _models(project: Project, _selection: SelectionOptions, _full: bool) -> Listing:
    for candidate in (*project.settings.candidates, *project.settings.evaluators):
        project.find_model(candidate.id, "models")
    rows = describe_models(project.settings, project.reading, today())
    return Listing("models", rows, ("model", "provider", "code", "used"))


def _evaluators(project: Project, selection: SelectionOptions, _full: bool) -> Listing:
    rows: list[dict[str, Json]] = [
        {"evaluator": judge.id, "id": judge.evaluator, "prompt": judge.prompt, "times": judge.times}
        for judge in project.judges(selection)
    ]
    return Listing("evaluators", rows, ("evaluator", "id", "prompt", "times"))


def _definitions(kind: str, project: Project, _selection: SelectionOptions, _full: bool) -> Listing:
    named = sorted(project.reading.names.get(kind, {}).items())
    rows: list[dict[str, Json]] = [{kind[:-1]: name, "ids": list(ids)} for name, ids in named]
    return Listing(kind, rows, (kind[:-1], "ids"))


def _tags(project: Project, selection: SelectionOptions, _full: bool) -> Listing:
    counts: Counter[str] = Counter(
        tag for _, case in _selected(project, selection) for tag in case.tags
    )
    rows: list[dict[str, Json]] = [
        {"tag": tag, "cases": count, "special": tag in SPECIAL_TAGS}
        for tag, count in sorted(counts.items())
    ]
    return Listing("tags", rows, ("tag", "cases"))


def _labels(project: Project, selection: SelectionOptions, full: bool) -> Listing:
    """Return the labels that count in the workspace, each with what checks and models say.

    Of a selection, only those on its cases.
    """
    labels, rule = read_labels(project.store), project.settings.verdict
    rows: list[dict[str, Json]] = []
    ids: set[str] = set()
    scope = resolve_scope(project, selection) if selection.narrows else None
    batches = compute_workspace(project, scope) if labels.by_place else ()
    evaluations: dict[str, set[str | None]] = {it.sessions[0]: set() for it in labels.last()}
    for made_now in chain.from_iterable(results for _, results in batches):
        result = as_result(made_now)
        for session in evaluations.keys() & result.sessions:
            evaluations[session].add(result.evaluation)
        given = labels.current(result)
        made = project.store.find_judgements(result.evaluations) if given else {}
        for label in given:
            ids.add(label.id)
            subject = subject_of(label.sessions)
            votes = [it.vote for it in made.values() if it.subject == subject]
            judged = verdict_without_labels(made_now.cell, votes, rule)
            name = prompt_label(project, result.prompt) if result.prompt else None
            place = result.sessions.index(label.sessions[0]) // result.tests.count(result.tests[0])
            row = {
                "file": result.file,
                "row": result.row,
                "prompt": result.prompt,
                "promptName": name,
                "model": result.model,
                "label": label.verdict,
                "by": label.person,
                "judged": judged,
                "agrees": None if judged is None else judged == label.verdict,
                "note": label.note,
                "session": label.sessions[0],
                "attempt": place + 1 if result.has_attempts else None,
            }
            rows.append(row)
    columns = ("file", "row", "prompt", "model", "attempt", "label", "by", "judged", "note")
    if scope:
        return Listing("labels", rows, columns)
    others = [label for label in labels.last() if label.id not in ids]
    uncounted = [*_describe_uncounted(project, others, evaluations)] if full else []
    return Listing("labels", rows, columns, unlisted=len(others), uncounted=uncounted)


def _describe_uncounted(
    project: Project,
    labels: Iterable[Label],
    evaluations: Mapping[str, Collection[str | None]],
) -> Iterator[dict[str, Json]]:
    """Yield labels that do not count in the workspace, each with its place in a run, and why.

    `evaluations` are the judging versions of the answers that count.
    """
    store = project.store
    finder, runs = SessionResults(store), [*store.find_recent_runs(limit=RUNS_SEARCHED)]
    found = {
        label: next(
            (it for run in runs for it in finder.find(run.results, label.sessions[0])), None
        )
        for label in labels
    }
    prompts = label_prompts(project, {it.prompt: None for it in found.values() if it})
    for label, it in found.items():
        versions = evaluations.get(label.sessions[0], ())
        reason = TOGETHER if label.evaluation in versions else OTHER_VERSION
        named = it and (it.file, it.row, prompts[it.prompt] if it.prompt else "", it.model)
        yield {
            **dict(zip(("file", "row", "promptName", "model"), named or ("",) * 4, strict=True)),
            "label": label.verdict,
            "by": label.person,
            "note": label.note,
            "reason": reason if versions else "its answer does not count now",
        }


_LISTS: dict[str, Callable[[Project, SelectionOptions, bool], Listing]] = {
    "tests": _tests,
    "cases": _cases,
    "models": _models,
    "evaluators": _evaluators,
    **{kind: partial(_definitions, kind) for kind in ("prompts", "tools", "schemas")},
    "tags": _tags,
    "labels": _labels,
}


# --- describes the messages, instructions and checks of cases for `ls cases --full`


class CaseDescriber:
    """Describes cases of a workspace, and caches the runs of the last test file."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._contents: dict[str, Json] = {}
        self._runs: tuple[str, tuple[RepeatedConversation, ...]] = ("", ())

    def read(self, cases: Iterable[Case]) -> None:
        """Read the versions of the cases that are described next, and forget those read before.

        Raises `StoreError` when one is missing.
        """
        tests, evaluations = list[str](), list[str]()
        for case in cases:
            tests += case.tests
            evaluations += [case.evaluation] if case.evaluation else []
        versions = self._project.versions
        self._contents = versions.require("test", tests)
        self._contents |= versions.require("evaluation", evaluations)

    def describe(self, path: str, case: Case) -> dict[str, Json]:
        """Return the messages, system prompts, instructions and checks of a case of a test file.

        It is one of those that were read last.
        """
        evaluation = self._contents[case.evaluation] if case.evaluation else {}
        instructions = deserialize.restore_parts(evaluation.get("instructions", ()))
        conversations = [deserialize.restore_test(self._contents[id]).messages for id in case.tests]
        runs = self._runs_of(path, conversations)
        return {
            "messages": [
                list(_messages(messages, run))
                for messages, run in zip(conversations, runs, strict=True)
            ],
            "systemPrompts": list(case.prompts),
            "instructions": _parts(instructions) if instructions else "",
            "checks": evaluation.get("checks", []),
        }

    def _runs_of(
        self, path: str, conversations: Sequence[tuple[Message, ...]]
    ) -> Iterator[RepeatedConversation | None]:
        """Yield the run of the file for each conversation; only the file has the names of turns."""
        if not any(message.filled for messages in conversations for message in messages):
            yield from [None] * len(conversations)
            return
        if self._runs[0] != path:
            self._runs = (path, ())
            with suppress(FileProblem):  # it was removed or edited in the meantime
                text = normalise(self._project.workspace.read_bytes(path, LARGEST_TEXT))
                self._runs = (path, read_test(path, text)[0].runs)
        held = [run for run in self._runs[1] for _ in range(run.count)]
        for number, messages in enumerate(conversations):
            in_order = held[number : number + 1] if len(held) == len(conversations) else []
            shown = [(message.role, message.filled) for message in messages]
            alike = (  # with the same roles, and the same model-generated turns
                run
                for run in (*in_order, *held)
                if shown == [(turn.role, turn.name is not None) for turn in run.turns]
            )
            yield next(alike, None)


def _messages(messages: Sequence[Message], run: RepeatedConversation | None) -> Iterator[Json]:
    names = iter(run.turn_names if run else ())
    for message in messages:
        if message.filled:
            yield {"role": message.role, "fill": next(names, None)}
        else:
            speaker = {"name": message.name} if message.name else {}
            yield {"role": message.role, **speaker, "content": _parts(message.parts)}


def _parts(parts: tuple[Part, ...]) -> Json:
    """Return plain text as one text; with files or answers, return a list of parts."""
    if all(isinstance(part, Text) for part in parts):
        return "".join(part.text for part in parts if isinstance(part, Text))
    return [_part(part) for part in parts]


def _part(part: Part) -> Json:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, AnswerRef):
        return {"type": "answers", "places": [list(place) for place in part.places]}
    if isinstance(part, SampleRef):
        return {"type": "sample", "expression": part.expression}
    return {"type": "file", "path": part.path, "mediaType": part.media_type, "id": part.id}


# --- describes models: how they are used, their capabilities and their prices


MILLION = 1_000_000


def describe_models(settings: Settings, reading: Reading, day: str) -> list[dict[str, Json]]:
    """Describe all models of the files and the settings, with their prices on a day, by id.

    A name in the settings that is not a model is left out.
    """
    used = {candidate.id: "candidate" for candidate in settings.candidates}
    for evaluator in settings.evaluators:
        used[evaluator.id] = "both" if evaluator.id in used else "evaluator"
    rows = []
    for id in sorted({*reading.models, *used}):
        model = reading.models.get(id) or bare_model(id)
        if model is not None:
            rows.append({**describe_listed_model(model, reading, day), "used": used.get(id)})
    return rows


def describe_listed_model(model: Model, reading: Reading, day: str) -> dict[str, Json]:
    """Describe a model as JSON, with the capabilities that its file and litellm's table declare.

    The latter are `knownCapabilities`. A capability in neither list is not known.
    """
    price = participants.find(model, reading.currencies, day)
    known = find_support(model.provider.type, model.code)
    return {
        "model": model.id,
        "provider": model.provider.type,
        "code": model.code,
        "baseURL": model.provider.base_url,
        "active": model.active,
        "capabilities": dict(model.capabilities),
        "knownCapabilities": None if known is None else dict(known),
        "price": None if price is None else describe_price(price),
    }


def describe_price(price: Price) -> dict[str, Json]:
    """Return a price in USD, for a million tokens, one call, and an hour of calls."""
    cached = price.per_cached_token
    return {
        "source": price.source,
        "currency": price.currency,
        "rate": price.rate,
        "input": round(price.per_input_token * MILLION, 10),
        "cachedInput": None if cached is None else round(cached * MILLION, 10),
        "output": round(price.per_output_token * MILLION, 10),
        "call": price.per_call,
        "hour": price.per_hour,
    }
