"""The command `log`: the runs, or the history of a test file or a row, also with its versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, dropwhile, pairwise
from typing import NamedTuple

from evalstore.comparison.version_diff import ChangedLine, Difference, Name, diff_lines
from evalstore.core import clock
from evalstore.core.clock import iso, read_moment
from evalstore.core.display import WORKSPACE, clip, short
from evalstore.core.errors import EvalstoreError, RevisionError
from evalstore.core.runs import Run
from evalstore.core.values import Case, CaseFile, Json, Result, order_counts
from evalstore.files.fields import suggest
from evalstore.files.json_output import to_json
from evalstore.planning.earlier_results import RecentRuns
from evalstore.planning.first_pushes import FirstPush, find_first_pushes
from evalstore.planning.open_project import open_project, open_store, open_workspace
from evalstore.planning.options import Location, describe_selection
from evalstore.planning.path_history import (
    compare_sources,
    follow_file,
    name_in_newest_run,
    name_in_workspace,
)
from evalstore.planning.project import Project, VersionReader
from evalstore.planning.selection import find_row_in, name_file, no_run_has, split_row
from evalstore.planning.status_report import results_at, workspace_as_run
from evalstore.results.edits.edited_files import find_run_edits
from evalstore.results.edits.edits import RENAMED, ParticipantHistory, find_edits
from evalstore.results.flips.result_history import SYSTEM, describe_parts, load_test_parts
from evalstore.results.flips.verdict_changes import ComparedPart, Outcome, find_verdict_changes
from evalstore.results.names import PromptNames, label_prompts, prompts_of
from evalstore.store import Store
from evalstore.store.events import RUNS_SEARCHED
from evalstore.store.results import SourcesReader, iterate_entries, results_of
from evalstore.store.revisions import (
    RunInProgressError,
    RunTag,
    add_tag,
    as_revision,
    names_of_runs,
    read_tags,
    require_name,
    resolve_run,
)
from evalstore.store.rows.row_queries import VerdictCounts
from evalstore.store.schema.table_definitions import RUNS
from evalstore.store.trees.case_chunks import find_same
from evalstore.store.trees.tree_nodes import RowIndex, find_entry, find_leaves, read_tree
from evalstore.workspace.git.status import name_of_user
from evalstore.workspace.settings.settings import candidate_order

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
        labels = {it.leaf: {cases[it.node].row} for it in seen if it.leaf and it.node in cases}
        versions = _list_versions(
            *(seen, files, cases, parts, results_of(store, file, labels)),
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
        case, parts = cases.get(node), parts_of.get(node, {})
        found, was = results.get(leaf, ()), versions[-1] if versions else None
        edits: dict[str, str] = {}
        if case and found:
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
    now, last = project.reading.files.get(path), seen[-1].node if seen else ""
    node = project.reading.nodes.get(path, "")
    if node == last or (now and last and find_same(node, now, {last: files[last]})):
        return []
    if now:
        files[node] = now
    return [SeenRun(workspace_as_run(project), path, node, "")]


def _follow_label(
    seen: Sequence[SeenRun], files: Mapping[str, CaseFile], row: str, store: Store
) -> Mapping[str, tuple[Case, ...]]:
    """Return the case in each version of the file: that with the label in the newest that has it.

    In the others it has the same values, or the label.
    """

    def find(versions: Sequence[CaseFile]) -> tuple[str, int]:
        has_row = (any(case.row == row for case in file.cases) for file in versions)
        return row, [*has_row].index(True)

    nodes = [each.node for each in seen if each.node in files]
    with suppress(ValueError):
        return follow_row(nodes, files, store, find)
    return {}


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A run; with a file, one that changed the file or its verdicts."""

    run: Run
    verdicts: Mapping[str, int]
    """The counts of the verdicts of the run; with a file, those of its cells."""
    edits: tuple[Difference, ...] = ()
    """What was edited since the runs before: test files, system prompts, candidates and evaluators;
    with a file, its own edits in full and labels. An edit belongs to the first run that judged it,
    none to a run that only changed verdicts."""
    is_covered: bool = True
    """Whether the run has results of the file, or of the row."""
    no_edit: str = ""
    """With a file, why verdicts on it changed without an edit: `asked again`."""
    outcome: Outcome | None = None
    """How many results broke and were fixed since they were judged before; None: not computed."""
    push: FirstPush | None = None
    """Who pushed the run; None for a run of this machine."""
    names: tuple[str, ...] = ()
    """The names that `tag` gave the run."""
    part: ComparedPart | None = None
    """With a file, what of the run is compared with earlier runs."""

    def document(self) -> Json:
        """Return the entry as JSON."""
        run, git = self.run, self.run.git
        return {
            "run": run.id,
            "started": iso(run.started),
            "ended": iso(run.ended),
            "message": run.message,
            "selection": describe_selection(run.selection) or None,
            "status": run.status,
            "asked": run.asked,
            "recorded": run.recorded,
            "judged": run.judged,
            "reused": run.reused,
            "verdicts": self.verdicts,
            "cost": run.cost,
            "gitCommit": git.commit if git else None,
            "gitDirty": git.dirty if git else None,
            **({"author": run.author} if run.author else {}),
            **({"cases": run.cases._asdict()} if run.cases else {}),
            **({"names": list(self.names)} if self.names else {}),
            **({"push": to_json(self.push)} if self.push else {}),
            **({"edits": to_json(self.edits)} if self.edits else {}),
            **(dict(zip(("broke", "fixed"), self.outcome, strict=False)) if self.outcome else {}),
        }


