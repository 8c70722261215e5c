"""Builds the history of one test: its versions with their edits and results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from evalstore.comparison.version_diff import Difference
from evalstore.comparison.word_diff import ChangedLine, diff_lines
from evalstore.core.display import WORKSPACE
from evalstore.core.errors import EvalstoreError
from evalstore.core.runs import Run
from evalstore.core.values import Case, CaseFile, Result
from evalstore.planning.open_project import open_project, open_store, open_workspace
from evalstore.planning.options import Location
from evalstore.planning.path_history import name_in_newest_run, name_in_workspace
from evalstore.planning.project import VersionReader
from evalstore.planning.status_report import results_at, workspace_as_run
from evalstore.results.edits.edited_sources import RENAMED
from evalstore.results.flips.result_changes import SYSTEM, describe_parts, load_test_parts
from evalstore.results.judgement_changes import ParticipantHistory
from evalstore.results.log.log import SeenRun, follow_row, follow_runs
from evalstore.results.names import PromptNames, label_prompts
from evalstore.store.results import results_of
from evalstore.store.trees.case_chunks import find_same
from evalstore.workspace.settings.settings import candidate_order

if TYPE_CHECKING:
    from evalstore.planning.project import Project
    from evalstore.store import Store

NEW, GONE = "new", "gone"


@dataclass
class Version:
    """A version of a test, which begins with a run."""

    run: str | None
    """The first run with this version; None if only the workspace has it."""
    started: int
    """The start of that run in microseconds since 1970, UTC; 0 without one."""
    edits: tuple[str, ...]
    """The parts that differ from the previous version, the candidates and the judges that do."""
    candidates: tuple[str, ...]
    """How candidates and judges are defined differently since the previous version, in words."""
    parts: Mapping[str, str]
    """The texts for candidates and evaluators by name of the part; empty if the test is gone."""
    case: Case | None
    """None if the test is gone."""
    results: dict[tuple[str, int], Result] = field(default_factory=dict)
    """The newest of each candidate and system prompt, one with a verdict if there is any."""
    judged_in: dict[str, str] = field(default_factory=dict)
    """The newest run with these verdicts, by candidate."""
    last_run: str | None = None
    """The newest run with results of this version; None without one."""
    prompt_names: Mapping[int, str] = field(default_factory=dict)
    """The names of the system prompts by their numbers, from 1, if there are several."""

    @property
    def row(self) -> str:
        """Return the label of the row in this version; empty if the test is gone."""
        return self.case.row if self.case else ""

    @property
    def verdicts(self) -> dict[str, tuple[str, ...]]:
        """Return the verdicts by candidate, one for each system prompt."""
        words: dict[str, tuple[str, ...]] = {}
        for (model, _), result in self.results.items():
            words[model] = (*words.get(model, ()), result.word or "answered")
        return words

    def prompts_of(self, model: str) -> list[str]:
        """Return the name of the system prompt of each verdict, if there are several."""
        numbers = [number for each, number in self.results if each == model]
        named = len(numbers) > 1 and self.prompt_names
        return [self.prompt_names[number + 1] for number in numbers] if named else []

    def add(self, results: Iterable[Result], run: str | None = None) -> None:
        """Add the results of a run that is newer than those that were added, or of none."""
        self.last_run = run or self.last_run
        for result in results:
            known = self.results.get(place := (result.model, result.prompt_number))
            if known is None or known.word == "pending" or result.word != "pending":
                self.results[place] = result
                if run:
                    self.judged_in[result.model] = run


def merge_candidates(versions: Iterable[Iterable[str]]) -> list[str]:
    """Return the candidates of all versions; each version has them in the order of the settings."""
    merged: list[str] = []
    for models in versions:
        place = len(merged)
        for model in reversed([*models]):
            if model not in merged:
                merged.insert(place, model)
            place = merged.index(model)
    return merged


@dataclass(frozen=True, slots=True)
class Edit:
    """The differences in one part of a test."""

    part: str
    hunks: tuple[tuple[ChangedLine, ...], ...]


def versions_of(location: Location, file: str, row: str) -> list[Version]:
    """Return the versions of a case since its first run, newest first; empty without a run."""
    with ExitStack() as stack:
        project: Project | None = None
        with suppress(EvalstoreError):  # errors of the workspace do not matter here
            project = stack.enter_context(open_project(location))
        store = project.store if project else stack.enter_context(open_store(location))
        settings = open_workspace(location).settings
        name = name_in_newest_run(project, file) if project else file
        seen = follow_runs(store, name, settings.paths["tests"])
        files = store.load_case_files({each.node for each in seen if each.node})
        seen += _in_workspace(seen, files, project, file)
        followed = _follow_label(seen, files, row, store)
        cases = {node: case for node, of_row in followed.items() for case in of_row}
        contents = load_test_parts(store, project, [*cases.values()])
        parts = {node: describe_parts(cases[node], contents, files[node]) for node in cases}
        versions = _list_versions(
            *(seen, files, cases, parts, _read_results(store, seen, cases, file)),
            ParticipantHistory(VersionReader(store).find, PromptNames(location, project)),
        )
        if project and versions and versions[-1].run is None and (case := versions[-1].case):
            with suppress(EvalstoreError):
                found = results_at(project, [(seen[-1].path, case.row)])
                versions[-1].add([each for each in found if each.row == case.row])
        order = candidate_order(settings)
        for version in versions:
            listed = sorted(version.results.items(), key=lambda it: (order(it[0][0]), it[0][1]))
            version.results = dict(listed)
            shown = {id: at for at, id in enumerate(version.case.prompts if version.case else ())}
            if len(shown) > 1:
                ids = {id: "no prompt" if id is None else id[:8] for id in shown}
                names = label_prompts(project, shown) if project else ids
                version.prompt_names = {shown[prompt] + 1: name for prompt, name in names.items()}
        return versions[::-1]


def edits_between(was: Version | None, now: Version) -> list[Edit]:
    """Return the differences part by part; in the first version everything is new."""
    before = was.parts if was else {}
    edits: list[Edit] = []
    for part in dict.fromkeys((*now.parts, *before)):
        hunks = diff_lines(before.get(part, ""), now.parts.get(part, ""))
        if hunks:
            kind, _, number = part.rpartition(" ")
            names = (it.prompt_names.get(int(number)) for it in (now, was) if it and kind == SYSTEM)
            name = next(filter(None, names), None)  # `system prompt brief` for `system prompt 1`
            edits.append(Edit(f"{SYSTEM} {name}" if name else part, tuple(map(tuple, hunks))))
    return edits


# --- versions


def _list_versions(
    seen: Iterable[SeenRun],
    files: Mapping[str, CaseFile],
    cases: Mapping[str, Case],
    parts_of: Mapping[str, Mapping[str, str]],
    results: Mapping[str, Sequence[Result]],
    participants: ParticipantHistory,
) -> list[Version]:
    """Return the versions, oldest first; `cases` and `parts_of` are by node, `results` by leaf."""
    versions: list[Version] = []
    last = ""
    for run, path, node, leaf in seen:
        case, parts = cases.get(node or ""), parts_of.get(node or "", {})
        found, was = results.get(leaf or "", ()), versions[-1] if versions else None
        edits: dict[str, str] = {}
        if case and node and found:
            edits = _participant_edits(participants, run, case, files[node], found)
        if not case:
            edits = {GONE: ""} if was and was.case else {}
        elif was is None or not was.case:
            edits = {NEW: ""}
        else:
            names = dict.fromkeys((*was.parts, *parts))
            changed = [part for part in names if was.parts.get(part) != parts.get(part)]
            edits = {part.rstrip("0123456789 "): "" for part in changed} | edits
            edits |= {RENAMED: str(Difference(RENAMED, last, path))} if path != last else {}
        last = path if case else last
        if edits:
            id, at = (None, 0) if run.id == WORKSPACE else (run.id, run.started)
            texts = tuple(text for text in edits.values() if text)
            versions.append(Version(id, at, tuple(edits), texts, parts, case))
        if case and found:
            versions[-1].add(found, run.id)
    return versions


def _participant_edits(
    participants: ParticipantHistory,
    run: Run,
    case: Case,
    file: CaseFile,
    results: Iterable[Result],
) -> dict[str, str]:
    """Return in short how candidates and judges differ from earlier runs, with what else to say."""
    edits: dict[str, str] = {}
    for of, edit in participants.step(
        run,
        {result.model for result in results},
        file=replace(file, cases=(case,)),
        with_temperature=case.temperature is None,
        with_evaluators="models" in case.judged_by,
    ):
        subject, colon, _ = edit.subject.partition(": ")
        if of == "verdict":
            subject = edit.subject
        elif colon and of.startswith("candidate "):
            subject = f"model of {subject}"
        edits[subject] = str(edit) if str(edit) != subject else ""
    return edits


# --- what runs and the workspace have of a case


def _in_workspace(
    seen: Sequence[SeenRun], files: dict[str, CaseFile], project: Project | None, file: str
) -> list[SeenRun]:
    """Return the workspace as a run, if it has another version of the file than the newest run."""
    path = name_in_workspace(project, file) if project else file
    if project is None or (path in project.reading.tests and path not in project.reading.files):
        return []
    now, last = project.reading.files.get(path), seen[-1].node if seen else None
    node = project.reading.nodes.get(path)
    if node == last or (node and now and last and find_same(node, now, {last: files[last]})):
        return []
    if node and now:
        files[node] = now
    return [SeenRun(workspace_as_run(project), path, node, None)]


def _follow_label(
    seen: Sequence[SeenRun], files: Mapping[str, CaseFile], row: str, store: Store
) -> Mapping[str, tuple[Case, ...]]:
    """Return the case in each version of the file: that with the label in the newest that has it.

    In the others it has the same values, or the label.
    """

    def find(versions: Sequence[CaseFile]) -> tuple[str, int]:
        has_row = (any(case.row == row for case in file.cases) for file in versions)
        return row, [*has_row].index(True)

    nodes = [each.node for each in seen if each.node in files and each.node]
    with suppress(ValueError):
        return follow_row(nodes, files, store, find)
    return {}


def _read_results(
    store: Store, seen: Iterable[SeenRun], cases: Mapping[str, Case], file: str
) -> dict[str, list[Result]]:
    """Return the results of the case by the leaves of the file."""
    labels = {
        leaf: {cases[node].row} for _, _, node, leaf in seen if leaf and node and node in cases
    }
    return results_of(store, file, labels)
