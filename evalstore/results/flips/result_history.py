"""Since when a result passes or fails, what changed then, and how often its verdict changes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, pairwise, takewhile
from operator import attrgetter
from typing import NamedTuple

from evalstore.checks.aggregation import judge_session
from evalstore.comparison.comparison import (
    OTHER_JUDGEMENT,
    CellIndex,
    Pair,
    change_of_tests,
    numbers_now,
)
from evalstore.comparison.pair_groups import OLDER, age_of_answers, find_same_answers
from evalstore.comparison.version_diff import (
    RECORDED_ANSWER,
    ChangedLine,
    diff_lines,
    differ_candidate,
    part_change,
    recorded_text,
)
from evalstore.core import deserialize
from evalstore.core.display import plural, short
from evalstore.core.runs import Run
from evalstore.core.values import Case, CaseFile, Json, Result, Verdict
from evalstore.planning.earlier_results import EarlierRuns
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.options import Location
from evalstore.planning.path_history import PathHistory, follow_file
from evalstore.planning.plan import CHECKS, UNSETTLED
from evalstore.planning.project import Project, VersionReader
from evalstore.planning.status_report import SettingEdit
from evalstore.results.answer.judgements import (
    Attempt,
    Attempts,
    CellToJudge,
    find_votes,
    group_votes,
    read_attempts,
)
from evalstore.results.edits.edits import (
    differ_evaluators,
    is_shown_question,
    judge_part,
    judgement_changes,
    judging_causes,
)
from evalstore.results.value_text import answer_text, check_yaml, text_of
from evalstore.store import Store
from evalstore.store.events import RUNS_SEARCHED
from evalstore.store.results import RowResults, iterate_entries, results_of
from evalstore.store.revisions import resolve_run
from evalstore.store.trees.tree_nodes import find_entries, find_entry, find_leaves

_CONTEXT = 1
"""Equal lines that are shown around an edit."""


class JudgedResult(NamedTuple):
    """The result of a case in a run."""

    run: Run
    """For the workspace, a run that is not stored."""
    node: str | None
    """The leaf of its test file in the snapshot."""
    result: Result
    case: Case


@dataclass(frozen=True, slots=True)
class ResultChange:
    """One thing that changed."""

    JSON_FIELDS = ("text", "lines")
    text: str
    hunks: tuple[tuple[ChangedLine, ...], ...] = ()
    """The edited lines, with the words that differ."""

    @property
    def lines(self) -> list[str]:
        """Return the edited lines behind their signs: a blank, `-` or `+`."""
        return [
            line.sign + "".join(piece.text for piece in line.pieces)
            for hunk in self.hunks
            for line in hunk
        ]


def find_result_changes(
    store: Store, was: JudgedResult, now: JudgedResult, project: Project | None = None
) -> Iterator[ResultChange]:
    """Yield what changed between two judged results of a case: a label alone if it decides.

    Of the same answer with another verdict, first how it is judged. When no definition changed:
    another answer to the same question, or another judgement of the same answer. `project` is
    needed for a result of the workspace.
    """
    pair = Pair(was.result, now.result)
    made = judgement_changes(store, VersionReader(store), [pair], was.run.started)
    differing = made.get((was.result.evaluations, now.result.evaluations), [])
    label = next((word for word in differing if word.startswith("label")), "")
    is_kept = was.result.sessions == now.result.sessions
    edits, judges = [*_edits(store, was, now, project)], [*_evaluators(store, was, now, project)]
    candidates = [*_candidates(store, was, now, project)]
    asked = SYSTEM, SHOWN, RECORDED_ANSWER
    judged = [*(each for each in edits if not each.text.startswith(asked)), *judges]
    has_same_answer = is_kept or bool(find_same_answers(store, [pair]))
    texts = [each.text for each in judged]
    is_judged_alone = is_kept or (has_same_answer and not _shows_question(store, was, now, project))
    words = [label] if label else []
    causes = judging_causes(pair, texts, words, has_same_answer=is_judged_alone)
    shown = [each for each in judged if each.text in causes]
    changes = shown if causes else [*edits, *candidates, *judges]
    asks_the_same = all(each.text.startswith((INSTRUCTIONS, CHECK_PART)) for each in edits)
    is_other_answer = asks_the_same and not (candidates or has_same_answer)
    if not causes and (is_other_answer or not (changes or (label and is_kept))):
        yield from _other_results(store, was, now)
    yield from (*changes, *map(ResultChange, words))


def _edits(
    store: Store, was: JudgedResult, now: JudgedResult, project: Project | None
) -> Iterator[ResultChange]:
    """Yield the edits of the test, its system prompt, instructions, checks and settings."""
    cases = [
        each.case._replace(prompts=(each.result.prompt,), tags=(), row="", key="")
        for each in (was, now)
    ]
    if cases[0] == cases[1] and was.node == now.node:
        return
    contents = load_test_parts(store, project, cases)
    files = store.load_case_files([record.node for record in (was, now) if record.node])
    parts = []
    for record, case in zip((was, now), cases, strict=True):
        if record.node:
            file = files[record.node]
        elif project:
            file = project.reading.files[record.result.file]
        else:
            return
        parts.append(describe_parts(case, contents, file))
    before, after = parts
    for part in dict.fromkeys((*after, *before)):
        both = before.get(part, ""), after.get(part, "")
        if hunks := diff_lines(*both, _CONTEXT):
            yield ResultChange(part_change(part, *both), tuple(map(tuple, hunks)))


def _candidates(
    store: Store, was: JudgedResult, now: JudgedResult, project: Project | None
) -> Iterator[ResultChange]:
    """Yield how the definition of the candidate changed."""
    id = now.result.model
    old, new = was.run.find_candidate(id), now.run.find_candidate(id)
    if old is None or new is None:
        return
    for difference in differ_candidate(old, new, _reader(store, project).find):
        yield ResultChange(SettingEdit(f"candidate {id}", difference).text)


def _evaluators(
    store: Store, was: JudgedResult, now: JudgedResult, project: Project | None
) -> Iterator[ResultChange]:
    """Yield how the models that judge changed, and the rule by which their votes count."""
    if "models" not in now.case.judged_by:
        return
    for record in (was, now):  # no model is asked where checks fail
        judges = {judge.evaluator for judge in record.run.evaluators}
        cast = find_votes(store, [record.result]).values()
        if not any(each.vote.evaluator in judges for each in cast):
            return
    for change in differ_evaluators(was.run, now.run, _reader(store, project).find):
        yield ResultChange(change.text)


def _shows_question(
    store: Store, was: JudgedResult, now: JudgedResult, project: Project | None
) -> bool:
    """Return whether a judge of these results was shown the question."""
    votes = [cast.vote for cast in find_votes(store, [was.result, now.result]).values()]
    evaluators = store.load_contents("evaluator", {vote.evaluator for vote in votes})
    reader = _reader(store, project)
    return any(is_shown_question(reader, content) for content in evaluators.values())


def _reader(store: Store, project: Project | None) -> VersionReader:
    return VersionReader(store, project.reading.contents) if project else VersionReader(store)


def _other_results(store: Store, was: JudgedResult, now: JudgedResult) -> Iterator[ResultChange]:
    """Yield another answer to the same question, another number of them, or another judgement."""
    if was.result.sessions == now.result.sessions:
        yield ResultChange(OTHER_JUDGEMENT)
        return
    yield from map(ResultChange, change_of_tests(was.result, now.result))
    sessions = store.find_sessions({*was.result.sessions, *now.result.sessions})
    both = {*was.result.sessions} & {*now.result.sessions}
    replies = [
        [sessions[id].answer for id in each.result.sessions if id in sessions and id not in both]
        for each in (was, now)
    ]
    old, new = ([answer_text(reply) for reply in side] for side in replies)
    if Counter(old) == Counter(new):
        text = "the answer is the same" if len(new) == 1 else "the answers are the same"
        yield ResultChange(f"same question, asked again: {text}" if new else "fewer answers")
    else:
        counts = Counter(old), Counter(new)
        before, after = next(iter(counts[0] - counts[1]), ""), next(iter(counts[1] - counts[0]), "")
        hunks = tuple(map(tuple, diff_lines(before, after, _CONTEXT))) if old and new else ()
        is_older = age_of_answers(Pair(was.result, now.result), sessions) == OLDER
        fewer = f"{plural(len(old), 'answer')} fewer"
        several = plural(len(new), "more answer") if new else fewer
        words = f"same question, {'asked again' if old and new else several}"
        if is_older:
            why = f": run {short(was.run.id)} had asked again" * ("refresh" in was.run.selection)
            words = f"same question, and an older answer counts{why}"
        yield ResultChange(words, hunks)
    models = [{reply.resolved_model for reply in side} - {None} for side in replies]
    if all(models) and models[0].isdisjoint(models[1]):
        names = [", ".join(sorted(map(str, side))) for side in models]
        yield ResultChange(f"the provider answered with {names[1]}, before {names[0]}")


# --- the votes and the attempts of results that are read with their runs and cases


def find_attempts(store: Store, records: Sequence[JudgedResult]) -> Attempts:
    """Return the attempts of these results, as far as they have several."""
    return read_attempts(
        store,
        [CellToJudge(each.result, each.case.judged_by, each.run.verdict_rule) for each in records],
    )


# --- the parts of a test: the texts for candidates and for evaluators


SYSTEM, SHOWN, INSTRUCTIONS, CHECK_PART, SETTINGS = (
    *("system prompt", "test", "instructions", "checks", "settings"),
)
"""The names of the parts of a test."""


def load_test_parts(
    store: Store, project: Project | None, cases: Sequence[Case]
) -> dict[str, Json]:
    """Return the contents of all versions of these cases, by id."""
    ids_of = {
        "test": {id for case in cases for id in case.tests},
        "prompt": {id for case in cases for id in (*case.prompts, *case.judge_prompts) if id},
        "evaluation": {case.evaluation for case in cases if case.evaluation},
        "model": {case.recorded for case in cases if case.recorded},
    }
    reader = VersionReader(store, project.reading.contents if project else {})
    contents: dict[str, Json] = {}
    for kind, ids in ids_of.items():
        contents |= reader.load(kind, ids)
    tools = {id for content in contents.values() for id in content.get("tools", ())}
    return contents | reader.load("tool", tools)


def describe_parts(case: Case, contents: Mapping[str, Json], file: CaseFile) -> dict[str, str]:
    """Return the texts for candidates and evaluators by the name of the part."""
    parts: dict[str, str] = {}
    for number, prompt in enumerate(case.prompts, 1):
        name = f"{SYSTEM} {number}" if len(case.prompts) > 1 else SYSTEM
        parts[name] = _messages(contents.get(prompt, {}), bare=True) if prompt else ""
    conversations = [(id, len(list(same))) for id, same in groupby(case.tests)]
    for number, (id, times) in enumerate(conversations, 1):
        name = f"{SHOWN} {number}" if len(conversations) > 1 else SHOWN
        held = f"\n(held {times} times)" if times > 1 else ""
        parts[name] = _messages(contents.get(id, {})) + held
    parts[RECORDED_ANSWER] = recorded_text(contents.get(case.recorded or "", {}))
    evaluation = contents.get(case.evaluation or "", {})
    parts[INSTRUCTIONS] = text_of(deserialize.restore_parts(evaluation.get("instructions", ())))
    parts[CHECK_PART] = "\n".join(
        "- " + check_yaml(check).replace("\n", "\n  ") for check in evaluation.get("checks", ())
    )
    parts[SETTINGS] = "\n".join(_settings(case, contents, file))
    return {name: text for name, text in parts.items() if text}


def _messages(content: Json, *, bare: bool = False) -> str:
    """Return messages with their roles; with `bare`, a single message has no role."""
    messages = deserialize.restore_messages(content.get("messages", ()))
    if bare and len(messages) == 1:
        return text_of(messages[0].parts)
    return "\n\n".join(
        f"{message.name or message.role}:\n"
        + ("(filled by the candidate)" if message.filled else text_of(message.parts))
        for message in messages
    )


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
        yield f"judge prompt {id[:8]}\n    " + text.replace("\n", "\n    ")
    for when in case.judged_by[2:]:  # the rest follows from instructions and checks
        yield f"evaluator: {when}"


_SAMPLES = 20
"""The most verdicts of one version that are counted."""
_MOST_CELLS = 200_000
"""About how many results the files have that are searched; the search ends there."""


class JudgedAttempts(NamedTuple):
    """The verdict on a result, and on its attempts."""

    verdict: Verdict
    passed: int
    attempts: int
    labels: int
    """How many labels of people are on them."""
    is_counted: bool = False
    """Whether it is the result that counts in the run, or in the workspace."""
    before: Verdict | None = None
    """The verdict on the same answers before they had labels."""


@dataclass(frozen=True, slots=True)
class VerdictCounts:
    """The verdicts on the answers to one version of a case, and how often they changed."""

    verdicts: tuple[Verdict, ...]
    """One for each answer or further judgement of it, the newest first; at most 20."""
    rounds: tuple[JudgedAttempts, ...] = ()
    """The results that these verdicts make, the newest first."""
    differing: tuple[str, ...] = ()
    """What the newest other version that was judged has otherwise, such as the judge prompt."""

    @property
    def judged(self) -> int:
        """Return how many there are."""
        return len(self.verdicts)

    @property
    def passed(self) -> int:
        """Return how many passed."""
        return self.verdicts.count("pass")

    @property
    def changes(self) -> int:
        """Return how often a pass followed a verdict that is not one, or the reverse.

        The attempts of one run make one verdict. Labels are left out: there a person decided, and
        neither the candidate nor a judge.
        """
        passes = [each.verdict == "pass" for each in self.rounds if not each.labels]
        return sum(newer != older for newer, older in pairwise(passes))


@dataclass(frozen=True, slots=True)
class ResultHistory:
    """The earlier verdicts on a case with one candidate and one system prompt."""

    passes: bool
    """Whether the newest verdict is a pass."""
    last: Run
    """The run with the newest verdict."""
    since: Run
    """The first run of those, up to the newest, that passed alike or did not pass alike."""
    before: Run | None
    """The last judged run before that; None: no run that was searched had the other outcome."""
    former: Result | None
    """The result in that run."""
    changes: tuple[ResultChange, ...]
    """What changed between these two runs."""
    later: tuple[ResultChange, ...]
    """What changed from then to the newest verdict."""
    later_run: Run | None
    """The first run with what the newest verdict is about; None if that is `since`."""
    counts: VerdictCounts
    searched: int
    """How many runs were searched."""
    is_cut: bool
    """Whether older runs were not searched."""
    attempts: tuple[Attempt, ...] = ()
    """The attempts of the newest judged result, if there are several."""
    has_failed: bool = True
    """Whether all of those that did not pass failed: before a pass, else up to the newest."""
    is_pending: bool = False
    """Whether the result itself has no verdict, so that the newest one is that of an older run."""

    def changes_in(self, run: str, quote: Callable[[str], str] = str) -> str:
        """Return what changed in the run in which it broke, and then; empty if that was another.

        `quote` writes what changed.
        """
        is_since = self.before and not self.passes and self.since.id == run
        return self.changes_text(quote) if is_since else ""

    def changes_text(self, quote: Callable[[str], str] = str) -> str:
        """Return what changed then and since then: `labelled by Ada; since then: test changed`."""
        changed, later = (
            quote(", ".join(it.text for it in changes)) if changes else ""
            for changes in (self.changes, self.later)
        )
        return "; since then: ".join(filter(None, (changed, later)))


def find_history(
    store: Store,
    folder: str,
    current: Result,
    run: Run,
    *,
    case: Case | None = None,
    file: str | None = None,
    project: Project | None = None,
    rows: RowResults | None = None,
) -> ResultHistory | None:
    """Return the history of a result up to its run; None when it has never been judged.

    `folder` is that of the test files. A result of the workspace comes with its `case`, the path
    that its `file` had in the newest run, and the `project`. The newest 100 runs are searched.
    Those who look for several results share `rows`.
    """
    is_stored = case is None
    last = run if is_stored else None
    earlier = list(store.find_recent_runs(before=last, limit=RUNS_SEARCHED))
    runs = [run, *earlier] if is_stored else earlier
    search = _Search(store, folder, runs, file or current.file, rows or RowResults(store))
    records: list[JudgedResult] = []
    if case is not None and current.verdict:
        records.append(JudgedResult(run, None, current, case))
    before: JudgedResult | None = None
    version: dict[str, object] = {}
    is_ended = False
    for record in search.find(current, case):
        if records and _passes(record) != _passes(records[-1]) and before is None:
            before = record
        records.append(record)
        version = version or _compared(store, records[0])
        # Older runs may have judged this version, too, although another one lies between them.
        counted = (each.result for each in records if _is_of(version, each))
        answers = {(result.sessions, result.evaluations) for result in counted}
        if before and len(answers) >= _SAMPLES:
            is_ended = search.count < len(runs)
            break
    if not records:
        return None
    since = next((newer for newer, older in pairwise(records) if older is before), records[-1])
    until = records.index(since) + 1
    unlike = records[until : until + bool(before)] if _passes(records[0]) else records[:until]
    version = version or _compared(store, records[0])
    alike = [record for record in records if _is_of(version, record)]
    cast = find_votes(store, [since.result])
    votes = (cast[id].vote for id in records[0].result.evaluations if id in cast)
    keeps_label = any(vote.human and vote.verdict != "none" for vote in votes)
    newest = records[0].result.evaluations
    same = [record for record in records[:until] if record.result.evaluations == newest]
    later = same[-1] if not keeps_label and same[-1] is not since else None
    other = next((each for each in records if each not in alike), None)
    attempts = find_attempts(store, records[:1])
    return ResultHistory(
        passes=_passes(records[0]),
        last=records[0].run,
        since=since.run,
        before=before.run if before else None,
        former=before.result if before else None,
        changes=tuple(find_result_changes(store, before, since, project)) if before else (),
        later=tuple(find_result_changes(store, since, records[0], project)) if later else (),
        later_run=later.run if later else None,
        counts=_count(store, alike, _differing(store, version, records[0], other)),
        searched=search.count,
        is_cut=is_ended or search.is_cut or len(earlier) == RUNS_SEARCHED,
        has_failed=not any(record.result.verdict in UNSETTLED for record in unlike),
        is_pending=current.verdict is None,
        attempts=attempts.get(records[0].result.evaluations, ()),
    )


class _Search:
    """Reads the results of one case in runs, newest first."""

    def __init__(
        self, store: Store, folder: str, runs: Sequence[Run], file: str, rows: RowResults
    ) -> None:
        self._store, self._runs, self._rows = store, runs, rows
        self._places = list(follow_file(store, runs, file, folder))
        self._left = _MOST_CELLS
        self.count = 0
        """How many runs were searched."""
        self.is_cut = False
        """Whether the search ended because too much would have to be read."""

    def find(self, result: Result, case: Case | None) -> Iterator[JudgedResult]:
        """Yield the judged results of the case in these runs; without `case` it is in the first."""
        listed = zip(self._runs, self._places, strict=False)
        covered = ((path, run.results) for run, (path, node) in listed if node is not None)
        leaves = find_leaves(covered, self._store.load_nodes)
        prompts: Collection[str | None] = case.prompts if case else (result.prompt,)
        cells: dict[str, list[tuple[Result, Case]]] = {}
        for run, (path, node) in zip(self._runs, self._places, strict=False):
            leaf = leaves.get((path, run.results))
            self.count += 1
            if leaf is None or node is None:
                continue
            if leaf not in cells:
                if self._left <= 0:
                    self.is_cut = True
                    return
                found = self._rows.find({path: leaf}, {path: {result.key, result.row}})[path]
                self._left -= found.total
                cells[leaf] = [  # the results of the candidate on cases with that label or values
                    (cell, case)
                    for cell, case in found.cells
                    if cell.model == result.model
                    and (cell.key == result.key or cell.row == result.row)
                ]
            index = CellIndex((cell._replace(file=result.file), case) for cell, case in cells[leaf])
            match = index.find(result, prompts)
            if match is None:
                continue
            result, case = match
            prompts = case.prompts
            if result.verdict:
                yield JudgedResult(run, node, result, case)


def _passes(record: JudgedResult) -> bool:
    return record.result.verdict == "pass"


def _compared(store: Store, newest: JudgedResult) -> dict[str, object]:
    """Return what makes the version of a result: its judges only if one of them decided."""
    cast = find_votes(store, [newest.result])
    attempts = group_votes((sessions, vote) for vote, sessions in cast.values())
    is_judged = any(
        not any(vote.human for vote in votes) and any(vote.evaluator != CHECKS for vote in votes)
        for votes in attempts.values()
    )
    version = _version(newest)
    return version if is_judged else {key: version[key] for key in version if key != "judge"}


def _is_of(version: Mapping[str, object], record: JudgedResult) -> bool:
    """Return whether a record is about the version; where no judge decided, they may differ."""
    found = _version(record)
    return all(found[name] == value for name, value in version.items())


def _version(record: JudgedResult) -> dict[str, object]:
    """Return what makes another version, by its name."""
    result, case = record.result, record.case
    candidate = record.run.find_candidate(result.model)
    judges = {judge.evaluator for judge in record.run.evaluators}
    return {
        "question": sorted(result.tests),
        "instructions and checks": result.evaluation,
        "system prompt": result.prompt,
        "candidate": candidate and (candidate.model, candidate.temperature),
        "recorded answer": case.recorded,
        "temperature": case.temperature,
        "seed": case.seed,
        "judge": judges if "models" in case.judged_by else None,
    }


def _differing(
    store: Store, version: Mapping[str, object], now: JudgedResult, was: JudgedResult | None
) -> Iterator[str]:
    """Yield the names of what differs from another result; nothing without one."""
    old = _version(was) if was else {}
    for name, value in version.items():
        if was and value != old[name]:
            judges = [{each.evaluator for each in it.run.evaluators} for it in (now, was)]
            contents = store.load_contents("evaluator", judges[0] ^ judges[1])
            yield judge_part(contents.values()) if name == "judge" else name


# --- samples


def _count(
    store: Store, records: Sequence[JudgedResult], differing: Iterator[str]
) -> VerdictCounts:
    """Return the verdicts of the records, newest first, each answer and judgement of it once.

    A run that reuses an answer adds nothing. A label changes the verdict on an answer and makes no
    other one. The order is that in which they were judged, whichever run has them.
    """
    cast = find_votes(store, [record.result for record in records])
    samples: list[tuple[int, Verdict]] = []
    newer: dict[tuple[str, ...], list[set[str]]] = {}
    rounds: list[tuple[int, JudgedAttempts, set[str], set[tuple[str, ...]]]] = []
    for record in records:
        result, last, all_judged = record.result, 0, set[str]()
        listed = [cast[id] for id in result.evaluations if id in cast]
        by_subject = {result.sessions: [vote for vote, _ in listed]} if listed else {}
        if result.has_attempts:
            by_subject = group_votes((sessions, vote) for vote, sessions in listed)
        passed, labels = 0, 0
        for subject, votes in by_subject.items():
            judged = {vote.id for vote in votes if not vote.human}
            at = max((vote.started for vote in votes if vote.id in judged), default=0)
            verdict = result.verdict
            if result.has_attempts:
                attempt = judge_session(
                    votes, record.case.judged_by, CHECKS, record.run.verdict_rule
                )
                verdict = attempt.verdict if attempt else None
            passed += verdict == "pass"
            labels += sum(vote.human and vote.verdict != "none" for vote in votes)
            all_judged |= judged
            last = max(last, at)
            known = newer.setdefault(subject, [])
            if verdict and not any(judged <= other or other <= judged for other in known):
                known.append(judged)
                samples.append((at, verdict))
        assert result.verdict
        is_counted = record is records[0]
        attempts = JudgedAttempts(result.verdict, passed, len(by_subject), labels, is_counted)
        answers = {*by_subject}  # of a round in which only a person judged, these are compared
        alike = (
            place
            for place, (*_, other, subjects) in enumerate(rounds)
            if (all_judged <= other if all_judged and other else answers == subjects)
        )
        if (place := next(alike, None)) is None:
            rounds = [each for each in rounds if not each[2] or not each[2] < all_judged]
            rounds.append((last, attempts, all_judged, answers))
        elif (labelled := rounds[place][1]).labels and not (labels or labelled.before):
            now = labelled._replace(before=result.verdict)
            rounds[place] = rounds[place][0], now, *rounds[place][2:]
    samples.sort(key=lambda sample: -sample[0])
    rounds.sort(key=lambda judged: -judged[0])
    return VerdictCounts(
        tuple(verdict for _, verdict in samples[:_SAMPLES]),
        tuple(attempts for _, attempts, *_ in rounds[:_SAMPLES]),
        tuple(differing),
    )


# --- the last verdicts of cases, run by run


VERDICTS_LISTED = 8
"""The last verdicts of a case that are listed."""
_RUNS = 40
"""Runs that are searched for them."""
_CELLS = 60_000
"""Results that are read; after so many no older run is read."""
RecentVerdicts = Mapping[tuple[str, str, str], Mapping[str | None, tuple[str, ...]]]
"""The last verdicts, the oldest first, by file, row and candidate, and then by system prompt.