_MOST_RUNS = 50
"""The most runs whose verdicts are compared with those before."""
MOST_COMPARED = 20_000
"""About the most results of them that are compared, so that the list comes at once."""
_MOST_SEARCHED = 300
"""About the most runs that are looked at for earlier verdicts: all, for each that has new cases."""


@dataclass
class Log:
    """Runs, newest first."""

    JSON_FIELDS = ("entries", "total")
    entries: list[LogEntry] = field(metadata={"json_name": "runs"})
    total: int
    file: str | None = None
    row: str | None = None
    """The row of the file, as it was named."""
    others: int = 0
    """With a file, how many runs changed neither it nor its verdicts, and are left out."""
    compared: int | None = None
    """How many of the newest entries are compared with the runs before; None: all of them."""
    bounds: dict[str, int] = field(default_factory=dict)
    """The first moment of `since`, and that of `before`."""


def log(
    location: Location,
    file: str | None = None,
    limit: int | None = None,
    *,
    since: str | None = None,
    until: str | None = None,
) -> Log:
    """Return the runs; with a file, those that changed it or its verdicts, with its edits.

    `FILE::ROW` is a row of it. Only runs after `since` and before `until`, each a date or a run.
    Raises `NothingSelectedError` for a row that no run has.
    """
    with open_store(location) as store:
        bounds: dict[str, int] = {}
        for name, text, offset in (("since", since, 1), ("before", until, 0)):
            if text is not None:  # a run that is named is not listed
                if (moment := read_moment(text)) is None:
                    moment = resolve_run(store, as_revision(text)).started + offset
                bounds[name] = moment
        if file is None:
            runs = store.find_runs(limit=limit, **bounds)
            names = names_of_runs(store)
            pushes = find_first_pushes(location, RUNS.name, [run.id for run in runs])
            edits = find_run_edits(location, store, runs)
            entries = [
                LogEntry(
                    run,
                    order_counts(run.verdicts),
                    edited,
                    push=pushes.get(run.id),
                    names=names.get(run.id, ()),
                )
                for run, edited in zip(runs, edits, strict=True)
            ]
            entries, compared = add_outcomes(location, store, entries)
            return Log(entries, store.count_runs(**bounds), compared=compared, bounds=bounds)
        workspace = open_workspace(location)
        file, row = split_row(file)
        name = name_file(location, workspace, file)
        folder = workspace.settings.paths["tests"]
        path, newest = name, store.find_runs(limit=1)
        if newest and not find_entry([newest[0].snapshot], name, store.load_nodes):
            with suppress(EvalstoreError), open_project(location) as project:
                path = name_in_newest_run(project, name)
        prompts = PromptNames(location)
        find_row = None if row is None else partial(find_row_in, path, row)
        entries = find_logged_changes(store, path, folder, prompts, find_row)
        pushes = find_first_pushes(location, RUNS.name, [entry.run.id for entry in entries])
        entries = [replace(entry, push=pushes.get(entry.run.id)) for entry in entries]
        if not entries:
            last = store.find_run_before()
            files = read_tree(last.snapshot, store.load_nodes) if last else {}
            problem = no_run_has(workspace, name, files)
            try:  # it may be the name of a run
                resolve_run(store, name)
            except RunInProgressError:
                raise
            except EvalstoreError:
                raise problem from None
            raise EvalstoreError(str(problem), hint=f"'evalstore show {name}' shows a run")
        others = store.count_runs() - len(entries)
        low, high = bounds.get("since"), bounds.get("before")
        entries = [
            entry
            for entry in entries
            if (low is None or entry.run.started >= low)
            and (high is None or entry.run.started < high)
        ]
        listed, compared = add_outcomes(location, store, entries[:limit])
        return Log(listed, len(entries), name, row, others, compared, bounds)


