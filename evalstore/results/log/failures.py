"""Failed calls, their cases, and how to fix them; and the results that are missing for them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from evalstore.core import hashing
from evalstore.core.clock import iso
from evalstore.core.errors import EvalstoreError
from evalstore.core.runs import Run, RunCandidate
from evalstore.core.values import CellKey, Failure, Json, Question, Result
from evalstore.planning.cell_results import CellResult
from evalstore.planning.cells import Cell, ask_of
from evalstore.planning.failed_work import failed_judgements, failed_questions
from evalstore.planning.open_project import open_catalogue, open_project, open_store, open_workspace
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.plan import CHECKS, Plan
from evalstore.planning.project import Project
from evalstore.planning.selection import find_row_in, name_file, no_run_has, split_row
from evalstore.providers.errors import NOTHING_LISTENS, STREAMED
from evalstore.providers.script import JUDGED, NO_MATCH
from evalstore.results.names import name_prompts
from evalstore.store import Store
from evalstore.store.events import LoggedFailure
from evalstore.store.results import iterate_entries
from evalstore.store.trees.tree_nodes import read_tree
from evalstore.workspace.model_files import bare_model


class Place(NamedTuple):
    """The place of a question: the test file and the row."""

    file: str
    row: str
    question: Question
    has_several: bool = False
    """Whether the case has several system prompts."""


@dataclass(frozen=True, slots=True)
class FailureEntry:
    """A failed call with its question and place."""

    id: str
    failure: Failure
    question: str | None
    """The id of the question that was asked, or whose answer was to be judged."""
    place: Place | None
    """The place of the question; None if no recent run and no test file has it."""
    is_resolved: bool = False
    """Whether a later call has brought what this one failed to bring."""
    is_dropped: bool = False
    """Whether the workspace has a question or a judge no longer, so that no run repeats it."""
    hint: str | None = None
    """How to fix it; None without general advice."""

    def document(self) -> Json:
        """Return the failure as JSON."""
        failure = self.failure
        return {
            "failure": self.id,
            "at": iso(failure.at),
            "model": failure.model,
            "evaluator": failure.evaluator,
            "file": self.place.file if self.place else None,
            "row": self.place.row if self.place else None,
            "prompt": self.place.question.prompt if self.place else None,
            "question": self.question,
            "session": failure.subject,
            "class": failure.kind,
            "status": failure.status,
            "attempts": failure.attempts,
            "message": failure.message,
            "hint": self.hint,
            **({"resolved": True} if self.is_resolved else {}),
        }


@dataclass
class FailureLog:
    """Failures, newest first."""

    JSON_FIELDS = ("entries", "total", "file")
    entries: list[FailureEntry] = field(metadata={"json_name": "failures"})
    total: int
    """The number of failures, including those beyond a limit."""
    file: str | None = field(default=None, metadata={"json_optional": True})
    prompts: Mapping[str | None, str] = field(default_factory=dict)
    """The names of the system prompts of cases with several."""


def log_failures(
    location: Location, file: str | None = None, limit: int | None = None
) -> FailureLog:
    """Return the failures; with a file, those of its cases now or in recent runs."""
    with open_store(location) as store:
        if file is None:
            entries = describe_failures(location, store, store.find_failures(limit=limit))
            return FailureLog(entries, store.count_failures(), None, _prompts(location, entries))
        workspace = open_workspace(location)
        file, row = split_row(file)
        name = name_file(location, workspace, file)
        listed = describe_failures(location, store, store.find_failures())
        entries = [entry for entry in listed if entry.place and entry.place.file == name]
        if not entries:
            known = set(workspace.find_files("tests"))
            for run in store.find_recent_runs():
                known |= read_tree(run.results, store.load_nodes).keys()
            if name not in known:
                raise no_run_has(workspace, name, known)
        if row is not None:
            label = _find_label(store, name, row, entries)
            entries = [entry for entry in entries if entry.place and entry.place.row == label]
        return FailureLog(entries[:limit], len(entries), name, _prompts(location, entries[:limit]))


def _find_label(store: Store, file: str, row: str, entries: Collection[FailureEntry]) -> str:
    """Return the label of a row with failures or in a recent run.

    Raises `NothingSelectedError` for an unknown row.
    """
    if any(entry.place and entry.place.row == row for entry in entries):
        return row
    for run in store.find_recent_runs():
        node = read_tree(run.snapshot, store.load_nodes).get(file)
        if node:
            return find_row_in(file, row, [*store.load_case_files([node]).values()])[0]
    return row


def _prompts(location: Location, entries: Collection[FailureEntry]) -> dict[str | None, str]:
    places = [entry.place for entry in entries if entry.place]
    return name_prompts(location, {place.question.prompt for place in places if place.has_several})


def describe_failures(
    location: Location, store: Store, failures: Collection[LoggedFailure]
) -> list[FailureEntry]:
    """Return failures with their questions and places."""
    stored = store.find_questions_of(failure.subject for _, failure in failures if failure.subject)
    questions = {
        id: failure.question or stored.get(failure.subject or "") for id, failure in failures
    }
    places = find_question_places(
        location, store, {question for question in questions.values() if question}
    )
    resolved = _find_resolved(store, failures)
    now = _asked_now(location) if len(resolved) < len(failures) else None
    hints = _find_hints(location, [failure for _, failure in failures])
    return [
        FailureEntry(
            id,
            failure,
            question,
            places.get(question) if question else None,
            id in resolved,
            bool(now and question and (question, failure.evaluation, failure.evaluator) not in now),
            hint,
        )
        for (id, failure), hint in zip(failures, hints, strict=True)
        for question in (questions[id],)
    ]


def _find_hints(location: Location, failures: Sequence[Failure]) -> list[str | None]:
    """Return how to fix each failure; the files and the keys are those of the workspace now."""
    names: dict[str, str] = {}
    reading = None
    if any(is_of_script(failure.message) or failure.status == 401 for failure in failures):
        with suppress(EvalstoreError), open_catalogue(location) as project:
            reading, settings = project.reading, project.settings
            listed = (*settings.candidates, *settings.evaluators)
            names = {each.name or each.id: each.id for each in listed}
    hints = []
    for it in failures:
        id = names.get(it.model or "", it.model or "")
        model = (reading.models.get(id) or bare_model(id)) if reading else None
        file = reading.model_files.get(id) if reading else None
        key = model.provider.key_variable if model else None
        hints.append(hint_for(it.kind, it.status, it.message, file, key))
    return hints


class CallFailures(NamedTuple):
    """Calls that failed with the same message: the model and the message, the class, the hint."""

    calls: int
    text: str
    kind: str
    hint: str | None


def group_failures(location: Location, counts: Mapping[str, int]) -> Iterator[CallFailures]:
    """Yield the failed calls of the last run, by these counts of messages, and how to fix them."""
    if not counts:
        return
    with open_store(location) as store:  # other runs may add some at the same time
        newest = store.find_failures(limit=4 * sum(counts.values()))
    known = {failure.text: failure for _, failure in reversed(newest) if failure.text in counts}
    hints = dict(zip(known, _find_hints(location, [*known.values()]), strict=True))
    for text, count in sorted(counts.items(), key=lambda pair: -pair[1]):
        failure = known.get(text)  # that of another runner may not be in this store
        kind = class_text(failure.kind, failure.status, failure.message) if failure else "failed"
        yield CallFailures(count, text, kind, hints.get(text))


def _find_resolved(store: Store, failures: Collection[LoggedFailure]) -> set[str]:
    """Return the ids of the failures after which the question was answered or judged."""
    samples = store.find_samples(
        {failure.question for _, failure in failures if failure.question and not failure.subject}
    )
    votes = store.find_votes({failure.subject for _, failure in failures if failure.subject})
    resolved: set[str] = set()
    for id, failure in failures:
        if failure.subject:
            made = (
                vote.started
                for vote in votes.get(failure.subject, ())
                if (vote.evaluation, vote.evaluator) == (failure.evaluation, failure.evaluator)
            )
        else:
            made = (sample.started for sample in samples.get(failure.question or "", ()))
        if any(started > failure.at for started in made):
            resolved.add(id)
    return resolved


def find_question_places(
    location: Location, store: Store, questions: Collection[str]
) -> dict[str, Place]:
    """Return the places of questions by id, in the newest run with them, else in the workspace."""
    by_question: dict[str, Place] = {}
    missing = set(questions)
    for places in (_places_in_runs(store), _places_now(location)):
        for id, place in places:
            if id in missing:
                missing.discard(id)
                by_question[id] = place
            if not missing:
                return by_question
    return by_question


def _places_in_runs(store: Store) -> Iterator[tuple[str, Place]]:
    """Yield the questions of the newest runs with their places; equal results are read once."""
    seen: set[tuple[str, str, tuple[RunCandidate, ...]]] = set()
    for run in store.find_recent_runs():
        candidates = {candidate.id: candidate for candidate in run.candidates}
        entries = read_tree(run.results, store.load_nodes)
        fresh = {path: id for path, id in entries.items() if (path, id, run.candidates) not in seen}
        seen |= {(path, id, run.candidates) for path, id in fresh.items()}
        for batch in iterate_entries(store, fresh):
            for result, case in batch:
                candidate = candidates.get(result.model)
                if candidate is None:  # recorded answers are never asked for
                    continue
                default = candidate.temperature
                for test in dict.fromkeys(case.tests):
                    question = Question(
                        test=test,
                        prompt=result.prompt,
                        model=candidate.model,
                        temperature=default if case.temperature is None else case.temperature,
                        seed=case.seed,
                    )
                    yield (
                        hashing.question_id(question),
                        Place(result.file, case.row, question, len(case.prompts) > 1),
                    )


def _asked_now(location: Location) -> set[tuple[str, str | None, str | None]]:
    """Return the questions of the workspace, alone and with each judge; none if it has errors."""
    return {
        (id, *judgement)
        for cell in _cells_now(location)
        for id in cell.questions
        for judgement in (
            (None, None),
            *((cell.case.evaluation, by) for by in (CHECKS, *(it.evaluator for it in cell.judges))),
        )
    }


def _cells_now(location: Location) -> Sequence[Cell]:
    """Return the cells of the workspace; none when it has errors."""
    from evalstore.planning.planner import make_plan

    with suppress(EvalstoreError), open_project(location) as project:
        return make_plan(project, SelectionOptions()).cells
    return ()


def _places_now(location: Location) -> Iterator[tuple[str, Place]]:
    """Yield the questions of the workspace with their places."""
    for cell in _cells_now(location):
        for id, number, _ in cell.distinct_questions():
            question = ask_of(cell.case, cell.prompt, cell.candidate, number)
            yield id, Place(cell.file, cell.case.row, question, len(cell.case.prompts) > 1)


# --- hints for failed calls


_HINTS = {
    401: "check the key in the variable that 'apiKeyEnvVar' of the provider file names; "
    "without that field, no key is sent to a 'baseURL'",
    402: "the account has no credit left",
    403: "the key may not use this model: check the account's permissions",
    404: "check the name: 'providerModelCode' of the model file, and 'baseURL' of its provider",
    429: "too many calls at once: lower 'concurrency', or allow more --timeout or --retries",
}
_CLASS_HINTS = {
    "application": "change the application, then 'evalstore trust' its model file again",
    "context": "the conversation is too long for the model: shorten the test, or use a larger one",
    "timeout": "raise --timeout, or lower 'concurrency' if the server is busy with your calls",
    "connection": "check that the server runs and that 'baseURL' of its provider is right",
    "certificate": "set SSL_CERT_FILE to the file with the certificate that signed it",
    "bug": "report it to the maintainers of the provider, and run again",
    "malformed": "run again; if it fails again, check what the server or the model answers",
    "not run": "run again when the machine has room for it: the answers are stored",
    "unsupported": "nothing was sent: change the test, or leave this model out with its tags",
}

_PLACES = {
    rf"\A{NOTHING_LISTENS} ": "start the server, or correct 'baseURL' of its provider",
    r"answered 404 at https?://[^/\s]+/chat/completions\b|POST /chat/completions\b": "add "
    "'/v1' to 'baseURL' of the provider: most servers answer below it",
    r"answered 404 at \S+/chat/completions/chat/completions\b": "remove "
    "'/chat/completions' from 'baseURL' of the provider: it is added to each call",
}
"""From what a message says of an address to what to write."""

_NULL = (
    "remove '{0}' from the 'options' of the test, or write 'providerOptions: {{{1}: null}}' into "
    "the model file"
)
_PARAMETERS = {
    r"temperature": "send no temperature: remove it from evalstore.yaml and the test, or write "
    "'candidateOverrides: {temperature: null}' into the model file ('evaluatorOverrides' for a "
    "judge)",
    r"max_?(completion_?|output_?)?tokens": "lower or remove 'maxTestOutputTokens' or "
    "'maxEvaluationOutputTokens' in evalstore.yaml, and 'maxOutputTokens' of the test",
    r"response_?format|response_?schema|json_(schema|object)|structured.?output": "write "
    "'supportsStructuredOutputs: false' into the provider file: no schema is sent then",
    r"top_?p\b": _NULL.format("topP", "top_p"),
    r"\bseed\b": _NULL.format("seed", "seed"),
    r"['\"`]stop(_sequences)?\b": _NULL.format("stop", "stop"),
    r"reasoning_?effort|\bthinking\b": "change or remove 'thinking' in the model file",
    r"tool_choice|['\"`]tools\b|support\w* (tools|function)": "write 'capabilities: {output: "
    "{tools: false}}' into the model file: tests with tools leave it out",
}
"""From the names of a parameter that a model refuses to what to write."""
_NAMED = re.compile(
    r"(?:parameter|argument|field|input|propert|unknown name)[a-z]*(?: supplied)?:? \[?"
    r"((?:['\"`][a-z]\w+['\"`](?:, | and )?)+)"
    r"|(?:parameter|argument|field)s?(?: supplied| not allowed)?: "
    r"((?:[a-z]\w+(?:, | and )?)+)(?=\.|\Z)"
    r"|\"body\", \"([a-z]\w+)\"|([a-z]\w+): extra (?:inputs|fields)",
    re.IGNORECASE,
)
_TAKEN = re.compile(
    r"(?<!not )\b(?:supported|allowed|valid|accepted)[\w ]{0,20}:.*", re.DOTALL | re.I
)
"""What follows are the names of other parameters, which the server takes."""

_SCRIPT_HINT = (
    "add a line such as \"- {{when: 'words of the message', answer: {answer}}}\" to 'responses' "
    "in {file}"
)


def is_of_script(message: str) -> bool:
    """Return whether a call failed because no entry of a script answers it."""
    return message.startswith(NO_MATCH)


def class_text(kind: str, status: int | None, message: str) -> str:
    """Return the class of a failure for people, with the status of the server, if any."""
    return "not in the script" if is_of_script(message) else f"{kind} {status or ''}".rstrip()


def hint_for(
    kind: str,
    status: int | None,
    message: str = "",
    file: str | None = None,
    key: str | None = None,
) -> str | None:
    """Return how to fix a failure of this class; None if there is no general advice.

    `file` is the path of the model's file, `key` the variable of its key, if they are known.
    """
    if is_of_script(message):
        judged = message.startswith(f"{NO_MATCH} {JUDGED}")
        answer = "{pass: true, feedback: ''}" if judged else "'the answer'"
        return _SCRIPT_HINT.format(answer=answer, file=file or "the model's file")
    for words, hint in _PLACES.items():
        if re.search(words, message):
            return hint
    if message.startswith(STREAMED):
        return "switch streaming off at the server, or name one in 'baseURL' that does not stream"
    if (kind in ("unsupported", "format") or status in (400, 422)) and kind != "context":
        named = _TAKEN.sub("", message)
        hints = [hint for names, hint in _PARAMETERS.items() if re.search(names, named, re.I)]
        found = " ".join(name for match in _NAMED.finditer(named) for name in match.groups(""))
        if not hints and (others := set(re.findall(r"\w+", found)) - {"and", "messages", "model"}):
            listed = ", ".join(f"'{name}'" for name in sorted(others))
            return f"remove {listed} from 'providerOptions' of the model file, or of the test"
        if hints:
            return "; ".join(hints)
    if status == 401 and key:
        return f"set {key}, in the environment or in .env, to a key that the server accepts"
    if kind in _CLASS_HINTS:
        return _CLASS_HINTS[kind]
    if status == 429 and "quota" in message.lower():
        return "the account's quota is used up: check its plan, or run again later"
    if status is not None and status >= 500:
        return "the server failed: run again later, or allow more --timeout or --retries"
    return _HINTS.get(status or 0)


def failed_now(
    project: Project, plan: Plan, settled: Iterable[CellResult]
) -> dict[CellKey, Failure]:
    """Return the last failed calls for what results of the workspace miss, by their places."""
    failed: Mapping[str, Failure] = failed_questions(project, plan)
    judged = failed_judgements(project, plan).items()
    failed = {**failed, **{subject: failure for (subject, _, _), failure in judged}}
    found: dict[CellKey, Failure] = {}
    for cell in (each.cell for each in settled if failed and each.pending):
        subjects = map(hashing.subject_of, cell.subjects(plan.sessions))
        if failure := next(filter(None, map(failed.get, (*cell.questions, *subjects))), None):
            found[cell.file, cell.case.row, cell.prompt_number, cell.candidate.id] = failure
    return found


AskedResult = tuple["Result", float | None, int | None]
"""A result with the temperature and the seed of its case."""


def mark_failed_in_run(store: Store, run: Run, asked: Sequence[AskedResult]) -> list[Result]:
    """Return some results of a run, with a mark on those that miss something as a call failed."""
    failed = {place: it[0] for place, it in find_failures_in_run(store, run, asked).items()}
    return [result.marked(failed) for result, _, _ in asked]


def find_failures_in_run(
    store: Store, run: Run, asked: Iterable[AskedResult]
) -> dict[CellKey, list[Failure]]:
    """Return the failed calls for what some results of a run miss, newest first, by place."""
    waiting = [each for each in asked if each[0].is_missing] if run.failed else []
    questions = {each[0].cell: questions_in_run(run, *each) for each in waiting}
    subjects = judged_subjects(each[0] for each in waiting)
    places: dict[str, list[CellKey]] = {}
    for place, ids in (*questions.items(), *subjects.items()):
        for id in ids:
            places.setdefault(id, []).append(place)
    found: dict[CellKey, list[Failure]] = {}
    both = (set(chain(*each.values())) for each in (questions, subjects))
    for _, failure in store.find_failures_of(*both) if places else ():
        if run.started <= failure.at <= run.ended:
            for place in places.get(failure.question or failure.subject or "", ()):
                found.setdefault(place, []).append(failure)
    return found


def judged_subjects(results: Iterable[Result]) -> Mapping[CellKey, set[str]]:
    """Return the ids of what judges see of these results: each answer, and all together."""
    return {
        result.cell: {
            hashing.subject_of(sessions) for sessions in (result.sessions, *zip(result.sessions))
        }
        for result in results
        if result.sessions
    }


def questions_in_run(
    run: Run, result: Result, temperature: float | None, seed: int | None
) -> tuple[str, ...]:
    """Return the ids of the questions that a run asked for a result.

    `temperature` and `seed` are those of its case.
    """
    candidate = run.find_candidate(result.model)
    if candidate is None:
        return ()
    used = candidate.temperature if temperature is None else temperature
    return tuple(
        hashing.question_id(Question(test, result.prompt, candidate.model, used, seed))
        for test in dict.fromkeys(result.tests)
    )
