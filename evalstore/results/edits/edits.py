"""Finds what was edited between two runs: test files and what they use, candidates and judges.

The parts of long files that are the same as before need not be read. Judgements differ by a label,
another evaluator, or neither.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from evalstore.comparison.comparison import (
    EXCHANGED,
    Pair,
    PairedCases,
    differ_otherwise,
    differ_pair,
    prompts_compared,
    versions_compared,
)
from evalstore.comparison.version_diff import (
    TOKEN_LIMIT,
    VERDICTS_WANTED,
    Candidates,
    Difference,
    Find,
    Name,
    candidates_after,
    differ_candidate,
    differ_candidates,
    nowhere,
    number_change,
)
from evalstore.core.batches import in_batches
from evalstore.core.display import plural
from evalstore.core.runs import Run
from evalstore.core.values import Case, CaseFile, Json
from evalstore.files.temporary_list import keep_values
from evalstore.planning.cell_results import LeafBuilder
from evalstore.planning.options import SelectionOptions
from evalstore.planning.path_history import ROWS, SourceChanges, as_replaced, name_edited
from evalstore.planning.project import Project, VersionReader
from evalstore.planning.reasons import Reason, describe_evaluator_change
from evalstore.planning.settled_parts import SettledParts, find_settled
from evalstore.planning.status_report import SettingEdit, compute_workspace, workspace_as_run
from evalstore.store import Store
from evalstore.store.trees.tree_nodes import StoredCases, find_entry, long_parts_of, read_tree
from evalstore.workspace.testfiles.context import shows_question

if TYPE_CHECKING:
    from evalstore.results.names import PromptNames


def find_unchanged_parts(project: Project, selection: SelectionOptions) -> SettledParts:
    """Return the settled parts of which there is nothing to tell since the last run.

    Their cases are in the same file of the last run, and their results in the newest run with
    results of the file. There are none when people gave labels since: these are counted case by
    case.
    """
    store, nodes, load = project.store, project.reading.nodes, project.store.load_nodes
    last = store.find_runs(limit=1)
    settled = find_settled(project, selection) if last else SettledParts()
    if not settled:
        return settled
    labels = store.find_labels()
    if labels and labels[-1].at > last[0].ended:
        return SettledParts()
    root = last[0].snapshot
    before = {path: find_entry([root], path, load).get(root) for path in settled.by_file}
    waiting = {path: leaf for path, leaf in before.items() if leaf}
    unchanged: list[tuple[str, int]] = []
    for run in store.find_recent_runs() if waiting else ():
        for path in sorted(waiting):
            leaf = find_entry([run.results], path, load).get(run.results)
            if leaf:
                ids, node = find_parts(store, {leaf}), waiting.pop(path)
                content = store.load_cases([node])[node] if node != nodes[path] else None
                cases = {*long_parts_of(content, store.load_cases)} if content else None
                unchanged += [
                    (path, first)
                    for first, part in settled.of(path).items()
                    if part.results in ids and (cases is None or part.node in cases)
                ]
        if not waiting:
            break
    return settled.only(unchanged)


def find_unedited_run(project: Project) -> Run | None:
    """Return the last run unless files, settings or labels changed since; nothing is planned."""
    store = project.store
    last = store.find_runs(limit=1)
    if not last or last[0].snapshot != project.snapshot()[0]:
        return None
    now = workspace_as_run(project)
    ids, current = ({each.id for each in run.candidates} for run in (last[0], now))
    edits = differ_participants(last[0], now, project.versions.find, project.name_of_version)
    is_edited = ids != current or any(edits) or store.count_labels()[1] > last[0].ended
    return None if is_edited else last[0]


def find_equal_run(project: Project) -> Run | None:
    """Return the last run if a run of the workspace would store the very results of it.

    It would not after a label, also one that agrees with the judges.
    """
    from evalstore.planning.planner import resolve_scope

    store, every = project.store, SelectionOptions()
    last = find_unedited_run(project)
    if last is None:
        return None
    scope = resolve_scope(project, every, settled=find_unchanged_parts(project, every))
    leaves = LeafBuilder(project.reading, store.load_cases, scope.settled)
    for _, results in compute_workspace(project, scope):
        leaves.add(results)
        leaves.forget()
    is_equal = leaves.finish_all() == read_tree(last.results, store.load_nodes)
    return last if is_equal else None


def find_parts(store: Store, leaves: Collection[str]) -> set[str]:
    """Return the ids of the results of the parts of long files with these results."""
    roots = store.load_leaves(leaves).values() if leaves else ()
    return {id for root in roots for id in long_parts_of(root, store.load_leaves)}


def leave_out_same(was: CaseFile, now: CaseFile, store: Store) -> tuple[CaseFile, CaseFile]:
    """Return two versions of a file without the parts of a long one that both have.

    Such parts stay if some of the other rows have names of theirs, so that these are paired as in
    the whole files.
    """
    if not (isinstance(was.cases, StoredCases) and isinstance(now.cases, StoredCases)):
        return was, now
    old, new = (list(cases.smallest_parts()) for cases in (was.cases, now.cases))
    same = {part.node for part in old} & {part.node for part in new}
    if not same:
        return was, now
    kept, others = ([part for part in parts if part.node not in same] for parts in (old, new))
    same = store.find_apart(same, (part.node for part in (*kept, *others)))
    before, after = (
        keep_values(
            cases.read(part for part in parts if part.node not in same), tuple, restore_case
        )
        for cases, parts in ((was.cases, old), (now.cases, new))
    )
    return replace(was, cases=before), replace(now, cases=after)


def restore_case(values: Sequence[Any]) -> Case:
    """Return a case that was kept as JSON."""
    return Case._make(tuple(each) if isinstance(each, list) else each for each in values)


CASES = "cases of "
"""Begins the name of a test file of which it is not known what was edited."""
_IN_CHECK = re.compile(r"check \d+ changed: (schema|judge prompt)\b")
"""Begins a difference of a check that uses something which another difference names."""
Prompts = tuple["str | None", ...]


def pair_prompts(before: CaseFile, after: CaseFile) -> set[tuple[Prompts, Prompts]]:
    """Return the system prompts of the cases at the same places of two versions of a file."""
    if isinstance(before.cases, StoredCases) and isinstance(after.cases, StoredCases):
        # All cases of a long file are rows of one test file, so they have the same ones.
        return {(before.cases[0].prompts, after.cases[0].prompts)}
    pairs = zip(before.cases, after.cases, strict=False)
    return {(was.prompts, now.prompts) for was, now in pairs}


def name_by_bytes(path: str, changes: SourceChanges | None) -> tuple[str, ...]:
    """Return what was edited, by whose bytes differ, such as `rows of tests/data/letters.csv`.

    The path of a test file is the first name if it was edited; if neither it nor what it uses was,
    or it is not known, it is `cases of` its path.
    """
    test = (path,) if changes and changes.is_test_edited else ()
    return (*test, *(changes.edited if changes else ())) or (f"{CASES}{path}",)


# --- finds the edits of test files: the first difference of each kind


_OF_USED = re.compile(
    r"(?:conversation \d+, )?(?P<name>(?:file|tool|schema) .+?) changed(?:: (?P<rest>.*))?$",
    re.DOTALL,
)
"""A difference that is an edit of something that the test file uses."""
_TOLD = re.compile(r"(?P<kind>schema|judge prompt) .+?(?: changed)?: (?P<rest>.+)", re.DOTALL)
_TOLD_BY_CHECK = re.compile(
    r"check \d+ changed: (?P<kind>schema|judge prompt)(?:, (?P<rest>.+))?$", re.DOTALL
)
"""An edit of something that checks use, and the same as an edit of a check."""
RENAMED = "renamed"
PROMPT_EDITS = ("system prompt ", "judge prompt ")
"""Beginnings of the differences that are edits of a prompt and not of the test file."""


class _Compared(NamedTuple):
    """Two versions of a case of a file, or a difference of the file besides these."""

    file: str
    was: Case | None = None
    now: Case | None = None
    other: Difference | None = None


def find_edits(
    versions: VersionReader,
    files: Mapping[str, tuple[CaseFile, CaseFile]],
    store: Store,
    name: Name = nowhere,
    changes: Mapping[str, SourceChanges | None] | None = None,
    *,
    is_reversed: bool = False,
) -> dict[str, Sequence[Difference]]:
    """Return the differences between two versions of each file, reading contents in batches.

    Parts of a long file that both versions have are not read.

    Of equal edits of several rows only the first is listed. One that is filled in otherwise in
    other rows names its row. `changes` tell whose bytes differ. With `is_reversed` the first
    versions are the newer ones, whose names count, and `changes` those from the other ones to them.
    """
    known = changes or {}
    found = {file: EditKinds(len(now.cases)) for file, (_, now) in files.items()}

    def compared() -> Iterator[_Compared]:
        for file, pair in files.items():
            was, now = leave_out_same(*pair, store)
            paired = PairedCases(was, now)
            yield from (_Compared(file, *cases) for cases in paired)
            others = differ_otherwise(was, now, paired.gone())
            yield from (_Compared(file, other=other) for other in others)

    for batch in in_batches(compared()):
        versions.read_ahead(
            version
            for each in batch
            if each.was and each.now
            for version in versions_compared(each.was, each.now)
        )
        for file, was, now, other in batch:
            if other:
                found[file].append(other)
            if now:
                change, named = known.get(file), name
                older, newer = (now, was) if is_reversed else (was, now)
                for kind, old, new in prompts_compared(older, newer) if older and newer else ():
                    named = name_edited(named, change, old, new, kind)
                is_same = change is not None and not change.is_test_edited
                for difference in differ_pair(was, now, versions.find, named, is_same_list=is_same):
                    replaced = as_replaced(difference, change, is_reversed=is_reversed)
                    found[file].add(replaced, now.row)
    return {file: _without_repeated(kinds.listed()) for file, kinds in found.items()}


def _without_repeated(edits: Sequence[Difference]) -> Sequence[Difference]:
    """Return edits without those of checks that say again how a prompt or a schema was edited.

    A check names no lines of its schema, so it is left out only where nothing else was edited.
    """
    told, kinds = set[tuple[str | None, ...]](), set[str]()
    for each in edits:
        if match := _TOLD.match(each.subject):
            told.add((match["kind"], match["rest"], each.was, each.now))
            kinds.add(match["kind"])
    if not kinds:
        return edits
    is_schema_alone = len(edits) == 2 and kinds == {"schema"}
    return [
        each
        for each in edits
        if not (match := _TOLD_BY_CHECK.match(each.subject))
        or not (
            (match["kind"], match["rest"], each.was, each.now) in told
            or (is_schema_alone and match["kind"] == "schema")
        )
    ]


def by_subject(
    edits: Mapping[str, Iterable[Difference]], sources: Mapping[str, Sequence[str]]
) -> Mapping[str, Sequence[Difference]]:
    """Return the edits by what was edited: a test file, or a named prompt, once for all files.

    `sources` are the names of what was edited, by test file. Where it was not the test file, the
    edits are those of what it uses: a `tool`, or `rows of tests/data/letters.csv`.
    """
    subjects: dict[str, dict[Difference, None]] = defaultdict(dict)
    for file, differences in edits.items():
        names = sources.get(file, (file,))
        for difference in differences:
            text = difference.subject
            prompt, colon, rest = text.partition(": ")
            used = _OF_USED.match(text)
            subject, use = file, _IN_CHECK.match(text)
            if use and file not in names and any(name.startswith(use[1]) for name in names):
                continue  # that is told of what the check uses
            if colon and text.startswith(PROMPT_EDITS):
                subject, text = prompt, rest
            elif file in names or not names or text == RENAMED:
                pass
            elif used and used["name"] in names:
                subject, text = used["name"], used["rest"] or "changed"
            elif text.endswith(EXCHANGED):
                kind = text.removesuffix(f"s{EXCHANGED}")
                subject = ", ".join(it for it in names if it.startswith(kind)) or names[0]
            else:
                subject = next((name for name in names if name.startswith(ROWS)), names[0])
            subjects[subject][replace(difference, subject=text)] = None  # several files may use it
    prompts_last = sorted(subjects, key=lambda it: it.startswith(PROMPT_EDITS))
    return {subject: [*subjects[subject]] for subject in prompts_last}


# --- lists of the edits of test files


@dataclass(slots=True)
class _Kind:
    """The first difference of a kind in the rows of a file."""

    first: Difference
    row: str
    rows: int = 1
    """How many rows have a difference of this kind."""
    differ: bool = False
    """Whether not all of these have the same values."""


class EditKinds:
    """The first difference of each kind in the rows of a file, then differences besides these."""

    def __init__(self, cases: int) -> None:
        """`cases` are how many the file has."""
        self._cases = cases
        self._kinds: dict[str, _Kind] = {}
        self._others: list[Difference] = []

    def add(self, difference: Difference, row: str) -> None:
        """Add a difference of a row."""
        kind = self._kinds.get(difference.subject)
        if kind is None:
            self._kinds[difference.subject] = _Kind(difference, row)
            return
        kind.rows += 1
        kind.differ = kind.differ or kind.first != difference

    def append(self, difference: Difference) -> None:
        """Add a difference besides those of rows, unless one of these is of its kind."""
        if difference.subject not in self._kinds:
            self._others.append(difference)

    def listed(self) -> list[Difference]:
        """Return all; each with its row, if other rows have other values or none at all."""
        listed: list[Difference] = []
        for kind in self._kinds.values():
            subject = kind.first.subject
            is_alone = kind.rows == 1 < self._cases and not subject.startswith("row ")
            if kind.row and (kind.differ or is_alone):
                others = "" if is_alone else f" and {plural(kind.rows - 1, 'other row')}"
                subject = f"{subject} in [{kind.row}]{others}"
            listed.append(replace(kind.first, subject=subject))
        return [*listed, *self._others]


Judgements = tuple[str, ...]
"""The ids of the judgements on one side of a pair."""
LABELLED = "labelled by "
AS_LABEL = "as a label"
NO_LONGER, AGAIN = "no longer counts", "counts again"
"""End what is said of labels that nobody changed: of answers, instructions or checks that were
replaced, or that are back."""


def judgement_changes(
    store: Store,
    versions: VersionReader,
    pairs: Iterable[Pair],
    since: int,
    *,
    shown_questions: set[tuple[Judgements, Judgements]] | None = None,
) -> dict[tuple[Judgements, Judgements], list[str]]:
    """Return how the judgements of both sides differ, in the words of `status --explain`.

    Empty for further judgements by the same evaluators, and left out for those of checks alone. A
    label that is gone was only removed if the same answers are judged by the same instructions and
    checks; else it no longer counts. Else one from before `since`, when the run of the first side
    started, was not given in between: it counts again.

    To `shown_questions` those are added of which a judge is shown more than the answer.
    """
    differing = [
        (pair.was, pair.now)
        for pair in pairs
        if pair.was and pair.now and pair.was.evaluations != pair.now.evaluations
    ]
    made = {id for was, now in differing for id in {*was.evaluations} ^ {*now.evaluations}}
    found = store.find_judgements(made)
    all_makers = {id: (it.vote.evaluator, it.vote.verdict == "none") for id, it in found.items()}
    evaluators = store.load_contents("evaluator", {maker for maker, _ in all_makers.values()})
    named = {id for id, content in evaluators.items() if "human" in content or "model" in content}
    makers = {id: maker for id, maker in all_makers.items() if maker[0] in named}
    if not makers:
        return {}
    sides = {(was.evaluations, now.evaluations): (was, now) for was, now in differing}
    known: dict[tuple[_Makers, _Makers, _Makers, bool], list[str]] = {}
    changes: dict[tuple[Judgements, Judgements], list[str]] = {}
    for (was, now), (older, newer) in sides.items():
        is_same = (older.sessions, older.evaluation) == (newer.sessions, newer.evaluation)
        lost = frozenset(makers[id] for id in was if id in makers and id not in now)
        new = [id for id in now if id in makers and id not in was]
        back = {id for id in new if not is_same and found[id].vote.started < since}
        back = {id for id in back if "human" in evaluators[makers[id][0]]}
        gained = frozenset(makers[id] for id in new if id not in back)
        again = frozenset(makers[id] for id in back)
        if shown_questions is not None and any(
            is_shown_question(versions, evaluators[id]) for id, _ in lost | gained
        ):
            shown_questions.add((was, now))
        key = lost, gained, again, is_same
        if key not in known:
            labels = [*_labels(evaluators, lost, gained, again, is_same=is_same)]
            # Where a person decides, judges may not have been asked.
            is_of_judges = is_same and bool(was and now) and not labels
            others = _evaluators(versions, evaluators, lost, gained, with_rest=is_of_judges)
            known[key] = [*labels, *others]
        changes[was, now] = known[key]
    return changes


def is_judged_otherwise(pair: Pair) -> bool:
    """Return whether other judgements of the same answers have another verdict."""
    was, now = pair.was, pair.now
    if not (was and now and was.verdict and now.verdict and was.verdict != now.verdict):
        return False
    is_same = (was.sessions, was.evaluation) == (now.sessions, now.evaluation)
    return is_same and was.evaluations != now.evaluations


def label_cause(pair: Pair, words: Sequence[str]) -> str:
    """Return `by a label` if one changed a verdict, `by labels` if those of several people did.

    `words` are how the judgements differ. One that was given decides, whatever else was edited;
    one that was removed leaves the rest. One that nobody changed begins or ceases to count by an
    edit: `as a label counts again`.
    """
    first = words[0] if words else ""
    for end in (NO_LONGER, AGAIN):
        if first.endswith(end):
            return f"{AS_LABEL} {end}"
    if first.startswith(LABELLED):
        return (
            "" if pair.has_same_verdict else "by labels" if people_of(words)[1:] else "by a label"
        )
    is_removed = first.startswith(("label of ", "labels of ")) and is_judged_otherwise(pair)
    return "by a removed label" if is_removed else ""


def people_of(words: Sequence[str]) -> list[str]:
    """Return who labelled, of how judgements differ."""
    first = words[0] if words else ""
    return first.removeprefix(LABELLED).split(", ") if first.startswith(LABELLED) else []


def judging_causes(
    pair: Pair, criteria: Sequence[str], words: Sequence[str], *, has_same_answer: bool
) -> list[str]:
    """Return what explains another verdict whatever was asked; empty if nothing does.

    That is a label, or if the answers are the same, the edits of the `criteria` and how the
    judgements differ, in `words`.
    """
    first = words[0] if words else ""
    if pair.has_same_verdict or first.endswith((NO_LONGER, AGAIN)):
        return []
    if first.startswith(LABELLED):
        return [first]
    return [*criteria, *words] if has_same_answer else []


_Maker = tuple[str, bool]
"""The evaluator of a judgement, and whether the judgement removes a label."""
_Makers = frozenset[_Maker]


def _labels(
    evaluators: Mapping[str, Json],
    lost: Iterable[_Maker],
    gained: Iterable[_Maker],
    again: Iterable[_Maker],
    *,
    is_same: bool,
) -> Iterable[str]:
    """Return who labelled the answer, or whose label was removed, counts again or no longer."""

    def names(makers: Iterable[_Maker]) -> list[str]:
        contents = (evaluators.get(id, {}) for id, _ in makers)
        return sorted({str(content["human"]) for content in contents if "human" in content})

    if new := names(maker for maker in gained if not maker[1]):
        return [LABELLED + ", ".join(new)]
    removed = {maker for maker in gained if maker[1]}
    if old := names({*lost, *gained} if is_same else removed):
        return [f"label{'s' * (len(old) > 1)} of {', '.join(old)} removed"]
    if back := names(maker for maker in again if not maker[1]):
        return [f"label of {', '.join(back)} {AGAIN}"]
    left = names(lost)
    return [f"label of {', '.join(left)} {NO_LONGER}"] if left else []


def _evaluators(
    versions: VersionReader,
    evaluators: Mapping[str, Json],
    was: frozenset[_Maker],
    now: frozenset[_Maker],
    *,
    with_rest: bool,
) -> Iterable[str]:
    """Yield how the models that judge differ, each new one from the nearest one that is gone.

    `with_rest`: also which are new or removed without another one in their place.
    """

    def models(makers: Iterable[_Maker]) -> list[Json]:
        contents = (evaluators.get(id, {}) for id, _ in sorted(makers))
        return [content for content in contents if "model" in content]

    lost = models(was - now)
    for new in models(now - was):
        nearest = next(
            (old for old in lost if old.get("model") == new.get("model")), next(iter(lost), None)
        )
        if nearest is not None:
            lost.remove(nearest)
            yield describe_evaluator_change(versions.find, nearest, new).text
        elif with_rest:
            yield f"new judge {_name(versions, new)}"
    yield from (f"judge {_name(versions, old)} removed" for old in lost if with_rest)


def is_shown_question(versions: VersionReader, evaluator: Json) -> bool:
    """Return whether the prompt of a judge has the question, or what else a candidate is shown."""
    prompt = versions.find("prompt", evaluator.get("prompt"))
    return bool(prompt) and shows_question(prompt)


def _name(versions: VersionReader, evaluator: Json) -> str:
    """Return the id of the model of a judge."""
    model: Json = versions.find("model", evaluator["model"]) or {}
    return str(model.get("code") or evaluator["model"][:8])


def judge_part(versions: Iterable[Json]) -> str:
    """Return what versions of a judge differ in, such as `judge prompt`; `judge` for none."""
    listed = list(versions)
    parts = ("model", "prompt", "temperature")
    differing = (part for part in parts if len({each.get(part) for each in listed}) > 1)
    return next((f"judge {part}" for part in differing), "judge")


def differ_evaluators(
    was: Run, now: Run, find: Find, of_file: CaseFile | None = None, name: Name = nowhere
) -> Iterator[Reason]:
    """Yield how the models that judge differ between two runs, and the rule for their votes.

    With `of_file`, only of those that judge a test file, without a prompt that it replaces.
    `name` returns those of prompts.
    """
    names = of_file.evaluators if of_file else None
    own_prompts = of_file is not None and all(case.judge_prompts for case in of_file.cases)

    def evaluators(run: Run) -> dict[str, list[Json]]:
        stored: dict[str, list[Json]] = {}
        for judge in run.evaluators:
            if names is None or judge.id in names:
                content = find("evaluator", judge.evaluator) or {}
                stored.setdefault(judge.id, []).append(
                    {**content, "prompt": None} if own_prompts else content
                )
        return stored

    old, new = evaluators(was), evaluators(now)
    several = sum(map(len, new.values())) > 1
    for id in dict.fromkeys((*new, *old)):
        lost = [content for content in old.get(id, ()) if content not in new.get(id, ())]
        gained = [content for content in new.get(id, ()) if content not in old.get(id, ())]
        for one, other in zip(lost, gained, strict=False):
            reason = describe_evaluator_change(find, one, other, id, name)
            is_of_judge = several and reason.of == f"judge {id}"
            yield reason._replace(text=reason.text + f" ({id})" * is_of_judge)
        rest = len(lost) - len(gained)
        if rest:
            again = " with another prompt or temperature" if id in old and id in new else ""
            judge = f"judge {id}{again}"
            yield Reason(f"{judge} removed" if rest > 0 else f"new {judge}", of=f"judge {id}")
    if was.verdict_rule != now.verdict_rule:
        yield Reason(f"verdict: {was.verdict_rule} -> {now.verdict_rule}", of="verdict")


class ParticipantHistory:
    """Follows the candidates and evaluators from older to newer runs."""

    def __init__(self, find: Find, name: Name = nowhere) -> None:
        """`name` returns the names of judge prompts."""
        self._find, self._name = find, name
        self._candidates: Candidates | None = None
        """None while all runs were limited to some of them."""
        self._named: set[str] = set()
        """Those that only `-m` has named, for runs since the last one that was not limited."""
        self.models: set[str] = set()
        """The candidates that had results until the last run, without those removed since."""
        self._last: Run | None = None

    def step(
        self,
        run: Run,
        models: Collection[str],
        *,
        file: CaseFile | None = None,
        with_temperature: bool = True,
        with_evaluators: bool = True,
    ) -> list[tuple[str, Difference]]:
        """Return how a run differs from those before; only candidates in `models` count.

        Each edit comes with what was edited: `candidate openai/gpt-5.4-mini`, `attempts`.

        With `file`, only evaluators of this test file. None has to answer in all runs: a run that
        was limited to some candidates removes none, and what only such runs had is not removed by
        the next one that was not.
        """
        was = self._candidates
        if was is not None or not is_limited(run):
            self._candidates = candidates_after(was or {}, run)
        if was is not None and is_limited(run):
            self._named |= {candidate.id for candidate in run.candidates} - was.keys()
        elif was is not None:
            gone = self._named - (self._candidates or {}).keys()
            was = {id: candidate for id, candidate in was.items() if id not in gone}
            self._named = set()
        self.models |= {*models}
        edits: list[tuple[str, Difference]] = []
        if was is not None and self._candidates is not None:
            found = differ_candidates(
                was, self._candidates, self.models, self._find, with_temperature=with_temperature
            )
            edits += ((f"candidate {id}", edit) for id, edit in found)
        self.models &= (self._candidates or {}).keys()
        if self._last is not None and with_evaluators:
            edits += _evaluator_edits(self._last, run, self._find, file, self._name)
        if self._last is not None:
            edits += _number_edits(self._last, run, file)
        self._last = run
        return edits


def find_participant_edits(
    store: Store, runs: Sequence[Run], find: Find, name: PromptNames
) -> list[tuple[Difference, ...]]:
    """Return the edits of candidates and evaluators in each of these runs, newest first.

    Runs of imported verdicts have none.
    """
    judges = (judge for run in runs for judge in run.evaluators)
    name.expect(((find("evaluator", each.evaluator) or {}).get("prompt"), 0) for each in judges)
    history = ParticipantHistory(find, name)
    edits: dict[str, tuple[Difference, ...]] = {}
    for run in reversed([*runs, *(find_runs_since(store, runs[-1]) if runs else ())]):
        if run.origin is None:
            found = history.step(run, {candidate.id for candidate in run.candidates})
            edits[run.id] = tuple(edit for _, edit in found)
    return [edits.get(run.id, ()) for run in runs]


def find_current_edits(project: Project, selection: SelectionOptions) -> list[SettingEdit]:
    """Return how candidates and evaluators differ from those before, as a run now would."""
    history = ParticipantHistory(project.versions.find, project.name_of_version)
    runs = [run for run in find_runs_since(project.store) if run.origin is None]
    edits: list[tuple[str, Difference]] = []
    every = replace(selection, evaluators=())  # '-J' removes no judge
    for run in (*reversed(runs), workspace_as_run(project, every)):
        edits = history.step(run, {candidate.id for candidate in run.candidates})
    return [SettingEdit(of, edit) for of, edit in edits]


def with_all_candidates(store: Store, runs: Collection[Run]) -> dict[str, Run]:
    """Return runs by id, those limited to some candidates with the others of the runs before."""
    complete = {run.id: run for run in runs}
    limited = sorted(filter(is_limited, runs), key=lambda run: (run.started, run.id))
    if not limited:
        return complete
    oldest, newest = limited[0], limited[-1]
    older = chain([newest], store.find_recent_runs(newest, store.count_runs()))
    history = [*takewhile(lambda run: run.id != oldest.id, older), oldest]
    candidates: Candidates = {}
    for run in reversed([*history, *find_runs_since(store, oldest)]):
        candidates = candidates_after(candidates, run)
        if run.id in complete:
            complete[run.id] = replace(run, candidates=tuple(candidates.values()))
    return complete


def differ_participants(was: Run, now: Run, find: Find, name: Name) -> Iterator[Difference]:
    """Yield how candidates of both runs, the evaluators and the attempts differ."""
    candidates = {candidate.id: candidate for candidate in was.candidates}
    for candidate in now.candidates:
        if candidate.id in candidates:
            yield from differ_candidate(candidates[candidate.id], candidate, find)
    others = (*_evaluator_edits(was, now, find, None, name), *_number_edits(was, now, None))
    yield from (edit for _, edit in others)


def is_limited(run: Run) -> bool:
    """Return whether `-m` named the candidates of a run."""
    return "models" in run.selection


def find_runs_since(
    store: Store, before: Run | None = None, leaves_out: Callable[[Run], bool] = is_limited
) -> Iterator[Run]:
    """Yield the newest runs, or those before a run, back to one that leaves out nothing."""
    for run in store.find_recent_runs(before=before):
        yield run
        if run.origin is None and not leaves_out(run):
            return


def _evaluator_edits(
    was: Run, now: Run, find: Find, file: CaseFile | None, name: Name
) -> Iterable[tuple[str, Difference]]:
    """Return how the evaluators differ between two runs, with both values if they are long.

    An edit of a prompt that several of them have is one.
    """
    edits: dict[tuple[str, Difference], None] = {}
    for change in differ_evaluators(was, now, find, file, name):
        fits = Difference("", change.was, change.now).fits
        values = (None, None) if fits else (change.was, change.now)
        edits[change.of, Difference(change.text, *values)] = None
    return edits


def _number_edits(was: Run, now: Run, file: CaseFile | None) -> Iterator[tuple[str, Difference]]:
    """Yield how many more or fewer answers a run counts, of a file those that it does not set.

    Then the edits of the other settings that a run has noted, but of the rule for votes.
    """
    of_file = file.attempts if file else None
    old, new = (
        run.attempts if "attempts" in run.selection else of_file or run.attempts
        for run in (was, now)
    )
    if old and new and old != new:
        yield "attempts", Difference(str(number_change("attempts", old, new)))
    for name in (VERDICTS_WANTED, TOKEN_LIMIT):
        if name in was.settings and was.settings[name] != now.settings.get(name):
            change = number_change(name, was.settings[name], now.settings.get(name))
            yield name, Difference(str(change))