def add_outcomes(
    location: Location, store: Store, entries: Sequence[LogEntry]
) -> tuple[list[LogEntry], int | None]:
    """Return runs, the newest of them with how many results broke and were fixed.

    And how many of the runs were compared; None if all were.
    """
    folder = open_workspace(location).settings.paths["tests"]
    listed = list(entries)
    left = MOST_COMPARED
    newest = entries[0].run if entries else None
    recent = RecentRuns(store, newest, _MOST_RUNS + RUNS_SEARCHED) if newest else None
    for number, entry in enumerate(entries):
        left -= sum(entry.verdicts.values())
        is_enough = recent is not None and recent.searched > _MOST_SEARCHED
        if left < 0 or number == _MOST_RUNS or is_enough:
            return [
                *listed[:number],
                *(replace(it, outcome=None) for it in entries[number:]),
            ], number
        if (entry.is_covered and entry.outcome is None) and (
            changes := find_verdict_changes(store, folder, entry.run, recent, entry.part)
        ):
            outcome = changes.outcome
            if any(outcome) and not (outcome.causes or entry.edits or entry.part):
                outcome = outcome._replace(causes=("by earlier edits",))
            listed[number] = replace(entry, outcome=outcome)
    return listed, None


# --- the command `tag`: gives names to runs, which `push` and `pull` copy


def list_tags(location: Location) -> list[RunTag]:
    """Return the names of runs."""
    with open_store(location) as store:
        return [*read_tags(store).values()]


def tag_run(location: Location, name: str, revision: str = "@") -> tuple[RunTag, RunTag | None]:
    """Give a name to a run; return also the run that had it. Raises `RevisionError`."""
    require_name(name)
    with open_store(location) as store:
        run = resolve_run(store, revision).id
        before = read_tags(store).get(name)
        at = max(clock.now(), before.at + 1 if before else 0)  # also if the clock was set back
        tag = RunTag(name, run, at, name_of_user(location.directory), is_removed=False)
        add_tag(store, tag)
        return tag, before


def untag(location: Location, name: str) -> list[RunTag]:
    """Remove a name; raises `RevisionError` if no run has it."""
    with open_store(location) as store:
        tags = read_tags(store)
        if name not in tags:
            raise RevisionError(f"no run is called '{name}'", hint=suggest(name, tags, "names"))
        at = max(clock.now(), tags[name].at + 1)
        tag = replace(tags[name], at=at, by=name_of_user(location.directory), is_removed=True)
        add_tag(store, tag)
        return [tag]