It has all system prompts that the case has in the newest run, in their order, and no other."""


def read_recent_verdicts(
    location: Location, files: Collection[str], run: str | None = None
) -> RecentVerdicts:
    """Return the last verdicts of all cells of these files, up to a run.

    Each run that judged a cell counts, also one that used stored answers again. A file that was
    renamed is followed back from the newest of these runs.
    """
    folder = open_workspace(location).settings.paths["tests"]
    history: dict[tuple[str, str, str], dict[str | None, list[str]]] = {}
    prompts: dict[tuple[str, str, str], tuple[str | None, ...]] = {}
    with open_store(location) as store:
        newest = [resolve_run(store, run)] if run is not None else store.find_runs(limit=1)
        entries = [find_entries(it.results, files, store.load_nodes) for it in newest]
        for last in newest:
            names = PathHistory(store, folder, last.snapshot, {})
            earlier = EarlierRuns(store, names, kind=attrgetter("id"))  # also the same results
            entries += (found for _, found in earlier.before(last, {*files}, limit=_RUNS))
        left = _CELLS
        for file in sorted(files):
            leaves = [found[file] for found in entries if file in found]
            left -= _add(history, prompts, file, leaves, store, left)
    return {
        place: {prompt: tuple(by_prompt.get(prompt, ())[::-1]) for prompt in prompts[place]}
        for place, by_prompt in history.items()
    }


def _add(
    history: dict[tuple[str, str, str], dict[str | None, list[str]]],
    newest: dict[tuple[str, str, str], tuple[str | None, ...]],
    file: str,
    leaves: Iterable[str],
    store: Store,
    most: int,
) -> int:
    """Add the verdicts of a file, and return how many results were read.

    `leaves` are the newest first. Each leaf is read once; after `most` results, none is read.
    `newest` gets the system prompts of each case in the newest of them.
    """
    known: dict[str, list[tuple[Result, Case]]] = {}
    for leaf in leaves:
        if leaf not in known:
            if sum(map(len, known.values())) >= most:
                break
            known[leaf] = [*chain.from_iterable(iterate_entries(store, {leaf: leaf}))]
        for result, case in known[leaf]:
            place = file, result.row, result.model
            prompts = newest.setdefault(place, case.prompts)
            number = numbers_now(case.prompts, prompts).get(result.prompt)
            if number is not None:
                words = history.setdefault(place, {}).setdefault(prompts[number], [])
                if result.verdict and len(words) < VERDICTS_LISTED:
                    words.append(result.verdict)
    return sum(map(len, known.values()))


# --- the newest run, and the newest that has another result for a case


_LATER_RUNS = 20
"""Later runs in which a result is looked for."""


def find_newer_run(location: Location, run: str, result: Result | None = None) -> Run | None:
    """Return the newest run, unless it is this one.

    With a result, return the newest of the later runs that have its case, unless it is the same
    there.
    """
    with open_store(location) as store:
        recent = store.find_recent_runs(limit=_LATER_RUNS)
        for later in takewhile(lambda other: other.id != run, recent):
            if result is None:
                return later
            leaf = find_entry({later.results}, result.file, store.load_nodes).get(later.results)
            found = results_of(store, result.file, {leaf: [result.row]})[leaf] if leaf else []
            of_model = [each for each in found if each.model == result.model]
            if of_model:  # one for each system prompt
                counted = [(it.verdict, it.sessions, it.evaluations) for it in (result, *of_model)]
                return None if counted[0] in counted[1:] else later
    return None
