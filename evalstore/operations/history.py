"""`log` and `show`: what is stored, for reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from evalstore import hashing
from evalstore.errors import EvalstoreError, RevisionError
from evalstore.messages import is_text
from evalstore.operations.contents import Contents
from evalstore.operations.desk import open_store, open_workspace
from evalstore.operations.failures import describe_failures, find_places
from evalstore.operations.file_edits import find_edits
from evalstore.operations.results import VERDICTS, read_results, results_of
from evalstore.operations.targets import name_file
from evalstore.operations.times import iso
from evalstore.report.difference import Difference
from evalstore.restoring import restore_case_file, restore_question
from evalstore.store.revisions import resolve, resolve_run
from evalstore.store.trees import find_entry, read_tree
from evalstore.values import Json, Vote

if TYPE_CHECKING:
    from evalstore.operations.failures import Place
    from evalstore.operations.orders import Where
    from evalstore.store import Store

_RUNS_AT_ONCE = 50
"""Runs whose results on a file are read together."""
_RUNS = 20
"""The newest runs: in them the place of a session is searched."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One run, or one change of a test file in a run."""

    run: str
    content: Json
    verdicts: dict[str, int]
    """Of the run; with a file, of the file's cells."""
    edits: tuple[Difference, ...] = ()
    """With a file: what differs from the run before."""

    def document(self) -> Json:
        """As JSON."""
        git = self.content.get("git") or {}
        return {
            "run": self.run,
            "started": iso(self.content["started"]),
            "ended": iso(self.content["ended"]),
            "message": self.content.get("message"),
            "status": self.content["status"],
            "asked": self.content["asked"],
            "recorded": self.content.get("recorded", 0),
            "judged": self.content["judged"],
            "reused": self.content["reused"],
            "verdicts": self.verdicts,
            "cost": self.content.get("cost"),
            "gitCommit": git.get("commit"),
            "gitDirty": git.get("dirty"),
            **({"edits": [one.document() for one in self.edits]} if self.edits else {}),
        }


@dataclass
class Log:
    """Runs, newest first."""

    entries: list[LogEntry]
    total: int
    file: str | None = None

    def document(self) -> Json:
        """As JSON."""
        return {"runs": [entry.document() for entry in self.entries], "total": self.total}


def log(where: Where, file: str | None = None, limit: int | None = None) -> Log:
    """The runs; with a file, those in which it was new or changed, with the edit."""
    with open_store(where) as store:
        if file is None:
            runs = store.find_runs(limit=limit)
            entries = [LogEntry(id, content, in_order(content["verdicts"])) for id, content in runs]
            return Log(entries, store.count_runs())
        name = name_file(where, open_workspace(where), file)
        entries = list(_file_log(store, name))
        if not entries:
            raise EvalstoreError(
                f"no run knows a test file '{name}'",
                hint="'evalstore ls tests' lists the files, 'evalstore log' the runs",
            )
        return Log(entries[:limit], len(entries), name)


def in_order(verdicts: Mapping[str, int]) -> dict[str, int]:
    """Counts of verdicts in the order they are shown."""
    return {word: verdicts[word] for word in VERDICTS}


def _file_log(store: Store, file: str) -> Iterator[LogEntry]:
    """The runs at which the file's cases differ from the run before, newest first."""
    runs = store.find_runs()
    nodes = find_entry({content["snapshot"] for _, content in runs}, file, store.load_nodes)
    known = [
        (id, content, nodes[content["snapshot"]])
        for id, content in runs
        if content["snapshot"] in nodes
    ]
    earlier: list[str | None] = [*(node for _, _, node in known[1:]), None]
    changed = [
        (*run, before) for run, before in zip(known, earlier, strict=True) if run[2] != before
    ]
    files = store.load_case_files(list({node for _, _, node in known}))
    versions = {id: (files[before], files[node]) for id, _, node, before in changed if before}
    edits = find_edits(Contents(store), versions)
    results = {content["results"] for _, content, _, _ in changed}
    leaves = find_entry(results, file, store.load_nodes)
    left = iter(changed)
    while some := list(islice(left, _RUNS_AT_ONCE)):
        wanted = {leaves[run["results"]] for _, run, _, _ in some if run["results"] in leaves}
        loaded = store.load_leaves(wanted)
        files |= store.load_case_files(
            list({leaf["cases"] for leaf in loaded.values()} - files.keys())
        )
        for id, content, _, before in some:
            leaf = loaded.get(leaves.get(content["results"], ""))
            cells = results_of(file, leaf, files) if leaf else ()
            words = Counter[str](one.verdict or "pending" for one in cells)
            found = edits[id] if before else [Difference("new")]
            yield LogEntry(
                id, content, in_order(words), tuple(found or [Difference("labels or tags only")])
            )


@dataclass
class Shown:
    """One thing of the store, with what belongs to it."""

    kind: str
    id: str
    content: Json
    related: dict[str, Json] = field(default_factory=dict)
    """What a reader wants to see beside it: names -> contents or lists of ids."""

    def document(self) -> Json:
        """As JSON: the stored content, with kind and id."""
        content = {
            name: value for name, value in self.content.items() if name not in ("kind", "scheme")
        }
        return {
            "kind": self.kind,
            "id": self.id,
            **content,
            **({"related": self.related} if self.related else {}),
        }