# --- the history of a test file, or of one of its rows


FindRow = Callable[[Sequence[CaseFile]], tuple[str, int]]
"""From the versions of a file, newest first, to the label of a row and the number of a version."""


_NO_COUNTS = order_counts(Counter())


@dataclass
class _Version:
    """A version of a test file: consecutive runs in which its cases are the same."""

    run: Run
    """The first of these runs."""
    path: str
    node: str
    results: list[tuple[Run, str]] = field(default_factory=list)
    """The runs that covered the file, oldest first, with the leaves of its results."""
    rows: dict[str, set[str]] = field(default_factory=dict)
    """The labels of the rows in each of these leaves."""


def find_logged_changes(
    store: Store, file: str, folder: str, names: PromptNames, find_row: FindRow | None = None
) -> list[LogEntry]:
    """Return the runs that changed a test file or its verdicts, newest first.

    An edit belongs to the first run with results of the edited file: a run of other files keeps
    the file in its snapshot, but does not judge it. If no run judged it, it belongs to the first
    run with the edited file. Candidates count if they have results of the file. `file` is its path
    in the newest run, `folder` that of the test files. With `find_row`, the same of a row alone.
    """
    seen, removed, gone = _find_runs(store, file, folder)
    files = store.load_case_files(list({node for _, _, node, _ in seen}))
    if find_row and seen:
        followed = follow_row([node for _, _, node, _ in seen], files, store, find_row)
        files = {node: replace(files[node], cases=followed[node]) for node in files}
        first = next(number for number, entry in enumerate(seen) if followed[entry[2]])
        seen = seen[first:]
    is_row = find_row is not None
    versions = list(_group(seen, files, removed, is_row=is_row))
    rows = {leaf: labels for version in versions for leaf, labels in version.rows.items()}
    if is_row:
        results = results_of(store, file, rows)
        counts = {
            leaf: Counter((it.model, it.verdict) for it in of) for leaf, of in results.items()
        }
        sums: Mapping[str, object] = {
            leaf: Counter((it.prompt_number, it.model, it.verdict) for it in of)
            for leaf, of in results.items()
        }
        for version in versions:
            if files[version.node].cases:
                version.results = [each for each in version.results if counts[each[1]]]
    else:
        counts, sums = count_leaves(store, rows), sum_leaves(store, rows)
    newest_first = dict.fromkeys(version.node for version in reversed(versions))
    names.expect(prompts_of(files[node] for node in newest_first))
    edits = _find_edits(store, versions, files, names, removed)
    participants = ParticipantHistory(VersionReader(store).find, names)
    has_labels, last, pending = bool(store.find_labels()), "", 0
    changes: list[LogEntry] = []
    for version, differences in zip(versions, edits, strict=True):
        if version.run.id in removed:
            changes.append(_removed(removed[version.run.id], version.path))
        if not version.results:
            changes.append(LogEntry(version.run, _NO_COUNTS, differences, is_covered=False))
        traits = store.find_traits(files[version.node])
        judged: set[str] = set()
        for number, (run, leaf) in enumerate(version.results):
            now: Counter[str] = Counter()
            models: set[str] = set()
            for (model, verdict), count in counts[leaf].items():
                now[verdict or PENDING] += count
                models.add(model)
            edited = () if number else differences
            late = models - judged
            if number and differences:
                since = f"since the edit in run {short(version.results[0][0].id)}"
                edited = tuple(
                    Difference(f"first results of {it} {since}")
                    for it in sorted(late & participants.models)
                )
            judged |= models
            part = ComparedPart(version.path, version.rows[leaf])
            compared = None
            if last not in ("", leaf) and (has_labels or sums[leaf] != sums[last]):
                compared = find_verdict_changes(store, folder, run, None, part)
                edited += tuple(map(Difference, sorted(compared.labels if compared else ())))
            is_judged = now[PENDING] < pending and _are_judged(store, last, leaf, part.rows)
            last, pending = leaf, now[PENDING]
            if now:
                found = participants.step(
                    run,
                    models,
                    file=files[version.node],
                    with_temperature=traits.default_temperature,
                    with_evaluators=traits.judged_by_models,
                )
                edited += tuple(edit for _, edit in found)
            has_others = compared is not None and compared.has_other_verdicts
            if not number or edited or late or is_judged or has_others:
                no_edit = ""
                if not edited:
                    joined = ", ".join(clip(name, 40) for name in sorted(late))
                    causes = {cause for cause, _ in compared.change_causes} if compared else set()
                    reasons = (
                        ", ".join(sorted(filter(None, causes))),
                        f"first results of {joined}" * bool(late),
                        "pending results, now judged" * is_judged,
                    )
                    no_edit = next(filter(None, reasons), "other results")
                entry = LogEntry(run, order_counts(now), edited, no_edit=no_edit, part=part)
                changes.append(replace(entry, outcome=compared.outcome if compared else None))
    return [*([_removed(gone, file)] if gone and changes else []), *changes[::-1]]


