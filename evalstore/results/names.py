"""The names of cases, of system prompts, and of what checks refer to, also on command lines."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evalstore.comparison.comparison import former_prompts, prompts_compared
from evalstore.comparison.pair_groups import PlacedResults
from evalstore.core.deserialize import restore_messages
from evalstore.core.display import safe, short
from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.core.values import Case, CaseFile, Json, Result
from evalstore.files.access import LARGEST_TEXT, normalise
from evalstore.files.datasets import read_spec, resolve_path
from evalstore.files.yaml12 import split_frontmatter
from evalstore.planning.cell_results import CellResult
from evalstore.planning.open_project import open_catalogue, open_workspace
from evalstore.planning.options import Location
from evalstore.planning.path_history import SourceChanges, compare_sources
from evalstore.planning.project import Project
from evalstore.results.value_text import text_of
from evalstore.store.results import SourcesReader
from evalstore.store.trees.tree_nodes import find_entry
from evalstore.workspace.folder import WorkspaceFolder, default_id
from evalstore.workspace.index import read_dependencies, read_used_prompts
from evalstore.workspace.testfiles.parser import parse_prompt, read_test
from evalstore.workspace.testfiles.replacements import name_id, shorten_value

if TYPE_CHECKING:
    from evalstore.planning.settled_parts import SettledParts


_FEWEST_DIGITS = 4
"""The least number of digits of a shortened id."""
_COMPARED = 5_000
"""The characters of a prompt that are compared with other prompts."""
_MOST_COMPARED = 2_000
"""The most pairs of prompts that are compared."""
_SIMILAR = 0.75
"""From this similarity on, 0 to 1, an older prompt has the name of a current one.

