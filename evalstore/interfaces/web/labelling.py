"""The pages on which people label answers: one answer at a time, without the verdict of a judge.

Those that a judge has judged come first, so that labels say how often the judges are right. Which
of them come is a random sample, the same each time, whatever their verdicts.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from contextlib import contextmanager, suppress
from dataclasses import replace
from heapq import nsmallest
from itertools import chain
from operator import itemgetter
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from evalstore.checks.aggregation import combine_votes
from evalstore.core.display import case_name, plural, safe
from evalstore.core.errors import EvalstoreError, NothingSelectedError, RevisionError
from evalstore.core.hashing import DigestSet, digest_of_value, subject_of
from evalstore.core.values import AnswerRef, Json, Result, Vote, Word
from evalstore.interfaces.html.case_data import TextTable, describe_rule, one_line_of, shown_text
from evalstore.interfaces.html.report import read_images
from evalstore.interfaces.html.templates import Drawing, data_block, read_asset, read_script, render
from evalstore.planning.cell_results import as_result, verdict_without_labels
from evalstore.planning.cells import Cell
from evalstore.planning.options import Location
from evalstore.planning.plan import counted_votes
from evalstore.planning.project import Project
from evalstore.planning.status_report import compute_workspace
from evalstore.results.answer.answer import AnswerReader, SessionView, TurnView
from evalstore.results.answer.answer_text import judgement_title
from evalstore.results.labels import LabelIndex, label_results
from evalstore.results.names import name_prompts_of_cases
from evalstore.results.show.show import find_run, open_revision
from evalstore.results.stats.stats import agreement, false_verdicts, judge_stats, rank_judges
from evalstore.results.table.cases import stored_labels
from evalstore.store.events import Label
from evalstore.store.revisions import WORK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MOST_ANSWERS = 500
"""The most answers that are offered; others are labelled from the page of their case."""
_DIGITS = 8
"""The fewest digits that name an answer."""
_WORDS: tuple[Word, ...] = ("pass", "fail", "none")
_LONGEST_NAME = 200
_LONGEST_NOTE = 10_000
_MOST_FILES = 8
"""The most text files of a conversation that are shown."""


class AskedAnswer(NamedTuple):
    """An answer that can be labelled, or several that are judged together."""

    session: str
    """The id of its first session: which answers come first is random, but always the same."""
    place: str
    """Its case, as in `tests/weather.md::Oslo`: several may have the same answer."""
    sessions: tuple[str, ...]
    result: Result
    cell: Cell
    title: str
    """The name of its case, with the name of the system prompt if the case has several."""
    words: str
    """What is searched for words: the title, the candidate and the tags."""
    votes: Sequence[Vote] = ()
    """What checks and judges say of it."""

    @property
    def version(self) -> str:
        """Return what a label depends on: the judging version and the answers."""
        return f"{self.result.evaluation}_{subject_of(self.sessions)}"


class LabelPages:
    """The answers of the workspace that people may label, and their pages."""

    def __init__(self, location: Location, name: str, base: str) -> None:
        """`name` is that of the workspace; `base` is the path below which the pages are."""
        self._location, self._name, self._base = location, name, base
        self._lock = Lock()
        self._answers: dict[object, Sequence[AskedAnswer]] = {}
        """The answers offered, in order, by the words that limit them and the notes with these."""
        self._current = DigestSet()
        """The digests of all answers, also with the judging version of each."""
        self._state: object = None
        """What they depend on: cases, settings and runs."""
        self._skipped = defaultdict[str, set[tuple[str, str]]](set)
        """The sessions and cases that each person, or somebody without a name, has skipped."""

    def first(self, person: str, only: str, *after: str) -> AskedAnswer | None:
        """Return the first answer `after` a session and case that a person has not labelled.

        All words of `only` must be in the title, candidate, tags and note of the person.
        """
        self._forget_changed()
        labels, offered = stored_labels(self._location), self._offered(only, person)
        left = offered[_find_place(offered, after) + 1 :]
        return next((each for each in left if person not in _by_person(labels, each)), None)

    def _forget_changed(self) -> None:
        """Read the answers again, when they are wanted, after an edit or a run.

        Raises `EvalstoreError` for a workspace with errors, and forgets nothing.
        """
        with open_revision(self._location, WORK) as project:
            settings = replace(find_run(project, WORK), started=0, ended=0)
            runs = project.store.find_run_before(), project.store.count_runs()
            state = {**project.reading.nodes}, settings, runs
        with self._lock:
            if state != self._state:
                self._answers, self._current, self._state = {}, DigestSet(), state

    def _offered(self, only: str, person: str) -> Sequence[AskedAnswer]:
        """Return the answers offered, in order; they are read once, also in memory."""
        words, notes = only.casefold().split(), dict[Any, str]()
        for label in stored_labels(self._location).last() if words else ():
            if label.person == person and any(word in label.note.casefold() for word in words):
                notes[label.evaluation, label.sessions] = label.note.casefold()
        key = only, frozenset(notes.items())
        with self._lock:
            if key not in self._answers:
                found = (
                    each
                    for each in self._read()
                    for note in [notes.get((each.result.evaluation, each.sessions), "")]
                    if all(word in each.words or word in note for word in words)
                )
                self._answers[key] = nsmallest(
                    MOST_ANSWERS, found, lambda it: (not it.votes, *it[:2])
                )
            return self._answers[key]

    def page(
        self, session: str, place: str, person: str, only: str, note: str = "", why: str = ""
    ) -> bytes:
        """Return the page of an answer; it has verdicts only if the person has labelled it.

        It keeps a note that is not stored and says `why`. Raises `RevisionError` without one.
        """
        self._forget_changed()
        answer = self._find(session, place)
        with self._open() as (project, reader):
            (view,) = reader.read([(answer.result, answer.cell.case)])
            read = {each.id: each for each in view.sessions}
            shown = [read[id] for id in answer.sessions if id in read]
            asked = [reader.conversation(each.test, answer.result.prompt) for each in shown]
            definitions = dict(chain.from_iterable(reader.definitions(each.test) for each in shown))
            criteria = reader.criteria(answer.cell.case.evaluation)
            checks = criteria.checks if criteria else ()
            prompts = [*reader.judge_prompts(answer.cell.case)]
            turns = list(chain.from_iterable(asked))
            images = {image.id: image for turn in turns for image in turn.images}
            sources = dict(read_images(project.store, images))
            ids = [*dict.fromkeys(file.id for turn in turns for file in turn.text_files)]
            rule = describe_rule(project.settings.verdict)
            files = project.store.load_files(ids[:_MOST_FILES]) if ids else {}
            contents = {id: shown_text(files[id].data.decode("utf-8", "replace")) for id in files}
        labels = stored_labels(self._location)
        own, former = (
            _by_person(labels, answer).get(person),
            self._find_former(labels, person, only),
        )
        said = labels.by_place.get((str(answer.result.evaluation), answer.session), ())
        removed = not own and any(
            (it.person, it.sessions) == (person, answer.sessions) for it in said
        )
        others, counted_word = _other_people(labels, answer, person) if own else ([], "")
        offered = self._offered(only, person)
        at = _find_place(offered, answer[:2])
        texts, told = TextTable(), criteria.instructions if criteria else ""
        if sum(len(each.answers) for each in shown) == 1:
            told = told.replace(str(AnswerRef(((0, 0),))), "[the answer]")
        return self._render(
            title=safe(answer.title),
            only=only,
            session=answer.session,
            place=answer.place,
            parts=[
                _part(*both, sources, contents, texts) for both in zip(asked, shown, strict=True)
            ],
            told=texts.add(told) if told else None,
            checks=[(safe(each.meaning), shown_text(each.text)) for each in checks],
            prompts=[(safe(name), texts.add(_VALUE.sub(_shown, text))) for name, text in prompts],
            texts=texts.entries,
            data=Drawing(data_block("texts", texts.entries).decode(errors="backslashreplace")),
            definitions=[(safe(name), shown_text(text)) for name, text in definitions.items()],
            attempt=answer.result.subjects.index(answer.sessions) + 1,
            attempts=len(answer.result.subjects),
            person=person,
            own=own,
            judging=answer.version,
            stored=(stored := _same_lines(own.note) if own else ""),
            note="\n".join(
                filter(None, dict.fromkeys((stored * (why != "long"), _same_lines(note))))
            ),
            refused=why,
            others=others,
            removed=removed,
            before=[
                (label.verdict, shown_text(label.note))
                for label in former
                if label.sessions == answer.sessions and not own
            ],
            counted_word=counted_word,
            rule=rule,
            verdicts=[
                (vote.verdict, judgement_title(vote), shown_text(vote.feedback))
                for vote in view.judgements
                if own and not vote.is_person and answer.session in vote.sessions
            ],
            previous=offered[at - 1] if at > 0 else None,
        )

    def file(self, session: str, place: str, id: str) -> tuple[str, bytes]:
        """Return the name and the bytes of a file that is in the question of an answer.

        Raises `RevisionError` for another one.
        """
        answer = self._find(session, place)
        with self._open() as (project, reader):
            asked = (reader.conversation(it, answer.result.prompt) for it in answer.result.tests)
            files = (file for turn in chain.from_iterable(asked) for file in turn.files)
            if found := next((file for file in files if file.id == id), None):
                return found.path, project.store.load_files([id])[id].data
        raise RevisionError(f"the question has no file '{id}'")

    @contextmanager
    def _open(self) -> Iterator[tuple[Project, AnswerReader]]:
        """Return what reads answers."""
        with open_revision(self._location, WORK) as project:
            yield project, AnswerReader(project, find_run(project, WORK))

    def end(self, person: str, only: str, state: str = "") -> bytes:
        """Return the page after all answers, or without any; `state` is that of the store."""
        agreed, finding = list[tuple[Any, ...]](), ""
        labels, former, own, rule = self._list_labels(person, only)
        with suppress(NothingSelectedError):  # no judge has judged
            judges, finding = rank_judges((table := judge_stats(self._location, WORK)).groups)
            for each in judges * bool(table.labels):
                wrong = (false_verdicts(each.people, word) for word in ("pass", "fail"))
                about = agreement(own[name := safe(each.judge)]), agreement(each.people), *wrong
                agreed.append((name, about, table.coverage(each)))
        shown = {"title": "", "session": "", "agreed": agreed, "finding": safe(finding)}
        judged = [it[2] != it[6] for it in labels if it[2]]
        listed = {"labels": labels, "former": former, "judged": judged, "state": state}
        listed["rule"] = describe_rule(rule)
        follow = Drawing(read_asset("list.js"))
        return self._render(only=only, person=person, follow=follow, **shown, **listed)

    def _list_labels(
        self, person: str, only: str
    ) -> tuple[list[Any], list[Any], Mapping[str, Counter[tuple[str, str]]], str]:
        """Return the labels of a person with the answers, those first that a judge contradicts.

        The other list is of labels that no longer count, with the titles that their answers have.
        With them, by judge, its verdict and the label -> how often, and the rule of verdicts.
        """
        index, offered = stored_labels(self._location), self._offered(only, person)
        given = ((each, _by_person(index, each).get(person)) for each in offered)
        mine = [(each, label) for each, label in given if label]
        former = self._find_former(index, person, only)
        with self._open() as (project, reader):
            views = [*reader.read([(each.result, each.cell.case) for each, _ in mine])]
            rule = project.settings.verdict
            labels = chain((label for _, label in mine), former)
            answers = reader.answers({id for label in labels for id in label.sessions})

        def texts_of(label: Label) -> tuple[str, ...]:
            words = " … ".join(answers.get(id, "") for id in label.sessions)
            return label.verdict, one_line_of(words), one_line_of(label.note, _LONGEST_NOTE)

        listed, lost, own = list[tuple[Any, ...]](), [], defaultdict[str, Counter[Any]](Counter)
        for (each, label), view in zip(mine, views, strict=True):
            votes = (it for it in view.judgements if each.session in it.sessions)
            said = [(it.verdict, safe(it.by)) for it in votes if not it.is_person]
            for word, by in said:
                own[by][word, label.verdict] += 1
            judged = verdict_without_labels(each.cell, counted_votes(each.cell, each.votes), rule)
            agrees = {label.verdict}.issuperset(word for word, _ in said)
            order = judged in (None, label.verdict), agrees
            about = judged, said, *_other_people(index, each, person), *texts_of(label)
            listed.append((order, (each, safe(each.title), *about)))
        titles: dict[tuple[str, ...], set[str]] = {}
        for each in offered:
            titles.setdefault(each.sessions, set()).add(safe(each.title))
        for label in former:
            names = titles.get(label.sessions, ())
            name = plural(len(names), "case") if len(names) > 1 else "".join(names)
            here = label.sessions[0] if digest_of_value(label.sessions) in self._current else ""
            lost.append((name, here, *texts_of(label)))
        return [about for _, about in sorted(listed, key=itemgetter(0))], lost, own, rule

    def own(self, session: str, place: str, person: str) -> Label | None:
        """Return the label of a person on an answer."""
        return _by_person(stored_labels(self._location), self._find(session, place)).get(person)

    def label(
        self,
        session: str,
        place: str,
        verdict: str,
        note: str,
        person: str,
        seen: str,
        judging: str,
    ) -> str:
        """Append a label, `pass`, `fail` or `none`, which counts as one of the command `label`.

        With `next` only another note is stored, with the label that the person gave; with `skip`
        nothing is. `seen` and `judging` are the label and the version of the answer that the person
        was shown: no other label is replaced, and nothing stored for other answers or for another
        way of judging. Returns why something was not stored, or nothing.
        """
        with suppress(EvalstoreError):  # an error in a file does not hinder a label
            self._forget_changed()
        note = _same_lines(note)
        answer = self._find(session, place)
        with self._lock:
            own = _by_person(stored_labels(self._location), answer).get(person)
            before = (own.verdict, _same_lines(own.note)) if own else ("", "")
            if seen and own is None and verdict != "none":
                return "other"
            if verdict == "skip" or (verdict == "next" and own is None):
                if note not in ("", before[1]):
                    return "newer" if own else "no label"
                if own is None:
                    self._skipped[person].add((answer.session, answer.place))
                return ""
            verdict = before[0] if verdict == "next" else verdict
            word = next((word for word in _WORDS if word == verdict), None)
            if word is None:
                raise EvalstoreError(f"a label is pass, fail or none, not '{verdict}'")
            if not person:
                return "no name"
            if judging != answer.version:
                return "changed"
            if (word, note) == before or (own and not seen and (word, "") == (before[0], note)):
                return ""
            if own and own.id != seen:
                return "newer"
            if own is None and len(person) > _LONGEST_NAME:
                return "long name"
            if note != before[1] and len(note) > _LONGEST_NOTE:
                return "long"
            places = {"person": person, "session": answer.session}
            label_results(self._location, [answer.result], word, note=note, **places)
        return ""

    def _render(self, **values: object) -> bytes:
        only, person = str(values["only"]), str(values["person"])
        offered, labels = self._offered(only, person), stored_labels(self._location)
        skipped = {*self._skipped.get(person, ()), *self._skipped.get("", ())}
        unlabelled = [it for it in offered if person not in _by_person(labels, it)]
        return render(
            "label.html",
            **values,
            shown_person=safe(person),
            left=len(unlabelled),
            total=len(offered),
            skipped=[(it, safe(it.title)) for it in unlabelled if it[:2] in skipped],
            edited=len(self._find_former(labels, person, only)),
            is_sample=len(offered) == MOST_ANSWERS,
            workspace=safe(self._name),
            base=self._base,
            script=Drawing(read_script("label.js")),
        )

    def _find_former(self, labels: LabelIndex, person: str, only: str) -> list[Label]:
        """Return the labels of a person that no longer count; with words, those on answers here."""
        here = {each.sessions for each in self._offered(only, person)}
        return [
            label
            for label in labels.last()
            if label.person == person and (not only or label.sessions in here)
            if digest_of_value((label.evaluation, label.sessions)) not in self._current
        ]

    def _find(self, session: str, place: str) -> AskedAnswer:
        """Return an answer by its id, or the first digits of it, and its case.

        That of another case is returned if this case has it no more.
        """
        offered = chain.from_iterable([*self._answers.values()])
        other: AskedAnswer | None = None
        for answer in chain(offered, self._read()) if len(session) >= _DIGITS else ():
            if any(each.startswith(session) for each in answer.sessions):
                if place in ("", answer.place):
                    return answer
                other = other or answer
        if other:
            return other
        raise RevisionError(
            f"the workspace has no answer '{session}' that can be labelled",
            hint="its case may have been changed, or lacks another answer",
        )

    def _read(self) -> Iterator[AskedAnswer]:
        """Yield the answers of the workspace that are judged by somebody.

        An attempt that lacks answers is left out, also of the result.
        """
        with open_revision(self._location, WORK) as project:
            for plan, results in compute_workspace(project):
                names = name_prompts_of_cases(project, (each.cell.case for each in results))
                for each in results:
                    cell, case = each.cell, each.cell.case
                    if not case.evaluation:
                        continue
                    prompt = names[case.prompts][cell.prompt] if case.prompts[1:] else None
                    title = case_name(cell.file, case.row, prompt)
                    words = " ".join((title, cell.candidate.id, *case.tags)).casefold()
                    place = f"{cell.file}::{case.row}"
                    subjects = cell.subjects(plan.sessions)
                    used = {*chain.from_iterable(subjects)}
                    whole = tuple(id for id in each.sessions if id in used)
                    complete = as_result(each)._replace(sessions=whole, required_answers=len(whole))
                    for them in subjects:
                        made = plan.votes.get(subject_of(them), ())
                        its = [it for it in made if it.evaluation == case.evaluation]
                        self._current.add(digest_of_value((case.evaluation, them)))
                        self._current.add(digest_of_value(them))
                        about = place, them, complete, cell, title, words
                        yield AskedAnswer(them[0], *about, [it for it in its if not it.human])


def _find_place(offered: Sequence[AskedAnswer], answer: tuple[str, ...]) -> int:
    """Return the number of an answer, given by its session and case, among those offered; or -1."""
    return next((at for at, each in enumerate(offered) if each[:2] == answer), -1)


def _part(
    conversation: Sequence[TurnView],
    session: SessionView,
    sources: Mapping[str, Json],
    contents: Mapping[str, str],
    texts: TextTable,
) -> tuple[list[tuple[str, int, list[Any]]], list[tuple[str, int]]]:
    """Return the turns of a conversation with its answers in their places, and those after them.

    A turn has its role, the number of its text, and of each of its files the path, the id, the
    picture and the text, as far as it is shown.
    """
    left = [
        ("answer" if len(session.answers) == 1 else f"answer {number}", texts.add(text))
        for number, text in enumerate(session.answers, start=1)
    ]
    turns: list[tuple[str, int, list[Any]]] = []
    for turn in conversation:
        if turn.answer is None:
            files = [(safe(file.path), file.id) for file in turn.files]
            listed = [(path, id, sources.get(id), contents.get(id)) for path, id in files]
            turns.append((turn.role, texts.add(turn.text), listed))
        elif left:
            turns.append((*left.pop(0), []))
    return turns, left


_VALUES = {
    "_evaluationInstructions": "the instructions",
    "_actualResponse": "the answer",
    "_messages": "the conversation",
    "_systemPrompt": "the system prompt",
    "_schema": "the JSON schema",
    "_tools": "the tools",
}
"""What a judge is shown in the place of a name in its prompt."""
_VALUE = re.compile(r"(\n(?=\S+$))?\{\{(" + "|".join(_VALUES) + r")\}\}", re.MULTILINE)


def _shown(name: re.Match[str]) -> str:
    return f"{2 * (name[1] or '')}[{_VALUES[name[2]]}]"  # a line of its own ends a list


def _by_person(labels: LabelIndex, answer: AskedAnswer) -> dict[str, Label]:
    return {label.person: label for label in labels.current(answer.result, answer.session)}


def _other_people(
    labels: LabelIndex, answer: AskedAnswer, person: str
) -> tuple[list[tuple[Word, str]], str]:
    """Return the labels of others with their names, and what all people say together."""
    given = _by_person(labels, answer)
    said = [(label.verdict, safe(name)) for name, label in given.items() if name != person]
    people = [(label.verdict, None) for label in given.values() if label.verdict != "none"]
    return said, combine_votes(people).verdict if said else ""


def _same_lines(note: str) -> str:
    """Return a note as a form sends it."""
    return note.replace("\r\n", "\n").replace("\r", "\n").strip()