def _removed(run: Run, file: str) -> LogEntry:
    return LogEntry(run, _NO_COUNTS, (Difference("removed"),), part=ComparedPart(file, ()))


def follow_row(
    nodes: Sequence[str], files: Mapping[str, CaseFile], store: Store, find_row: FindRow
) -> dict[str, tuple[Case, ...]]:
    """Return the case of a row in each version of a file, none where it is absent.

    `nodes` are the versions, oldest first. The row is that of the newest version with the label
    that is looked for, else of the newest one; its older and newer versions have its values, or
    its label.
    """
    distinct = list(dict.fromkeys(nodes[::-1]))
    label, start = find_row([files[node] for node in distinct])
    named = store.find_named_cases(files[distinct[start]], {label})
    case = next(case for case in named if case.row == label)
    followed: dict[str, tuple[Case, ...]] = {}
    for numbers in (range(start, len(distinct)), range(start - 1, -1, -1)):
        known = case
        for number in numbers:
            found = RowIndex(files[distinct[number]], store).find(known)
            followed[distinct[number]] = (found,) if found else ()
            known = found or known
    return followed


class SeenRun(NamedTuple):
    """A run, and what it has of a test file."""

    run: Run
    path: str
    """That of the file then."""
    node: str
    """Its cases; empty if it was absent."""
    leaf: str
    """Its results; empty unless the run covered it."""


def follow_runs(store: Store, file: str, folder: str) -> list[SeenRun]:
    """Return the runs, oldest first, from the first that has a test file on.

    `file` is its path in the newest of those that have it.
    """
    runs = store.find_runs()
    followed = [*follow_file(store, runs, file, folder)]
    both = zip(runs, followed, strict=True)
    covered = ((path, run.results) for run, (path, node) in both if node is not None)
    leaves = find_leaves(covered, store.load_nodes)
    seen = [
        SeenRun(run, path, node or "", leaves.get((path, run.results), "") if node else "")
        for run, (path, node) in zip(reversed(runs), reversed(followed), strict=True)
    ]
    return [*dropwhile(lambda each: not each.node, seen)]


def _find_runs(
    store: Store, file: str, folder: str
) -> tuple[list[SeenRun], dict[str, Run], Run | None]:
    """Return the runs that have a test file, oldest first, and the first runs without it.

    These are by the id of the run that has the file again, and the one since which it is gone.
    """
    seen: list[SeenRun] = []
    removed: dict[str, Run] = {}
    gone: Run | None = None
    for each in follow_runs(store, file, folder):
        if each.node:
            if gone:
                removed[each.run.id], gone = gone, None
            seen.append(each)
        elif each.run.origin is None:
            gone = gone or each.run
    return seen, removed, gone