Prompts of one workspace often have sentences in common, so that less would confuse them."""
_LISTED = 5
"""The most names in a hint."""


def name_prompts(location: Location, ids: Collection[str | None]) -> dict[str | None, str]:
    """Return the current names of system prompts, else the first digits of their ids.

    No file is read when there are no ids.
    """
    if not ids:
        return {}
    with suppress(EvalstoreError), open_catalogue(location) as project:
        return label_prompts(project, dict.fromkeys(ids))
    return {id: "no prompt" if id is None else id[:8] for id in ids}


def name_references(
    location: Location, references: Iterable[tuple[str, str]]
) -> dict[str | None, str]:
    """Return the current names of the prompts and schemas that checks refer to, by id.

    No file is read when there are none.
    """
    if listed := [*references]:
        with suppress(EvalstoreError), open_catalogue(location) as project:
            return reference_names(project, listed)
    return {}


def reference_names(
    project: Project, references: Iterable[tuple[str, str]]
) -> dict[str | None, str]:
    """Return the current names of these versions, each a kind and an id; by id."""
    names = {id: project.name_of_version(kind, id) for kind, id in references}
    return {id: name for id, name in names.items() if name}


class PromptPlace(NamedTuple):
    """A system prompt of some cases of a test file."""

    file: str
    prompt: str | None
    prompt_number: int
    """The number of the prompt within the cases."""


def settled_places(settled: SettledParts) -> Iterator[PromptPlace]:
    """Yield the system prompts of the cases of settled parts."""
    for path, _, part in settled.places():
        for prompt, number in part.prompts:
            yield PromptPlace(path, prompt, number)


def places_in(results: PlacedResults) -> Iterator[PromptPlace]:
    """Yield the system prompts of the results of a side, each of a file once."""
    for (file, prompt), number in results.prompts.items():
        yield PromptPlace(file, prompt, number)


def prompt_labels(
    project: Project, places: Iterable[CellResult | Result | PromptPlace]
) -> dict[str, dict[str | None, str]]:
    """Return the name of each system prompt, for test files whose cases have several.

    All results of a file must be among the places.
    """
    prompts: dict[str, dict[str | None, int]] = {}
    for place in places:
        cell = place.cell if isinstance(place, CellResult) else place
        prompts.setdefault(cell.file, {})[cell.prompt] = cell.prompt_number
    several = {file: numbers for file, numbers in prompts.items() if any(numbers.values())}
    older = _older(project, {id for numbers in several.values() for id in numbers})
    nearest = _find_nearest(project, older)
    return {file: _label(project, numbers, nearest) for file, numbers in several.items()}


def label_prompts(
    project: Project, prompts: Mapping[str | None, int | None]
) -> dict[str | None, str]:
    """Return the names of system prompts; `prompts` has the number of each within its case.

    An older version of a prompt has the name of the current one that it was or is most like, unless
    a prompt of another number has that name. Without a name it has the start of its id.
    """
    return _label(project, prompts, _find_nearest(project, _older(project, prompts)))


def name_prompts_of_cases(
    project: Project, cases: Iterable[Case]
) -> dict[tuple[str | None, ...], dict[str | None, str]]:
    """Return the names of the system prompts of cases, as `label_prompts` does, by these prompts.

    Older versions of many cases are looked up together.
    """
    lists = {case.prompts for case in cases}
    nearest = _find_nearest(project, _older(project, {id for ids in lists for id in ids}))
    return {
        ids: _label(project, {id: number for number, id in enumerate(ids)}, nearest)
        for ids in lists
    }


def name_prompts_of_run(project: Project, prompts: Iterable[str | None]) -> dict[str | None, str]:
    """Return the names of the system prompts of one run, as `label_prompts` does.

    Two of them never have the same name, as they are different prompts.
    """
    ids = dict.fromkeys(prompts)
    return label_prompts(project, {id: number for number, id in enumerate(ids)})


def _older(project: Project, prompts: Iterable[str | None]) -> list[str]:
    """Return the prompts that are not versions of a current one, sorted."""
    return sorted(id for id in prompts if id and not project.place_of_version("prompt", id))


def _label(
    project: Project, prompts: Mapping[str | None, int | None], nearest: Mapping[str, str]
) -> dict[str | None, str]:
    """Return the names of prompts as `label_prompts` does; `nearest` has the current prompts."""
    names = {id: prompt_label(project, nearest.get(id or "", id)) for id in prompts}
    older = _older(project, prompts)
    owners = {names[id]: prompts[id] for id in prompts.keys() - set(older)}
    for id in older:
        number = prompts[id]
        if number is not None and owners.setdefault(names[id], number) != number:
            names[id] = id[:8]
    return names


def _find_nearest(project: Project, older: Collection[str]) -> dict[str, str]:
    """Return the current prompts that older versions are similar to, by the ids of these.

    The version that the last run has used counts as the current one, however much is edited since.
    """
    current = [id for ids in project.reading.names.get("prompts", {}).values() for id in ids]
    if not older or not current:
        return {}
    used = read_used_prompts(project.workspace.private, project.workspace.boundary)
    names = project.reading.names["prompts"]
    edited = (zip(was, names[name], strict=False) for name, was in used.items() if name in names)
    now = {**dict(chain.from_iterable(edited)), **{id: id for id in current}}
    nearest = {id: now[id] for id in older if id in now}
    if len(now) * len(older) <= _MOST_COMPARED:
        nearest |= _find_similar(project, now, set(older) - nearest.keys())
    if left := set(older) - nearest.keys():
        known = {**nearest, **now}
        _follow_edits(project, known, left)
        nearest |= {id: known[id] for id in left & known.keys()}
    return nearest


def _find_similar(project: Project, now: Mapping[str, str], older: set[str]) -> dict[str, str]:
    """Return the current prompts that older versions are similar to."""
    from rapidfuzz import process  # takes a moment, and most pages do not need it
    from rapidfuzz.distance import Indel

    contents = project.versions.load("prompt", [*now, *older])
    texts = {id: prompt_text(content)[:_COMPARED] for id, content in contents.items()}
    others = {id: texts[id] for id in now if id in texts}
    nearest = {}
    for id in texts.keys() & older:
        best = process.extractOne(
            texts[id], others, scorer=Indel.normalized_similarity, score_cutoff=_SIMILAR
        )
        if best:
            nearest[id] = now[best[2]]
    return nearest


def _follow_edits(project: Project, known: dict[str, str], older: set[str]) -> None:
    """Add the former versions of known prompts in earlier runs to the known ones.

    Where the test file was edited, too, they are those of a prompt whose file was edited.
    """
    store, find = project.store, SourcesReader(project.store).find
    names = {id: name for name, ids in project.reading.names["prompts"].items() for id in ids}
    for newer, run in pairwise(store.find_recent_runs()):
        if older <= known.keys():
            break
        now, was = find(newer), find(run)
        if not now or not was or now == was:
            continue
        places: dict[SourceChanges, str] = {}
        for path, digests in now.tests.items():
            changes = None if was.of(path) == digests else compare_sources(was, now, path)
            if changes and any(" prompt " in name for name in changes.edited):
                places.setdefault(changes, path)
        for changed, path in places.items():
            leaves = find_entry([run.snapshot, newer.snapshot], path, store.load_nodes)
            files = store.find_case_files(leaves.values())
            if len(files) < 2 or not all(file.cases for file in files.values()):
                continue
            old, new = (files[leaves[it.snapshot]].cases[0] for it in (run, newer))
            for kind, before, after in prompts_compared(old, new):
                edited = [it for it in former_prompts(before, after).items() if it[0] != it[1]]
                is_one = len(edited) == len(changed.names_of(f"{kind} ")) == 1
                for id, former in edited if len(before) == len(after) else ():
                    current = known.get(id or "", "")
                    is_edit = is_one or not changed.uses_another(kind, names.get(current, ""))
                    if former and current and is_edit:
                        known.setdefault(former, current)


class PromptNames:
    """Names the versions of edits; the names are read when the first one is looked up.

    An older prompt has the name of the current one that it was or is most like, unless a prompt of
    another number has that name.
    """

    def __init__(self, location: Location, project: Project | None = None) -> None:
        """Without a `project` one is opened for the names of versions."""
        self._location, self._project = location, project
        self._expected: Iterable[tuple[str | None, int]] = ()
        self._names: dict[tuple[str, str], str] | None = None
        """By kind and id."""

    def expect(self, prompts: Iterable[tuple[str | None, int]]) -> None:
        """Set the prompts that are looked up, each with its number in its case."""
        self._expected = prompts
        self._names = None

    def __call__(self, kind: str, id: str) -> str | None:
        """Return the name of a version; None for one without a name."""
        if self._names is None:
            self._names = {}
            opened = nullcontext(self._project) if self._project else open_catalogue(self._location)
            with suppress(EvalstoreError), opened as project:
                self._names = self._read(project)
        return self._names.get((kind, id))

    def _read(self, project: Project) -> dict[tuple[str, str], str]:
        names = {
            (kinds.removesuffix("s"), id): name
            for kinds, named in project.reading.names.items()
            for name, ids in named.items()
            for id in ids
        }
        numbers: dict[str, set[int]] = {}
        for prompt, number in self._expected:
            if prompt:
                numbers.setdefault(prompt, set()).add(number)
        owners: dict[str, set[int]] = {}
        older = [id for id in numbers if ("prompt", id) not in names]
        for id in numbers.keys() - {*older}:
            owners.setdefault(names["prompt", id], set()).update(numbers[id])
        nearest = _find_nearest(project, older)
        for id in older:
            name = names.get(("prompt", nearest.get(id, "")))
            if name and not numbers[id].isdisjoint(owners.setdefault(name, numbers[id])):
                names["prompt", id] = name
        return names


def prompts_of(files: Iterable[CaseFile]) -> Iterator[tuple[str | None, int]]:
    """Yield the prompts of the cases of test files, each with its number in its case."""
    for file in files:
        for case in file.cases:
            for prompts in (case.prompts, case.judge_prompts):
                yield from ((id, number) for number, id in enumerate(prompts))


def prompt_text(prompt: Json) -> str:
    """Return the text of a prompt version."""
    messages = restore_messages(prompt["messages"])
    return "\n".join(text_of(message.parts) for message in messages)


def name_field(prompts: Mapping[str, Mapping[str | None, str]], result: Result) -> dict[str, str]:
    """Return the name of the system prompt as a field of JSON; empty if its file has only one.

    `prompts` has the names by file and id, as `prompt_labels` returns them.
    """
    name = prompts.get(result.file, {}).get(result.prompt)
    return {} if name is None else {"promptName": name}


def prompt_label(project: Project, prompt: str | None) -> str:
    """Return the current name of a system prompt, else the start of its id."""
    if prompt is None:
        return "no prompt"
    place = project.place_of_version("prompt", prompt)
    if place is None:
        return prompt[:8]
    name, number = place
    return name if len(project.reading.names["prompts"][name]) == 1 else f"{name} {number + 1}"


def find_prompt(names: Mapping[str | None, str], named: str) -> str | None:
    """Return the id of the system prompt with a name, or with the first digits of its id.

    `names` is by id; the id None is that of no prompt. Raises `EvalstoreError`.
    """
    ids = [id for id, name in names.items() if name == named]
    if not ids and len(named) >= _FEWEST_DIGITS:
        ids = [id for id in names if id and id.startswith(named)]
    if len(ids) != 1:
        raise EvalstoreError(
            f"no system prompt is called '{named}'",
            hint=f"name one with --prompt: {list_names(names.values())}",
        )
    return ids[0]


def list_names(names: Iterable[str]) -> str:
    """Return the first of the names in their order, for a hint."""
    listed = sorted(set(names))
    return ", ".join(listed[:_LISTED]) + (", …" if len(listed) > _LISTED else "")


WITH_PROMPT = re.compile(r"(?P<case>.+?)(?:::| )\((?P<prompt>[^()]+)\)", re.DOTALL)
"""Matches a case with several system prompts as commands print it."""
_REVISION = re.compile(
    r"(?P<revision>@(?:work|~\d+)?|(?:@\{[^{}]+\}|[A-Za-z0-9][\w.-]+)(?:~\d*)?):(?!:)(?P<case>.+)",
    re.DOTALL,
)


class CaseReference(NamedTuple):
    """The name of a case: `[REV:]FILE::ROW`, or as it is printed."""

    case: str
    """`FILE`, `FILE::ROW` or `FILE [ROW]`."""
    revision: str | None = None
    prompt: str | None = None
    """The name of the system prompt, if it is printed behind the case."""


def read_reference(text: str, *, files: bool = False) -> CaseReference | None:
    """Return the case that a text names; None when it names something else, such as a run.

    With `files`, `REV:FILE` names the cases of the file in a run.
    """
    match = _REVISION.fullmatch(text)
    revision, case = (match["revision"], match["case"]) if match else (None, text)
    printed = WITH_PROMPT.fullmatch(case)
    if printed:
        return CaseReference(printed["case"], revision, printed["prompt"])
    if "::" in case or (" [" in case and case.endswith("]")):
        return CaseReference(case, revision)
    if (files and revision) or (revision is None and case.endswith(".md")):
        return CaseReference(case, revision)
    return None


def show_answer(session: str, root: Path, start: Path) -> str:
    """Return the command that shows an answer; it works in the folder `start`, too.

    `root` is the folder of the workspace, which commands find in and below it.
    """
    start, root = start.resolve(), root.resolve()
    words = ["evalstore"]
    if not start.is_relative_to(root):
        words += ["-C", str(root.relative_to(start) if root.is_relative_to(start) else root)]
    return shlex.join([*words, "show", short(session)])


def show_command(result: Result, prompt: str = "", *, names_model: bool = True) -> str:
    """Return the command that shows why a result has its verdict.

    `prompt` is the name of its system prompt when the case has several.
    """
    case = f"{result.file}::{result.row}" if result.row else result.file
    words = ["evalstore", "show", case]
    words += ["-m", result.model] if names_model else []
    words += ["--prompt", prompt] if prompt else []
    return shlex.join(words)


_LONGEST = 2_000
"""The most characters of a text of a model in the error of a test."""


def shortened(text: str) -> str:
    """Return a text of a model as the error of a test shows it; its further lines are indented."""
    shown = safe(text[:_LONGEST], lines=True) + ("…" if len(text) > _LONGEST else "")
    return shown.replace("\n", "\n    ")


class EditPlace(NamedTuple):
    """What is to be edited: a test file, and the case that it is about."""

    file: str
    line: int | None = None
    """The line of a problem; only this file is meant then."""
    prompt: str | None = None
    """The version id of the system prompt of the case."""


class EditableFile(NamedTuple):
    """A file of the workspace that decides a case."""

    kind: str
    path: str
    line: int | None = None


def find_editable_files(location: Location, place: EditPlace) -> list[EditableFile]:
    """Return the files that decide a case, its test file first."""
    files = [EditableFile("test file", place.file, place.line)]
    if place.line is None:
        workspace = open_workspace(location)
        if data := _find_data_file(workspace, place.file):
            files.append(EditableFile("data file", data))
        # The system prompt of the case, or all those of the test file, and judge prompts.
        depends = read_dependencies(workspace.private, workspace.boundary, place.file)
        named = [(*key.partition(":")[::2], ids) for key, ids in depends.items()]
        systems = {name: ids for kind, name, ids in named if kind == "prompt"}
        own = [name for name, ids in systems.items() if place.prompt and place.prompt in ids]
        judges = dict.fromkeys(name for kind, name, _ in named if kind == "evaluator")
        judges |= dict.fromkeys(judge.prompt for judge in workspace.settings.evaluators)
        folder, paths = workspace.settings.paths["prompts"], dict[str, str]()
        for path in workspace.find_files("prompts") if systems or judges else ():
            id = default_id(path, folder)  # of one with errors
            with suppress(FileProblem):
                id = parse_prompt(
                    path, normalise(workspace.read_bytes(path, LARGEST_TEXT)), folder
                ).id
            paths.setdefault(id, path)
        for kind, names in (("system prompt", own or systems), ("judge prompt", judges)):
            for name in names:
                if name in paths:
                    files.append(EditableFile(kind, paths[name]))
    return list(dict.fromkeys(files))


def _find_data_file(workspace: WorkspaceFolder, test: str) -> str | None:
    """Return the data file that a test file names now; None if it names none or cannot be read."""
    with suppress(EvalstoreError, FileProblem, OSError, ValueError, KeyError):
        document, *_ = split_frontmatter(normalise(workspace.read_bytes(test, LARGEST_TEXT)))
        if document is None or "dataset" not in document.value:
            return None
        spec = read_spec(document.at("dataset"))
        named = resolve_path(spec, workspace.settings.dataset_roots)
        base = workspace.root if named != spec.path else (workspace.root / test).parent
        return workspace.name_of((base / named).resolve())
    return None


# --- finds the line of a test file that a case comes from


class TestLines:
    """The lines of cases in the test files as they are now; reads a file once in a row."""

    def __init__(self, workspace: WorkspaceFolder) -> None:
        self._workspace = workspace
        self._path: str | None = None
        self._first = 1
        self._values: dict[str, int] = {}

    def find(self, path: str, row: str = "") -> int:
        """Return the line of the row's value, else that of the first message.

        1 when the file is gone or cannot be read.
        """
        if path != self._path:
            self._path = path
            self._read(path)
        return self._values.get(row, self._first)

    def _read(self, path: str) -> None:
        self._first, self._values = 1, {}
        try:
            text = normalise(self._workspace.read_bytes(path, LARGEST_TEXT))
            test, _ = read_test(path, text)
        except (FileProblem, EvalstoreError):
            return
        self._first = test.first_line
        for item in test.replacements:
            for name, values in item.items():
                shorten = name_id if name == test.row_id else shorten_value
                for value in values:  # it labels a row on its own, as `city=Oslo`
                    self._values.setdefault(f"{name}={shorten(value.text)}", value.line)
