"""The command `show`: any object of the store, or the results of a revision."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import attrgetter
from typing import NamedTuple

from evalstore.core import hashing
from evalstore.core.batches import in_batches
from evalstore.core.deserialize import restore_cases, restore_failure
from evalstore.core.display import WORKSPACE, short, side_name
from evalstore.core.errors import RevisionError
from evalstore.core.hashing import DigestSet, digest_of
from evalstore.core.runs import Run, restore_run
from evalstore.core.values import URGENCY, Case, Json, Result, is_text
from evalstore.files.fields import suggest_file
from evalstore.files.json_output import Members, to_json
from evalstore.files.temporary_list import TemporaryList
from evalstore.planning.cell_results import as_result, name_models
from evalstore.planning.cells import Cell
from evalstore.planning.first_pushes import FirstPush, first_push_of
from evalstore.planning.open_project import open_catalogue, open_project, open_workspace
from evalstore.planning.options import Location, SelectionOptions, is_partial
from evalstore.planning.path_history import find_later_name
from evalstore.planning.project import Project, VersionReader
from evalstore.planning.selection import name_file
from evalstore.results.flips.verdict_changes import Outcome, find_verdict_changes
from evalstore.results.labels import describe_later_labels
from evalstore.results.log.failures import (
    Place,
    describe_failures,
    failed_now,
    find_question_places,
    mark_failed_in_run,
)
from evalstore.results.log.log import MOST_COMPARED
from evalstore.results.names import name_prompts, name_references
from evalstore.results.value_text import references_of
from evalstore.store import Store
from evalstore.store.events import LoggedFailure, is_by_script
from evalstore.store.results import (
    FoundRows,
    SessionResults,
    TaggedResult,
    iterate_cases,
    iterate_results,
    load_whole,
    read_cells,
    require_results,
)
from evalstore.store.revisions import WORK, names_of_runs, resolve_run
from evalstore.store.rows.row_queries import Among
from evalstore.store.shared_runs import RunInProgress, load_run_in_progress
from evalstore.store.trees.tree_nodes import find_entry, read_tree
from evalstore.workspace.folder import WorkspaceFolder

LoadVersions = Callable[[str, Iterable[str]], Mapping[str, Json]]


Pair = tuple[str, str | None]
"""A candidate and a system prompt."""


class ShownResult(NamedTuple):
    """A result, as its document lists it."""

    document: Json
    has_several: bool
    """Whether its case has results with several system prompts."""


class ShownResults:
    """The results of a run or of the workspace in a file; iterating yields their documents."""

    def __init__(self, shown: Iterable[ShownResult] = ()) -> None:
        """`shown` are read once."""
        self._values = TemporaryList()
        self.pairs: dict[Pair, None] = {}
        """The candidates and system prompts, in their order."""
        self.prompts: set[str | None] = set()
        """The system prompts of cases with several."""
        self._counts: Counter[str] = Counter()
        for some in in_batches(shown):
            self._counts.update(word_of(each.document) for each in some)
            self.pairs |= dict.fromkeys(pair_of(each.document) for each in some)
            self.prompts |= {each.document["prompt"] for each in some if each.has_several}
            self._values.extend([*map(tuple, some)])

    @property
    def verdicts(self) -> Counter[str]:
        """Return how many results have each verdict, or are pending."""
        return Counter({word: count for word, count in self._counts.items() if word != "answered"})

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Json]:
        return (document for document, _ in self._values)

    def shown(self) -> Iterator[ShownResult]:
        """Yield the results."""
        return (ShownResult(*each) for each in self._values)

    def by_urgency(self, broke: Callable[[Json], bool] | None = None) -> Iterator[ShownResult]:
        """Yield the results, the most urgent first; those of a verdict keep their order.

        Of each verdict those for which `broke` is true come first.
        """
        for word in URGENCY:
            for is_first in (None,) if broke is None else (True, False):
                for each in self.shown() if word in self._counts else ():
                    is_wanted = broke is None or broke(each.document) == is_first
                    if is_wanted and word_of(each.document) == word:
                        yield each


def list_results(batches: Iterable[list[Result]]) -> Iterator[ShownResult]:
    """Yield results as they are shown; those of a case stand together."""
    every = chain.from_iterable(batches)
    for _, same in groupby(every, lambda result: (result.file, result.row)):
        documents = [result_to_json(result) for result in same]
        prompts = {document["prompt"] for document in documents}
        yield from (ShownResult(document, len(prompts) > 1) for document in documents)


def pair_of(document: Json) -> Pair:
    """Return the candidate and the system prompt of a result."""
    return document["model"], document["prompt"]


def word_of(document: Json) -> str:
    """Return the verdict of a result, `pending`, or `answered` where nothing is judged."""
    return document["verdict"] or "answered"


def result_to_json(result: Result) -> Json:
    """Return a result as JSON, as the document of its run lists it."""
    return {
        "file": result.file,
        "row": result.row,
        "prompt": result.prompt,
        "model": result.model,
        "verdict": result.verdict or ("pending" if result.evaluation else None),
        "sessions": list(result.sessions),
    }


# --- the cases of a test file that `show` lists, with their versions; many are in temporary files


class CaseBatch(NamedTuple):
    """Some cases of a file."""

    cases: Sequence[Case]
    tests: Mapping[str, Json]
    """The contents of their tests, by id."""
    evaluations: Mapping[str, Json]
    """Those of their evaluations."""


class ShownCases:
    """Cases and the contents of their versions in files, which are read in their order."""

    def __init__(self, batches: Iterable[Sequence[Json]], load: LoadVersions) -> None:
        """`batches` are cases as they are stored, and `load` loads versions of a kind by id."""
        self._batches = TemporaryList()
        references: dict[tuple[str, str], None] = {}
        for batch in batches:
            cases = [*restore_cases(batch)]
            tests, evaluations = (  # in the order of their cases
                {id: found[id] for id in ids if id in found}
                for kind, ids in (
                    ("test", dict.fromkeys(id for case in cases for id in case.tests)),
                    ("evaluation", dict.fromkeys(filter(None, (it.evaluation for it in cases)))),
                )
                for found in [load(kind, ids)]
            )
            self._batches.append([batch, tests, evaluations])
            references.update(dict.fromkeys(references_of(evaluations.values())))
        self.references = [*references]
        """The kinds and ids of the versions that the checks name."""

    def __iter__(self) -> Iterator[CaseBatch]:
        for cases, tests, evaluations in self._batches:
            yield CaseBatch([*restore_cases(cases)], tests, evaluations)

    def cases(self) -> Iterator[Json]:
        """Return the cases as they are stored."""
        return chain.from_iterable(cases for cases, _, _ in self._batches)

    def related(self) -> dict[str, Json]:
        """Return the contents of the tests and evaluations by id, each once."""
        return {
            "tests": Members(_each_once(tests for _, tests, _ in self._batches)),
            "evaluations": Members(_each_once(contents for *_, contents in self._batches)),
        }


def _each_once(batches: Iterable[dict[str, Json]]) -> Iterator[tuple[str, Json]]:
    """Yield the contents of batches with their ids."""
    seen = DigestSet()
    for id, content in chain.from_iterable(batch.items() for batch in batches):
        if seen.add(digest_of(id)):
            yield id, content


IN_PROGRESS = "run in progress"
"""The kind of a run that programs carry out at this moment, and that is not stored yet."""


@dataclass
class ShownItem:
    """An object of the store, with related objects."""

    kind: str
    id: str
    content: Json
    related: dict[str, Json] = field(default_factory=dict)
    """Related objects: names -> contents or lists of ids."""
    prompts: Mapping[str | None, str] = field(default_factory=dict)
    """The names of the system prompts of cases with several."""
    references: Mapping[str | None, str] = field(default_factory=dict)
    """The names of the evaluator prompts and schemas that checks refer to, by id."""
    outcome: Outcome | None = None
    """Of a run: how many results broke and were fixed; None if that is not computed."""
    marks: Mapping[tuple[str, str, str | None, str], str] = field(default_factory=dict)
    """`broke` or `fixed`, by the file, row, system prompt and candidate of a result of a run,
    whether a label is the cause, and how it was labelled after the run."""
    push: FirstPush | None = None
    """Who pushed it; None if it is of this machine."""
    names: tuple[str, ...] = ()
    """The names that `tag` gave a run."""
    left_out: int = 0
    """How many results of a run are not among the related objects, as they are less urgent."""
    is_simulated: bool = False
    """Whether the cost of a judgement is that of a scripted model, which calls nobody."""
    in_progress: RunInProgress | None = None
    """How far it is, if it is a run in progress."""
    edit: str = ""
    """Of a test file of a run: what became of it since; empty if nothing, or if it is not known."""
    is_now: bool = False
    """Of a test file of a run: whether labels that came after the run count."""
    cases: ShownCases | None = None
    """Those of a test file, which are neither in its content nor related."""

    def document(self) -> Json:
        """Return the stored content as JSON, with kind and id."""
        content = {
            name: value for name, value in self.content.items() if name not in ("kind", "scheme")
        }
        related = {  # those in files as iterators
            name: iter(value) if isinstance(value, ShownResults) else value
            for name, value in self.related.items()
        }
        if self.cases:
            content["cases"], related = self.cases.cases(), related | self.cases.related()
        return {
            "kind": self.kind,
            "id": self.id,
            **content,
            **({"related": related} if related else {}),
            **({"push": to_json(self.push)} if self.push else {}),
        }


def show_item(
    location: Location,
    store: Store,
    kind: str,
    id: str,
    most: int | None = None,
) -> ShownItem:
    """Return a stored object other than a session, with related objects.

    With `most`, at most so many results of a run, the most urgent ones.
    """
    if kind == "question":
        return _show_question(location, store, id)
    if kind == IN_PROGRESS:
        progress, shared = load_run_in_progress(store, id)
        content = {name: value for name, value in to_json(progress).items() if name != "run"}
        content |= {name: shared.description.get(name) for name in ("message", "selection")}
        return ShownItem(kind, id, content, in_progress=progress)
    stored = store.load_any(kind, id)
    if kind == "failure":
        failed = LoggedFailure(id, restore_failure(stored.content))
        [entry] = describe_failures(location, store, [failed])
        item = ShownItem(kind, id, stored.content, _describe_place(entry.place))
        item.related |= {"question": entry.question, "hint": entry.hint}
        if entry.place and entry.place.has_several:
            item.prompts = name_prompts(location, [entry.place.question.prompt])
        return item
    if kind == "run":
        run = restore_run(id, stored.content)
        return _show_run(location, store, run, stored.content, most)
    if kind == "cases":
        item = _stored_cases(store, id, stored.content)
    else:
        content = load_whole(store, id, stored.content)
        item = ShownItem(kind, id, content, _related(store, kind, id, content))
    item.references = name_references(location, _references(item))
    item.push = first_push_of(location, kind, id)
    item.is_simulated = is_by_script(store, item.related.get("evaluator"))
    return item


def _label_marks(store: Store, run: Run) -> dict[MarkedCell, str]:
    """Return how results of a run were labelled after it."""
    return {_marked(result): text for result, text in describe_later_labels(store, run)}


def _show_run(
    location: Location, store: Store, run: Run, content: Json, most: int | None
) -> ShownItem:
    """Return a run with its results, or the most urgent of them.

    Those that broke or were fixed in it are marked, unless the run has many, and those that were
    labelled after it.
    """
    item = ShownItem("run", run.id, content, push=first_push_of(location, "run", run.id))
    if most is not None:
        shown, item.left_out = find_urgent_results(store, run, most)
    else:
        shown = ShownResults(list_results(iterate_results(store, run)))
    item.related = {"results": shown}
    item.prompts = name_prompts(location, shown.prompts)
    item.names = names_of_runs(store).get(run.id, ())
    item.marks = labels = _label_marks(store, run)
    if sum(run.verdicts.values()) > MOST_COMPARED:
        return item
    folder = open_workspace(location).settings.paths["tests"]
    if changes := find_verdict_changes(store, folder, run):
        item.outcome = changes.outcome
        causes = changes.mark_causes()
        item.marks = labels | {
            _marked(result): ", ".join(
                filter(None, (word, causes.of(result.cell), labels.get(_marked(result))))
            )
            for word, results in (("broke", changes.broke), ("fixed", changes.fixed))
            for result in results
        }
    return item


def _references(item: ShownItem) -> Iterable[tuple[str, str]]:
    """Return the versions that the checks of an item name, each a kind and an id."""
    if item.cases:
        return item.cases.references
    if item.kind == "evaluation":
        return references_of([item.content])
    return references_of([item.related["instructions"]] if item.kind == "judgement" else [])


def _show_question(location: Location, store: Store, id: str) -> ShownItem:
    """Return a question with its answers and failed calls."""
    samples = [sample.id for sample in store.find_samples([id]).get(id, ())]
    places = find_question_places(location, store, [id])
    question = next(
        (session.question for session in store.find_sessions(samples[:1]).values()), None
    )
    if question is None and id in places:
        question = places[id].question
    failures = describe_failures(location, store, store.find_failures_of([id], samples))
    place = places.get(id)
    return ShownItem(
        "question",
        id,
        {} if question is None else hashing.describe_question(question),
        {
            **_describe_place(place),
            "sessions": samples,
            "failures": to_json(failures),
        },
        name_prompts(location, [place.question.prompt] if place and place.has_several else []),
    )


def _describe_place(place: Place | None) -> dict[str, Json]:
    if place is None:
        return {}
    return {"file": place.file, "row": place.row, "prompt": place.question.prompt}


def show_file(
    location: Location,
    store: Store,
    revision: str,
    path: str,
    chosen: ShownResults | None = None,
) -> ShownItem:
    """Return a test file as it was in a run, with its results there, or those that are chosen.

    Raises `RevisionError` if the run lacks the file.
    """
    run = resolve_run(store, revision or "@")
    tree = read_tree(run.snapshot, store.load_nodes)
    name = find_file_of_run(location, store, run, tree, path)
    item = _stored_cases(store, tree[name], store.load_any("cases", tree[name]).content)
    results = chosen or ShownResults(list_results(iterate_results(store, run, name)))
    item.related = {"file": name, "run": run.id, **item.related, "results": results}
    item.prompts, item.marks = name_prompts(location, results.prompts), _label_marks(store, run)
    item.references = name_references(location, _references(item))
    return item


def _stored_cases(store: Store, node: str, stored: Json) -> ShownItem:
    """Return a stored test file with its cases."""
    cases = ShownCases(store.iterate_cases_of(stored), store.load_contents)
    content = load_whole(store, node, stored)
    return ShownItem("cases", node, content, {"tests": {}, "evaluations": {}}, cases=cases)


def cells_with(store: Store, session: str) -> dict[Result, Run]:
    """Return the results with a session, each with its run.

    They are read from the newest run that has the session, and from the runs before it for cases
    that this run left out.
    """
    cells: dict[MarkedCell, tuple[Result, Run]] = {}
    sessions = SessionResults(store)
    for run in store.find_recent_runs():
        here = sessions.find(run.results, session)
        for result in here:
            cells.setdefault(_marked(result), (result, run))
        if here and not is_partial(run):
            break
    return dict(cells.values())


MarkedCell = tuple[str, str, str | None, str]
_marked: Callable[[Result], MarkedCell] = attrgetter("file", "row", "prompt", "model")


def _related(store: Store, kind: str, id: str, content: Json) -> dict[str, Json]:
    find = VersionReader(store).find
    if kind == "judgement":
        maker = store.load_any("evaluator", content["evaluator"]).content
        names = name_models(store, [maker["model"]] if "model" in maker else [])
        return {
            "instructions": find("evaluation", content["evaluation"]),
            "evaluator": find("evaluator", content["evaluator"]),
            "by": next(iter(names.values()), maker.get("human") or maker.get("system") or "checks"),
        }
    if kind == "file":
        file = store.load_files([id])[id]
        text = (
            {"text": file.data.decode("utf-8-sig", "replace")} if is_text(file.media_type) else {}
        )
        return {"size": len(file.data), **text}
    return {}


# --- finds the most urgent results of a run, reading only the nodes that have them


def find_urgent_results(store: Store, run: Run, most: int) -> tuple[ShownResults, int]:
    """Return the most urgent results of a run, at most so many, and how many others there are."""
    places, total = store.find_most_urgent(run.results, most)
    nodes = list(dict.fromkeys((path, node) for path, node, _ in places))
    known = {
        place: [
            ShownResult(result_to_json(result), len(case.prompts) > 1) for result, case in cells
        ]
        for place, cells in zip(nodes, read_cells(store, nodes), strict=True)
    }
    shown = ShownResults(known[path, node][place] for path, node, place in places)
    return shown, total - len(shown)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Leave out a search that takes a fifth of the time of reading many results."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def open_revision(location: Location, revision: str) -> Iterator[Project]:
    """Open the project; test files are read, and must be valid, only for the workspace."""
    if revision != WORK:
        with open_catalogue(location) as project:
            yield project
        return
    from evalstore.planning.planner import require_sound

    with open_project(location) as project:
        require_sound(project, SelectionOptions())
        yield project


def find_run(project: Project, revision: str) -> Run:
    """Return the run that a revision names, or the workspace as one."""
    if revision != WORK:
        return resolve_run(project.store, revision)
    from evalstore.planning.status_report import workspace_as_run

    return workspace_as_run(project)


def find_results(
    project: Project, revision: str
) -> tuple[Run, Iterator[list[tuple[Result, Case]]]]:
    """Return the run that a revision names, and its results in batches.

    Those whose call failed have a mark.
    """
    run = find_run(project, revision)
    if revision == WORK:
        marked = _mark_workspace(project)
        return run, ([(result, cell.case) for result, cell in batch] for batch in marked)

    def read() -> Iterator[list[tuple[Result, Case]]]:
        for batch in iterate_cases(project.store, run):
            asked = [(result, case.temperature, case.seed) for result, case in batch]
            marked = mark_failed_in_run(project.store, run, asked)
            yield [(result, case) for result, (_, case) in zip(marked, batch, strict=True)]

    return run, read() if run.failed else iterate_cases(project.store, run)


def _mark_workspace(project: Project) -> Iterator[list[tuple[Result, Cell]]]:
    from evalstore.planning.status_report import compute_workspace

    has_failures = project.store.count_failures() > 0
    for plan, results in compute_workspace(project):
        failed = failed_now(project, plan, results) if has_failures else {}
        yield [(as_result(each).marked(failed), each.cell) for each in results]


@dataclass(frozen=True)
class FoundResults:
    """The results of a run, or of the workspace, by file and row."""

    run: Run
    batches: Iterator[list[TaggedResult]]
    """The results with the tags of their cases; few of them are in memory."""
    rows: FoundRows | None = None
    """What pages are read from, where rows say all that is wanted."""

    def results(self) -> Iterator[Result]:
        """Yield the results."""
        return (each.result for batch in self.batches for each in batch)

    def page(self, offset: int, limit: int) -> tuple[list[TaggedResult], int]:
        """Return so many results after the first ones, and how many there are."""
        if self.rows:
            return self.rows.page(offset, limit)
        total = 0
        chosen: list[TaggedResult] = []
        for batch in self.batches:
            chosen += batch[max(0, offset - total) : max(0, offset + limit - total)]
            total += len(batch)
        return chosen, total


def find_tagged_results(
    project: Project,
    run: Run,
    wanted: Sequence[Among] = (),
    covers: Callable[[str], bool] = lambda _file: True,
) -> FoundResults:
    """Return the results of a run, or of the workspace as one, in the files that are covered.

    Of a run, only those that meet the conditions in its rows; whoever asks looks at the others. A
    result without a reply is marked, and is `pending` in its row.
    """
    if run.id == WORKSPACE:
        marked = _mark_workspace(project)
        every = (
            [
                TaggedResult(
                    *(cell.number, result, cell.case.tags, cell.case.judged_by),
                    has_several_prompts=len(cell.case.prompts) > 1,
                )
                for result, cell in batch
                if covers(result.file)
            ]
            for batch in marked
        )
        return FoundResults(run, every)
    require_results(project.store, run.results)
    rows = FoundRows(project.store, run.results, [it for it in wanted if it.is_in_rows], covers)
    if not run.failed:
        return FoundResults(run, rows.batches(), rows)

    def read() -> Iterator[list[TaggedResult]]:
        for batch in rows.batches():
            asked = [(each.result, each.temperature, each.seed) for each in batch]
            marked = mark_failed_in_run(project.store, run, asked)
            yield [each._replace(result=it) for each, it in zip(batch, marked, strict=True)]

    return FoundResults(run, read())


# --- the test file of a run, or of the workspace, that a path on the command line names


def find_test_file(
    location: Location, workspace: WorkspaceFolder, files: Collection[str], path: str, side: str
) -> str:
    """Return the test file that a path names; `files` are those of a run or of the workspace.

    The path is relative to the workspace, to the current folder or to the folder of the tests.
    Raises `RevisionError` for an unknown file.
    """
    names = _possible_names(location, workspace, path)
    name = next((name for name in names if name in files), None)
    if name is None:
        raise RevisionError(
            f"{side_name(side)} has no test file '{path}'",
            hint=suggest_file(path, files),
        )
    return name


def find_file_of_run(
    location: Location, store: Store, run: Run, files: Collection[str], path: str
) -> str:
    """Return the test file of a run that a path names, as `find_test_file` does.

    Raises `RevisionError` if the file does not exist; if it was renamed, the hint has its new path.
    """
    workspace = open_workspace(location)
    try:
        return find_test_file(location, workspace, files, path, run.id)
    except RevisionError as error:
        names, folder = (
            _possible_names(location, workspace, path),
            workspace.settings.paths["tests"],
        )
        later = find_later_name(store, run, names, folder)
        if later is not None:
            raise RevisionError(str(error), hint=f"it was renamed to '{later}'") from None
        tests = workspace.find_files("tests")
        if now := next((name for name in names if name in tests), None):
            hint = f"the workspace has it now: 'evalstore show @work:{now}' shows it"
            raise RevisionError(str(error), hint=hint) from None
        for older in store.find_recent_runs(before=run):
            for name in names:
                if find_entry({older.snapshot}, name, store.load_nodes):
                    hint = f"'evalstore show {short(older.id)}:{name}' shows its last version"
                    raise RevisionError(f"{error}: it was removed", hint=hint) from None
        raise


def _possible_names(location: Location, workspace: WorkspaceFolder, path: str) -> list[str]:
    """Return the paths in the workspace that a path on the command line may mean."""
    folder = workspace.settings.paths["tests"]
    return [path, name_file(location, workspace, path), f"{folder}/{path}"]