def _group(
    seen: Iterable[SeenRun], files: Mapping[str, CaseFile], removed: Container[str], *, is_row: bool
) -> Iterator[_Version]:
    """Yield the versions of a test file, or of one of its rows, oldest first."""

    def is_same(was: str, now: str) -> bool:
        if is_row:
            return _without_labels(files[was]) == _without_labels(files[now])
        return bool(find_same(now, files[now], {was: files[was]}))

    def has_case(node: str) -> bool:
        return not is_row or bool(files[node].cases)

    version: _Version | None = None
    for run, path, node, leaf in seen:
        is_renamed = version is not None and version.path != path and has_case(node)
        is_back = run.id in removed
        if version is None or is_renamed or is_back or not is_same(version.node, node):
            if version:
                yield version
            version = _Version(run, path, node)
        if leaf:
            version.results.append((run, leaf))
            version.rows[leaf] = {case.row for case in files[node].cases} if is_row else set()
    if version:
        yield version


def _without_labels(file: CaseFile) -> CaseFile:
    """Return a file without what changes no id: the labels and tags of its cases."""
    cases = tuple(case._replace(row="", key="", tags=()) for case in file.cases)
    return replace(file, cases=cases)


def _find_edits(
    store: Store,
    versions: list[_Version],
    files: Mapping[str, CaseFile],
    name: Name,
    removed: Container[str],
) -> Iterator[tuple[Difference, ...]]:
    """Yield the edits of each version since the previous one."""
    pairs = list(pairwise(versions))
    compared = {now.run.id: (files[was.node], files[now.node]) for was, now in pairs}
    find = SourcesReader(store).find
    changes = {
        now.run.id: compare_sources(find(last), find(now.run), now.path, was.path)
        for was, now in pairs
        for last in [was.results[-1][0] if was.results else was.run]
    }
    edits = find_edits(VersionReader(store), compared, store, name, changes)
    if versions:
        yield (Difference("new"),)
    for was, now in pairs:
        differences = edits[now.run.id]
        if was.path != now.path:
            differences = [Difference(RENAMED, was.path, now.path), *differences]
        if now.run.id in removed:
            differences = [Difference("restored"), *differences]
        yield tuple(differences or [Difference("no change in content")])


def _are_judged(store: Store, was: str, now: str, rows: Collection[str]) -> bool:
    """Return whether pending results of a leaf have a verdict in another one, of some or all rows.

    Results of other rows have other verdicts, too, but do not tell of these.
    """
    old, new = (chain.from_iterable(iterate_entries(store, {"": it})) for it in (was, now))
    pending = {it.cell for it, _ in old if it.is_missing and (not rows or it.row in rows)}
    return any(it.verdict and it.cell in pending for it, _ in new)


PENDING = "pending"


def count_leaves(store: Store, leaves: Collection[str]) -> dict[str, VerdictCounts]:
    """Return how many results each of these leaves of files has, by candidate and verdict."""
    parts = _find_parts(store, leaves)
    counts = store.count_by_candidate({*chain.from_iterable(parts.values())})
    return {
        leaf: sum((counts[part] for part in of if part in counts), VerdictCounts())
        for leaf, of in parts.items()
    }


def sum_leaves(store: Store, leaves: Collection[str]) -> dict[str, int]:
    """Return equal numbers for those of these leaves of files with equal verdicts on all cases."""
    parts = _find_parts(store, leaves)
    sums = store.sum_verdicts({*chain.from_iterable(parts.values())})
    return {leaf: sum(sums[part] for part in of) for leaf, of in parts.items()}


def _find_parts(store: Store, leaves: Collection[str]) -> dict[str, list[str]]:
    levels = store.find_levels(leaves)
    return {
        leaf: [leaf] if levels.get(leaf) == 0 else [it.id for it in store.find_result_leaves(leaf)]
        for leaf in leaves
    }
