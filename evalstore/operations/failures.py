"""`log --failures`: the calls that brought nothing, where they belong, and what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from evalstore import hashing
from evalstore.clock import iso
from evalstore.errors import EvalstoreError
from evalstore.operations.views.prompt_names import name_prompts
from evalstore.planning.cells import ask_of
from evalstore.planning.opening import open_project, open_store, open_workspace
from evalstore.planning.options import SelectionOptions
from evalstore.planning.path_targets import name_file
from evalstore.store.results import iterate_cells
from evalstore.store.trees import read_tree
from evalstore.values import Json, Question

if TYPE_CHECKING:
    from evalstore.planning.options import Location
    from evalstore.store import Store

RUNS = 20
"""The newest runs: in them the place of a question is searched."""

_HINTS = {
    401: "check the key: its variable is the 'apiKeyEnvVar' of the model's provider file; "
    "without that field none is sent to a 'baseURL'",
    402: "the account has no money left",
    403: "the key may not use this model: look at the account's permissions",
    404: "check the name: 'providerModelCode' of the model file, and 'baseURL' of its provider",
    429: "too many calls at once: lower 'concurrency', or run again later",
}
_CLASS_HINTS = {
    "context": "the model takes less than the conversation: shorten the test, or use a larger one",
    "timeout": "raise 'timeout', or lower 'concurrency' if the server is busy with your calls",
    "connection": "check that the server runs and that 'baseURL' of its provider is right",
    "bug": "report it to who maintains the provider; run again to ask once more",
    "malformed": "run again; if it stays, look at what the server, or the model, answers",
    "not run": "run again when the machine has room for it: the answers are stored",
    "unsupported": "nothing was sent: change the test, or leave this model out with its tags",
}


def hint_for(kind: str, status: int | None, message: str = "") -> str | None:
    """What to do about a failure of this class; None when nobody can say."""
    if kind in _CLASS_HINTS:
        return _CLASS_HINTS[kind]
    if status == 429 and "quota" in message.lower():
        return "the account's quota is used up: look at its plan, or run again later"
    if status is not None and status >= 500:
        return "the server failed: run again later"
    return _HINTS.get(status or 0)


class Place(NamedTuple):
    """Where a question stands: the test file and the row."""

    file: str
    row: str
    question: Question
    has_several: bool = False
    """Whether the case has several system prompts."""


@dataclass(frozen=True, slots=True)
class FailureEntry:
    """A failure with what belongs to it."""

    id: str
    content: Json
    question: str | None
    """Id of the question that was asked, or whose answer was to be judged."""
    place: Place | None
    """None: no recent run and no test file has the question."""

    @property
    def hint(self) -> str | None:
        """What to do about it."""
        content = self.content
        return hint_for(content["type"], content.get("status"), content["message"])

    def document(self) -> Json:
        """As JSON."""
        content = self.content
        return {
            "failure": self.id,
            "at": iso(content["at"]),
            "model": content.get("model"),
            "evaluator": content.get("evaluator"),
            "file": self.place.file if self.place else None,
            "row": self.place.row if self.place else None,
            "prompt": self.place.question.prompt if self.place else None,
            "question": self.question,
            "session": content.get("subject"),
            "class": content["type"],
            "status": content.get("status"),
            "attempts": content["attempts"],
            "message": content["message"],
            "hint": self.hint,
        }


@dataclass
class FailureLog:
    """Failures, newest first."""

    JSON_FIELDS = ("entries", "total", "file")
    entries: list[FailureEntry] = field(metadata={"json_name": "failures"})
    total: int
    """How many there are, with those that a limit cut off."""
    file: str | None = field(default=None, metadata={"json_optional": True})
    prompts: Mapping[str | None, str] = field(default_factory=dict)
    """What to call the system prompts of the cases that have several."""


def log_failures(where: Location, file: str | None = None, limit: int | None = None) -> FailureLog:
    """The failures; with a file, those of its cases, as they are now or were in recent runs."""
    with open_store(where) as store:
        if file is None:
            entries = describe_failures(where, store, store.find_failures(limit=limit))
            return FailureLog(entries, store.count_failures(), None, _prompts(where, entries))
        name = name_file(where, open_workspace(where), file)
        listed = describe_failures(where, store, store.find_failures())
        entries = [entry for entry in listed if entry.place and entry.place.file == name]
        if not entries and name not in _known_files(where, store):
            raise EvalstoreError(
                f"no run and no workspace knows a test file '{name}'",
                hint="'evalstore ls tests' lists the files",
            )
        return FailureLog(entries[:limit], len(entries), name, _prompts(where, entries[:limit]))


def _prompts(where: Location, entries: Collection[FailureEntry]) -> dict[str | None, str]:
    places = [entry.place for entry in entries if entry.place]
    return name_prompts(where, {place.question.prompt for place in places if place.has_several})


def describe_failures(
    where: Location, store: Store, found: Collection[tuple[str, Json]]
) -> list[FailureEntry]:
    """Failures with their questions and places."""
    subjects = [content["subject"] for _, content in found if "subject" in content]
    asked = store.find_questions_of(subjects)
    questions = {
        id: content.get("question") or asked.get(content.get("subject", ""))
        for id, content in found
    }
    places = find_places(where, store, {question for question in questions.values() if question})
    return [
        FailureEntry(id, content, question, places.get(question) if question else None)
        for id, content in found
        for question in (questions[id],)
    ]


def find_places(where: Location, store: Store, questions: Collection[str]) -> dict[str, Place]:
    """Where questions stand, by id: in the newest run that has them, else in the workspace."""
    found: dict[str, Place] = {}
    missing = set(questions)
    for places in (_places_in_runs(store), _places_now(where)):
        for id, place in places:
            if id in missing:
                missing.discard(id)
                found[id] = place
            if not missing:
                return found
    return found


def _places_in_runs(store: Store) -> Iterator[tuple[str, Place]]:
    """The cells of the newest runs; a file whose results are the same is gone through once."""
    seen: set[tuple[str, str, str]] = set()
    for _, run in store.find_runs(limit=RUNS):
        candidates = {one["id"]: one for one in run.get("candidates", ())}
        entries = read_tree(run["results"], store.load_nodes)
        told = hashing.canonical_json(list(candidates.values()))
        fresh = {path: id for path, id in entries.items() if (path, id, told) not in seen}
        seen |= {(path, id, told) for path, id in fresh.items()}
        for some in iterate_cells(store, fresh):
            for path, case, cell in some:
                candidate = candidates.get(cell["model"])
                if candidate is None:  # recorded answers are never asked for
                    continue
                default = candidate.get("temperature")
                for test in dict.fromkeys(case.tests):
                    question = Question(
                        test=test,
                        prompt=case.prompts[cell.get("prompt", 0)],
                        model=candidate["model"],
                        temperature=default if case.temperature is None else case.temperature,
                        seed=case.seed,
                    )
                    yield (
                        hashing.question_id(question),
                        Place(path, case.row, question, len(case.prompts) > 1),
                    )


def _places_now(where: Location) -> Iterator[tuple[str, Place]]:
    """The cells a run would have now; none when the workspace has errors."""
    try:
        with open_project(where) as project:
            cells = project.plan(SelectionOptions()).cells
    except EvalstoreError:
        return
    for cell in cells:
        for id, number, _ in cell.asked():
            question = ask_of(cell.case, cell.prompt, cell.candidate, number)
            yield id, Place(cell.file, cell.case.row, question, len(cell.case.prompts) > 1)


def _known_files(where: Location, store: Store) -> set[str]:
    known = set(open_workspace(where).find_files("tests", ".md"))
    for _, run in store.find_runs(limit=RUNS):
        known |= read_tree(run["results"], store.load_nodes).keys()
    return known
