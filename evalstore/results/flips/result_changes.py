"""What changed between two results of a case: its definition, the model, a judge or the answer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from evalstore.comparison.comparison import OTHER_JUDGEMENT, Pair, change_of_tests
from evalstore.comparison.pair_groups import OLDER, age_of_answers, find_same_answers
from evalstore.comparison.version_diff import (
    RECORDED_ANSWER,
    differ_candidate,
    part_change,
    recorded_text,
)
from evalstore.comparison.word_diff import ChangedLine, diff_lines
from evalstore.core import deserialize
from evalstore.core.display import plural, short
from evalstore.core.runs import Run
from evalstore.core.values import Case, CaseFile, Json, Result, Vote
from evalstore.planning.project import Project, VersionReader
from evalstore.planning.status_report import SettingEdit
from evalstore.results.answer.judgements import (
    Attempts,
    CastVote,
    CellToJudge,
    find_votes,
    group_votes,
    read_attempts,
)
from evalstore.results.judgement_changes import (
    differ_evaluators,
    is_shown_question,
    judgement_changes,
    judging_causes,
)
from evalstore.results.value_text import answer_text, check_yaml, text_of
from evalstore.store import Store

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
    pair, label = Pair(was.result, now.result), _label(store, was, now)
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
    asks_the_same = all(each.text.startswith((INSTRUCTIONS, CHECKS)) for each in edits)
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


def _label(store: Store, was: JudgedResult, now: JudgedResult) -> str:
    """Return who has labelled the answer, or whose label was removed; empty if nobody."""
    pair = Pair(was.result, now.result)
    changes = judgement_changes(store, VersionReader(store), [pair], was.run.started)
    words = changes.get((was.result.evaluations, now.result.evaluations), [])
    return next((word for word in words if word.startswith("label")), "")


# --- the votes and the attempts of results that are read with their runs and cases


def find_attempts(store: Store, records: Sequence[JudgedResult]) -> Attempts:
    """Return the attempts of these results, as far as they have several."""
    return read_attempts(
        store,
        [CellToJudge(each.result, each.case.judged_by, each.run.verdict_rule) for each in records],
    )


def read_votes(
    record: JudgedResult, cast: Mapping[str, CastVote]
) -> dict[tuple[str, ...], list[Vote]]:
    """Return the votes on a result: all together, or if there are attempts, those on each."""
    listed = [cast[id] for id in record.result.evaluations if id in cast]
    if not record.result.has_attempts:
        return {record.result.sessions: [vote for vote, _ in listed]} if listed else {}
    return group_votes((sessions, vote) for vote, sessions in listed)


# --- the parts of a test: the texts for candidates and for evaluators


SYSTEM, SHOWN, INSTRUCTIONS, CHECKS, SETTINGS = (
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
    parts[CHECKS] = "\n".join(
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