def show(where: Where, revision: str) -> Shown:
    """Any thing by its id or name; `REV:path` is a test file's cases as they were in that run."""
    with open_store(where) as store:
        text, colon, path = revision.partition(":")
        if colon:
            return _show_file(where, store, text, path)
        kind, id = resolve(store, text)
        if kind == "question":
            return _show_question(where, store, id)
        stored = store.load_any(kind, id)
        if kind == "failure":
            return _show_failure(where, store, id, stored.content)
        return Shown(kind, id, stored.content, _related(store, kind, id, stored.content))


def _show_question(where: Where, store: Store, id: str) -> Shown:
    """A question with its answers and with the calls that brought none."""
    samples = [sample.id for sample in store.find_samples([id]).get(id, ())]
    places = find_places(where, store, [id])
    asked = next((one.question for one in store.find_sessions(samples[:1]).values()), None)
    if asked is None and id in places:
        asked = places[id].question
    failures = describe_failures(where, store, store.find_failures_of([id], samples))
    return Shown(
        "question",
        id,
        {} if asked is None else hashing.describe_question(asked),
        {
            **_describe_place(places.get(id)),
            "sessions": samples,
            "failures": [one.document() for one in failures],
        },
    )


def _show_failure(where: Where, store: Store, id: str, content: Json) -> Shown:
    [entry] = describe_failures(where, store, [(id, content)])
    found = Shown("failure", id, content, _describe_place(entry.place))
    found.related |= {"question": entry.question, "hint": entry.hint}
    return found


def _describe_place(place: Place | None) -> dict[str, Json]:
    return {} if place is None else {"file": place.file, "row": place.row}


def _show_file(where: Where, store: Store, revision: str, path: str) -> Shown:
    run_id, run = resolve_run(store, revision or "@")
    tree = read_tree(run["snapshot"], store.load_nodes)
    workspace = open_workspace(where)
    folder = workspace.settings.paths["tests"]
    names = [path, name_file(where, workspace, path), f"{folder}/{path}"]
    name = next((name for name in names if name in tree), None)
    if name is None:
        raise RevisionError(
            f"run {run_id[:8]} knew no test file '{path}'", hint=f"it knew {len(tree)} files"
        )
    node = tree[name]
    content = store.load_any("cases", node).content
    related = {"file": name, "run": run_id, **_related(store, "cases", node, content)}
    return Shown("cases", node, content, related)


def _evaluator_name(store: Store, id: str) -> str:
    """The model's code, `checks`, a person, or the system that the verdict was imported from."""
    content = store.load_any("evaluator", id).content
    if "model" in content:
        return str(store.load_any("model", content["model"]).content["code"])
    return str(content.get("human") or content.get("system") or "checks")


def place_of(store: Store, session: str) -> tuple[dict[str, Json], list[str]]:
    """Where the newest run that knows a session has it, and the judgements that it has there.

    `current` is what it is judged under.
    """
    for _, run in store.find_runs(limit=_RUNS):
        found = [one for one in read_results(store, run) if session in one.sessions]
        if found:
            current = sorted({one.evaluation for one in found if one.evaluation})
            judged = list(dict.fromkeys(id for one in found for id in one.evaluations))
            place = {"file": found[0].file, "row": found[0].row, "current": current}
            return place, judged
    return {}, []


def _votes_on(store: Store, session: str, judged: list[str]) -> Iterator[Vote]:
    """The votes on a session alone, and those of `judged` on several that it is one of."""
    yield from store.find_votes([session]).get(session, [])
    for id, one in store.find_evaluations(judged).items():
        if len(one.sessions) > 1 and session in one.sessions:
            yield Vote(one.started, id, one.evaluation, one.evaluator, one.verdict, one.score)


def _related(store: Store, kind: str, id: str, content: Json) -> dict[str, Json]:
    def version(kind: str, id: str | None) -> Json:
        return store.load_contents(kind, [id]).get(id) if id else None

    if kind == "session":
        place, judged = place_of(store, id)
        votes = list(_votes_on(store, id, judged))
        found = store.find_evaluations([vote.id for vote in votes])
        return {
            "test": version("test", content["test"]),
            "prompt": version("prompt", content.get("prompt")),
            "model": version("model", content["model"]),
            "question": hashing.question_id(restore_question(content)),
            **place,
            "evaluations": [
                {
                    **vote._asdict(),
                    "by": _evaluator_name(store, vote.evaluator),
                    "feedback": found[vote.id].feedback,
                    "together": len(found[vote.id].sessions),
                    "sessions": list(found[vote.id].sessions),
                }
                for vote in votes
            ],
            "instructions": store.load_contents("evaluation", {vote.evaluation for vote in votes}),
        }
    if kind == "judgement":
        return {
            "instructions": version("evaluation", content["evaluation"]),
            "evaluator": version("evaluator", content["evaluator"]),
            "by": _evaluator_name(store, content["evaluator"]),
        }
    if kind == "cases":
        cases = restore_case_file(content).cases
        told = [case.evaluation for case in cases if case.evaluation]
        return {
            "tests": store.load_contents("test", [id for case in cases for id in case.tests]),
            "evaluations": store.load_contents("evaluation", told),
        }
    if kind == "file":
        file = store.load_files([id])[id]
        text = (
            {"text": file.data.decode("utf-8-sig", "replace")} if is_text(file.media_type) else {}
        )
        return {"size": len(file.data), **text}
    if kind == "run":
        return {
            "results": [
                {
                    "file": one.file,
                    "row": one.row,
                    "model": one.model,
                    "verdict": one.verdict or ("pending" if one.evaluation else None),
                    "sessions": list(one.sessions),
                }
                for one in read_results(store, content)
            ]
        }
    return {}
