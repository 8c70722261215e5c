"""Turns the results of a run into the data of the page: a table of cases, and their details.

The details are written in blocks of some cases, which the page reads when a case is opened. Only
the table stays in memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain, groupby, islice, repeat
from typing import TYPE_CHECKING

from evalstore.comparison.comparison import CellIndex, Pair
from evalstore.comparison.pair_groups import digest_of_cell
from evalstore.comparison.version_diff import diff_lines
from evalstore.core import batches
from evalstore.core.display import FAILING, SIGNS, safe, short, side_name
from evalstore.core.runs import Run
from evalstore.core.values import SPECIAL_TAGS, Case, CellKey, FileRef, Json, Result
from evalstore.interfaces.html.case_table import CHANGES, CaseTable, QuotedCell, TableRow
from evalstore.planning.cell_results import label_by
from evalstore.planning.earlier_results import EarlierRuns, index_cells
from evalstore.planning.path_history import PathHistory
from evalstore.planning.plan import CHECKS
from evalstore.results.answer.answer import AnswerReader, Criteria, ResultView, TurnView
from evalstore.results.answer.answer_text import (
    check_text,
    explanation_sections,
    facts_text,
    judgement_title,
)
from evalstore.results.answer.judgements import Judgement, attempts_text
from evalstore.results.answer.verdict_explanation import VerdictReasons, find_failing_answer
from evalstore.results.compare.diff_result import Diff
from evalstore.results.flips.verdict_changes import BrokenCase
from evalstore.results.labels import read_labels
from evalstore.results.value_text import link_target, parse_markdown, shows_all
from evalstore.store import Store
from evalstore.store.events import Label
from evalstore.store.results import RowResults
from evalstore.store.trees.tree_nodes import read_tree

CASES_IN_A_BLOCK = 50
"""Cases whose details are read together when one of them is opened."""
_SNIPPET = 80
"""The most characters of a question, an answer and a reason in the table."""
_QUOTED = 240
"""The most characters of them in the summary."""
_MOST_DIFFS = 5_000
"""The most answers that are compared with their previous version."""
_RULES = {
    "majority": "The majority of the judges decides.",
    "all": "An answer passes if all judges pass it.",
    "any": "An answer passes if one of the judges passes it.",
}
"""How the verdicts of judges make one, but for a mean score."""
MOST_EXPLAINED = 100
"""The most results whose verdict is explained by its history."""

if TYPE_CHECKING:
    from evalstore.results.value_text import Token


class CaseData:
    """Makes the table of cases and the blocks of their details."""

    def __init__(
        self,
        reader: AnswerReader,
        diff: Diff | None,
        history: CaseHistory,
        name_prompts: Callable[[tuple[str | None, ...]], Mapping[str | None, str]],
        explain: Callable[[ResultView], VerdictReasons],
        listed: Iterable[Result],
        labelled: Mapping[CellKey, str],
        breaks: Iterable[BrokenCase],
    ) -> None:
        """`name_prompts` names the system prompts of a case that has several.

        `explain` says why a result has its verdict; `listed` are those whose texts the summary
        quotes, `labelled` says how results were labelled after the run, `breaks` broke in
        earlier ones.
        """
        self.table = CaseTable(reader.run.id, since=side_name(diff.was) if diff else "")
        self.images: dict[str, FileRef] = {}
        """The pictures in the conversations by id."""
        self._reader, self._history = reader, history
        self._labels: dict[str, list[Label]] = {}
        """The labels on each answer by its session, also those that no longer count."""
        for label in read_labels(reader.store).last():
            self._labels.setdefault(label.sessions[0], []).append(label)
        self._name_prompts, self._explain = cache(name_prompts), explain
        self._explained = 0
        self._reasons_of: dict[CellKey, VerdictReasons] = {}
        """Those of the cases of a block that were explained."""
        self._listed, self._labelled = {result.cell for result in listed}, labelled
        self._pairs = ChangedPairs(diff, breaks)
        self._diff = diff
        self._undiffed = 0
        self._before: Mapping[str, str] = {}
        """The earlier answers of the cases of a block, by the id of the session."""
        self._numbers: dict[str, dict[str, int]] = {"files": {}, "models": {}, "tags": {}}

    def blocks(self, results: Iterable[tuple[Result, Case]]) -> Iterator[Json]:
        """Yield the details of the cases in blocks; the table is complete afterwards."""
        for batch in _whole_cases(results):
            self._history.read_batch(batch)
            cases: dict[tuple[str, str, int], list[ResultView]] = {}
            for view in self._reader.read(batch):
                result = view.result
                place = result.file, result.row, result.prompt_number
                cases.setdefault(place, []).append(view)
            listed = list(cases.values())
            for first in range(0, len(listed), CASES_IN_A_BLOCK):
                self.table.blocks.append(len(self.table.rows))
                yield self._block(listed[first : first + CASES_IN_A_BLOCK])

    def _block(self, cases: Sequence[Sequence[ResultView]]) -> Json:
        # The earlier answers are read together, as far as they are shown.
        pairs = self._pairs.read(view.result for views in cases for view in views)
        has_room = self._undiffed < _MOST_DIFFS
        shown = [self._diff.shown_sessions(pair)[0] for pair in pairs if has_room and self._diff]
        self._before = self._reader.answers([id for id in shown if id])
        self._reasons_of.clear()
        texts = TextTable()
        return {"texts": texts.entries, "cases": [self._case(views, texts) for views in cases]}

    def _case(self, views: Sequence[ResultView], texts: TextTable) -> Json:
        result, case = views[0].result, views[0].case
        tests = list(dict.fromkeys(case.tests))
        conversations = [self._reader.conversation(test, result.prompt) for test in tests]
        question = _question(conversations[0])
        self.table.rows.append(self._row(views, question))
        criteria = self._reader.criteria(case.evaluation)
        request = list(map(safe, self._reader.request(tests[0])))
        for view in views:
            if view.result.cell in self._listed:
                self.table.quoted[view.result.cell] = self._quote(view, question)
        return {
            "turns": [self._conversation(turns, texts) for turns in conversations],
            **({"request": request} if request else {}),
            **(self._criteria(criteria, texts) if criteria else {}),
            "cells": [self._cell(view, tests, texts) for view in views],
        }

    def _row(self, views: Sequence[ResultView], question: str) -> TableRow:
        result, case = views[0].result, views[0].case
        return TableRow(
            self._number("files", result.file),
            result.row,
            result.prompt_number,
            self._name_prompts(case.prompts)[result.prompt] if len(case.prompts) > 1 else "",
            tuple(self._number("tags", tag) for tag in case.tags if tag not in SPECIAL_TAGS),
            {
                self._number("models", view.result.model): (
                    view.result.word or "answered",
                    self._pairs.change(view.result),
                    one_line_of(self._answer(view), _SNIPPET),
                    one_line_of(_reason(view), _SNIPPET),
                )
                for view in views
            },
            one_line_of(question, _SNIPPET),
        )

    def _number(self, kind: str, name: str) -> int:
        numbers = self._numbers[kind]
        if name not in numbers:
            numbers[name] = len(numbers)
            getattr(self.table, kind).append(name)
        return numbers[name]

    def _criteria(self, criteria: Criteria, texts: TextTable) -> dict[str, Json]:
        """Return the instructions and the checks, as far as there are any."""
        checks = [
            [texts.add(text, markdown=False) for text in (f"{check.meaning}:", check.text)]
            for check in criteria.checks
        ]
        told = {"told": texts.add(criteria.instructions)} if criteria.instructions else {}
        return told | ({"checks": checks} if checks else {})

    def _quote(self, view: ResultView, question: str) -> QuotedCell:
        """Return what the summary shows of a changed result."""
        pair, verdict = self._pairs.pair(view.result), view.result.verdict
        has_flipped = self._pairs.change(view.result) in ("broke", "fixed")
        before, now = self._diff.shown_sessions(pair) if pair and self._diff else (None, None)
        shown = [session.answers[-1] for session in view.sessions if session.id == now]
        was, since = self._before.get(before or "", ""), ""
        if not (has_flipped or (pair and pair.is_now_undecided)):
            history = self._explained_view(view).history
            was, run = self._last_passed(view), self._pairs.broke_in(view.result)
            since = history.changes_in(run) if history else ""
        return QuotedCell(
            one_line_of(question),
            one_line_of(was),
            one_line_of(next((text for text in shown if text), self._answer(view))),
            list(
                dict.fromkeys(
                    (safe(vote.by), one_line_of(": ".join(filter(None, (label, vote.feedback)))))
                    for vote in _deciding(view)
                    for label in [f"labelled {vote.verdict}" if vote.is_person else ""]
                    if (label and verdict in (vote.verdict, "undecided"))
                    or (vote.feedback and "pass" not in (vote.verdict, verdict))
                )
            ),
            since,
        )

    def _explained_view(self, view: ResultView) -> VerdictReasons:
        key = view.result.cell
        if key not in self._reasons_of:
            self._reasons_of[key] = self._explain(view)
        return self._reasons_of[key]

    def _last_passed(self, view: ResultView) -> str:
        """Return the answer with which a result that does not pass last passed; empty: the same."""
        history, sessions = self._explained_view(view).history, view.result.sessions
        former = history.former if history and not history.passes else None
        if former is None or not former.sessions or former.sessions == sessions:
            return ""
        shown = self._explained_view(view).session
        at = sessions.index(shown) if shown in sessions else 0
        id = former.sessions[min(at, len(former.sessions) - 1)]
        text = self._reader.answers([id]).get(id, "")
        return text if text != self._answer(view) else ""

    def _answer(self, view: ResultView) -> str:
        """Return the last turn of the answer; of several, that of one that decided the verdict."""
        with_verdict = {
            id
            for attempt in view.attempts
            if attempt.verdict == view.result.verdict
            for id in attempt.sessions
        }
        sessions = [each for each in view.sessions if each.id in with_verdict] or view.sessions
        if len(view.case.tests) > 1 and sessions:  # judged together
            id = find_failing_answer(self._reader.store, view.result, sessions[0].id)
            sessions = [each for each in sessions if each.id == id] or sessions
        return sessions[0].answers[-1] if sessions and sessions[0].answers else ""

    def _conversation(self, conversation: Iterable[TurnView], texts: TextTable) -> Json:
        turns = []
        for turn in conversation:
            if turn.answer is not None:
                turns.append([turn.role, "", -1])
                continue
            self.images |= {image.id: image for image in turn.images}
            turns.append(
                [
                    turn.role,
                    safe(turn.name),
                    texts.add(turn.text),
                    *(
                        [[[image.id, safe(image.path)] for image in turn.images]]
                        if turn.images
                        else []
                    ),
                ]
            )
        return turns

    def _cell(self, view: ResultView, tests: Sequence[str], texts: TextTable) -> Json:
        result = view.result
        attempts = attempts_text(attempt.verdict for attempt in view.attempts)
        if attempts and self._pairs.change(result):
            self.table.attempts[result.cell] = attempts
        verdicts = {id: attempt.verdict for attempt in view.attempts for id in attempt.sessions}
        document = {
            "model": self._number("models", result.model),
            "attempts": attempts or None,
            "labelled": safe(self._labelled.get(result.cell, "")) or None,
            "sessions": [
                [
                    tests.index(session.test) if session.test in tests else 0,
                    [texts.add(answer) for answer in session.answers],
                    f"{short(session.id)}, {facts_text(session.facts, None)}",
                    *([verdicts[session.id]] if session.id in verdicts else []),
                ]
                for session in view.sessions
            ],
            "votes": [
                *(_vote(vote, texts) for vote in view.judgements),
                *(
                    [it.verdict, f"{safe(label_by(it.person))} (for other instructions or checks)"]
                    + ([texts.add(it.note, markdown=False)] if it.note else [])
                    for it in chain.from_iterable(
                        map(self._labels.get, result.sessions, repeat(()))
                    )
                    if it.evaluation != result.evaluation
                ),
            ],
            "rule": _rule_text(view, self._reader.run.verdict_rule) or None,
            "failures": list(map(safe, view.failures)),
            "history": self._history.of(result, view.case),
            "was": self._previous(view, texts),
            "why": self._reasons(view),
            "passed": self._since_passed(view),
            "score": None if result.score is None else f"{result.score:.2g}",
        }
        return {name: value for name, value in document.items() if value not in ([], None)}

    def _reasons(self, view: ResultView) -> Json:
        """Return why a result has its verdict, if it does not pass or was fixed: titles and lines.

        A line is its indent and pairs of a text and the name of its colour.
        """
        result = view.result
        if result.word not in FAILING and self._pairs.change(result) not in ("broke", "fixed"):
            return None
        if self._explained >= MOST_EXPLAINED:
            self.table.unexplained += 1
            return None
        self._explained += 1
        sections = explanation_sections(self._explained_view(view), None, signs=SIGNS)
        return [
            [title, [[line.indent, *line.spans] for line in lines]] for title, lines in sections
        ]

    def _since_passed(self, view: ResultView) -> Json:
        """Return the run in which what is still broken last passed, and how the answer differs.

        None for other results, and for one that was not explained.
        """
        reasons = self._reasons_of.get(view.result.cell)
        if reasons is None or not self._pairs.broke_in(view.result):
            return None
        history, was = reasons.history, self._last_passed(view)
        if history is None or history.before is None or not was:
            return None
        diff = _differ(was, self._answer(view))
        return {"since": side_name(history.before.id), "word": "pass", "diff": diff}

    def _previous(self, view: ResultView, texts: TextTable) -> Json:
        """Return the reason for a change, the previous feedback and the difference of the answers.

        None without a change.
        """
        pair = self._pairs.pair(view.result)
        if pair is None or self._diff is None or pair.was is None:
            return None
        was = pair.was
        before, now = self._diff.feedback_on(pair)
        document: dict[str, Json] = {
            "word": was.word or "answered",
            **({"run": short(self._diff.earlier[was])} if was in self._diff.earlier else {}),
            "reason": safe(self._diff.reason(pair)),
            "feedback": texts.add(before if before != now else "", markdown=False),
        }
        before_id, now_id = self._diff.shown_sessions(pair)
        answers = {session.id: session.answers for session in view.sessions}
        if before_id and now_id in answers and before_id != now_id:
            if self._undiffed >= _MOST_DIFFS:
                self.table.undiffed += 1
            else:
                self._undiffed += 1
                before = self._before.get(before_id, "")
                now = answers[now_id][-1] if answers[now_id] else ""
                document["diff"] = _differ(before, now)
        return document


def _differ(was: str, now: str) -> Json:
    """Return the hunks in which two answers differ, as the page shows them."""
    return [
        [[line.sign, *([safe(text), int(new)] for text, new in line.pieces)] for line in hunk]
        for hunk in diff_lines(was, now)
    ]


def _whole_cases(
    results: Iterable[tuple[Result, Case]],
) -> Iterator[list[tuple[Result, Case]]]:
    """Yield the results in batches; those of a case with all its prompts are in the same one."""
    waiting: list[tuple[Result, Case]] = []
    for _, listed in groupby(results, lambda entry: entry[0][:2]):
        waiting += listed
        if len(waiting) >= batches.SMALL_SIZE:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def one_line_of(text: str, most: int = _QUOTED) -> str:
    """Return the start of a text in one line."""
    line = " ".join(text[: 4 * most].split())
    return safe(line if len(line) <= most else f"{line[: most - 1]}…")


def _question(conversation: Sequence[TurnView]) -> str:
    """Return what is asked first."""
    asked = [turn for turn in conversation if turn.answer is None and turn.text]
    return next(
        (turn.text for turn in asked if turn.role == "user"), asked[-1].text if asked else ""
    )


def _deciding(view: ResultView) -> Sequence[Judgement]:
    """Return the judgements that decide a result: on a labelled answer, the labels."""
    labelled = {vote.sessions for vote in view.judgements if vote.is_person}
    return [it for it in view.judgements if it.is_person or it.sessions not in labelled]


def _rule_text(view: ResultView, rule: str) -> str:
    """Return how verdicts on the same answer that differ make one; empty if none do."""
    cast = sorted((it for it in view.judgements if it.counts), key=lambda it: it.sessions)
    for _, votes in groupby(cast, lambda it: it.sessions):
        given = [it for it in votes if it.verdict != "none"]
        labels = {it.verdict for it in given if it.is_person}
        if labels and len({it.verdict for it in given}) > 1:
            more = "; the majority of the labels decides" * (len(labels) > 1)
            return f"Labels of people overrule judges and checks{more}."
        checks = {it.verdict for it in given if it.evaluator == CHECKS}
        if not labels and checks <= {"pass"} and len({it.verdict for it in given}) > 1:
            return describe_rule(rule)
    return ""


def describe_rule(rule: str) -> str:
    """Return how the verdicts of judges make one."""
    mean = f"An answer passes if the mean score of its judges is at least {rule[2:].strip()}."
    return _RULES.get(rule, mean)


def _reason(view: ResultView) -> str:
    """Return who labelled a result, in a tie how, or else one judge's words on why it fails."""
    votes = _deciding(view)
    same = [vote for vote in votes if vote.verdict == view.result.verdict]
    people = (
        f"{label_by(vote.by)}: {vote.feedback if same else vote.verdict}".removesuffix(": ")
        for vote in same or votes
        if vote.is_person
    )
    reasons = (vote.feedback for vote in same or votes if vote.feedback)
    shown = () if view.result.verdict == "pass" else chain(reasons, view.failures)
    return " · ".join(people) or next(iter(shown), "")


def _vote(vote: Judgement, texts: TextTable) -> Json:
    """Return the verdict, who gave it, and the numbers of its texts; without what is missing."""
    checks = [
        [check.verdict, texts.add(check_text(check), markdown=False)] for check in vote.checks
    ]
    is_said = any(check.feedback and check.feedback in vote.feedback for check in vote.checks)
    parts: list[Json] = [
        vote.verdict,
        judgement_title(vote),
        texts.add(vote.feedback, markdown=False) if vote.feedback and not is_said else None,
        texts.add(vote.reasoning, markdown=False) if vote.reasoning else None,
        checks or None,
    ]
    while parts[-1] is None:
        parts.pop()
    return parts


# --- finds the changed pairs of a comparison by their newer results, reading those of some at a t


class ChangedPairs:
    """The pairs that changed, and the kind of each change, by the cell of the newer result."""

    def __init__(self, diff: Diff | None, breaks: Iterable[BrokenCase]) -> None:
        self._earlier = {digest_of_cell(it.result): it.run for it in breaks}
        """By the digest of a cell the run in which it broke, if that was an earlier one."""
        self._changes: dict[int, tuple[str, tuple[int, int]]] = {}
        """By the digest of a cell its change among `CHANGES`, and the numbers of its results."""
        self._read: dict[CellKey, Pair] = {}
        if diff is None:
            return
        self._sides = diff.comparison.sides
        for name in CHANGES[:-1]:
            for numbers in getattr(diff.comparison, name).numbers():
                self._changes[self._sides.now.places[-1][numbers[1]]] = name, numbers

    def change(self, result: Result) -> str:
        """Return the kind of the change of a result; empty if it has not changed.

        What an earlier run broke is still broken if it was only asked or judged again since.
        """
        if not (self._changes or self._earlier):
            return ""
        digest = digest_of_cell(result)
        change = self._changes.get(digest, ("", ()))[0]
        is_judged = result.word != "pending"
        is_earlier = is_judged and digest in self._earlier and change in ("", "changed")
        return CHANGES[-1] if is_earlier else change

    def broke_in(self, result: Result) -> str:
        """Return the run that broke a result that is still broken; empty of another."""
        return self._earlier.get(digest_of_cell(result), "") if self._earlier else ""

    def read(self, results: Iterable[Result]) -> list[Pair]:
        """Read the pairs of these results for `pair`, and return those that changed."""
        digests = map(digest_of_cell, results) if self._changes else ()
        numbers = [self._changes[each][1] for each in digests if each in self._changes]
        pairs = self._sides.read(numbers) if numbers else []
        self._read = {pair.now.cell: pair for pair in pairs if pair.now}
        return pairs

    def pair(self, result: Result) -> Pair | None:
        """Return the pair of one of the results that were read last; None if it is unchanged."""
        return self._read.get(result.cell)


# --- collects the texts of a part of the report, each once


LONGEST = 100_000
"""The most characters of a text; the rest is left out, which the report says."""


class TextTable:
    """Texts by number: a text, or a list of a text and its packed tree if it has Markdown."""

    def __init__(self) -> None:
        self.entries: list[Json] = []
        self._numbers: dict[tuple[str, bool], int] = {}

    def add(self, text: str, *, markdown: bool = True) -> int:
        """Return the number of a text; without `markdown` it is only shown as it is."""
        key = text, markdown
        if key not in self._numbers:
            self._numbers[key] = len(self.entries)
            self.entries.append(_markdown_entry(text) if markdown else shown_text(text))
        return self._numbers[key]


@lru_cache(maxsize=1024)
def _markdown_entry(text: str) -> Json:
    shown, tree = shown_text(text), markdown_tree(text)
    return shown if tree is None else [shown, packed(tree, shown)]


def shown_text(text: str) -> str:
    """Return a text with control characters as escapes; a very long one is cut, with a note."""
    rest = len(text) - LONGEST
    note = f"\n\n[{rest:,} more characters are left out]" if rest > 0 else ""
    return _escape(text[:LONGEST]) + note


_JOINER = re.compile(
    "(?<=[^\\x00-\\x7f\u200c\u200d])([\u200c\u200d])(?=[^\\x00-\\x7f\u200c\u200d])"
)
"""What joins or parts two letters or emoji, as in Persian."""


def _escape(text: str) -> str:
    """Return a text with control characters as escapes, but for joiners."""
    parts = _JOINER.split(text)
    return "".join(part if at % 2 else safe(part, lines=True) for at, part in enumerate(parts))


_PACKED = 8
"""The fewest letters of a part of a tree that is packed."""
_SPAN = 131_072
"""More than the letters of a part; the script has it, too."""


def packed(nodes: Sequence[Json], text: str) -> list[Json]:
    """Return a tree in which a number stands for each part that is in the text, too.

    It has how many letters lie between it and the part before, and its length.
    """
    at = 0

    def pack(node: Json) -> Json:
        nonlocal at
        if isinstance(node, list):
            return [*map(pack, node)]
        if not isinstance(node, str) or not _PACKED <= len(node) < _SPAN:
            return node
        start = text.find(node, at)
        if start < 0:
            return node
        number = (start - at) * _SPAN + len(node)
        at = start + len(node)
        return number

    is_counted_alike = text.isascii() or max(text) <= "\uffff"  # a script counts halves
    return [*map(pack, nodes)] if is_counted_alike else [*nodes]


# --- turns Markdown of models into trees that the page builds elements from


_LINKS = ("http://", "https://", "mailto:")
_LEAVES = {"hr": "hr", "hardbreak": "br"}


def markdown_tree(text: str) -> Json:
    """Return the tree of a text; None if it is shown as it is written.

    A node is a text, or a list of the name of an element, its link if it is an `a`, and its
    children.
    """
    shown = _escape(text)
    tokens = parse_markdown(shown)
    if tokens is None:
        return None
    nodes = _children(tokens)
    return nodes if shows_all(shown, _texts(nodes)) else None


def _children(tokens: Iterable[Token]) -> list[Json]:
    """Return the nodes of tokens in which each element has an opening and a closing token."""
    stack: list[list[Json]] = [[]]
    for token in tokens:
        if token.type == "link_open":
            stack.append(["a", _address(token), link_target(token, "href")])
        elif token.type == "link_close":
            _, address, target, *inner = stack.pop()
            if address:
                stack[-1].append(["a", address, *inner])
                target = target.removeprefix(address).strip()
            else:
                stack[-1] += inner
            stack[-1] += [f" ({target})"] if target else []
        elif token.nesting == 1:
            node: list[Json] = [token.tag]
            stack[-1].append(node)
            stack.append(node)
        elif token.nesting == -1:
            stack.pop()
        elif token.type == "inline":
            stack[-1] += _children(token.children or ())
        elif token.type == "softbreak":
            stack[-1].append("\n")
        elif token.type in _LEAVES:
            stack[-1].append([_LEAVES[token.type]])
        elif token.type == "image":
            alt = f"{token.content}: " if token.content else ""
            stack[-1].append(f"[image {alt}{link_target(token, 'src')}]")
        elif token.type == "code_inline":
            stack[-1].append(["code", token.content])
        elif token.type in ("fence", "code_block"):
            info = token.info.strip()
            stack[-1] += [["small", info]] if info else []
            stack[-1].append(["pre", token.content.removesuffix("\n")])
        elif token.content:
            stack[-1].append(token.content)
    return stack[0]


def _address(token: Token) -> str:
    """Return the address of a link; empty unless it is that of a web page or of a mailbox."""
    address = str(token.attrGet("href") or "")
    return address if address.lower().startswith(_LINKS) else ""


def _texts(nodes: Iterable[Json]) -> Iterator[str]:
    """Yield the texts of nodes; the address of a link is in its tooltip, `ol` counts from 1."""
    for node in nodes:
        if isinstance(node, str):
            yield node
        else:
            yield from map(str, range(1, len(node) if node[0] == "ol" else 0))
            yield from _texts(node[1:])


# --- finds the verdicts of cases in earlier runs


MOST_RUNS = 10
"""The number of earlier runs that are searched."""


class CaseHistory:
    """Finds the earlier verdicts of the cases of a batch, newest first.

    A run that has the same results of a test file as a newer one is left out.
    """

    def __init__(self, store: Store, folder: str, run: Run | None, rows: RowResults) -> None:
        """`folder` is that of the test files; without a stored run there is no history."""
        self.runs: list[Run] = []
        """The earlier runs, newest first."""
        self._rows = rows
        self._entries: list[dict[str, str]] = []
        self._indices: list[CellIndex] = []
        """The results that each run has of the cases of the batch."""
        self._labels: dict[str, str] = {}
        """Who gave each label."""
        if run is None:
            return
        labels = (each for each in store.find_labels() if each.verdict != "none")
        self._labels = {each.id: safe(each.person) for each in labels}
        leaves = read_tree(run.results, store.load_nodes)
        earlier = EarlierRuns(store, PathHistory(store, folder, run.snapshot, {}))
        for other, entries in islice(earlier.before(run, set(leaves)), MOST_RUNS):
            self.runs.append(other)
            self._entries.append(
                {path: leaf for path, leaf in entries.items() if leaf != leaves[path]}
            )

    def read_batch(self, batch: Sequence[tuple[Result, Case]]) -> None:
        """Read the earlier results of the cases of a batch."""
        self._indices = [
            index_cells(self._rows, entries, (result for result, _ in batch))
            for entries in self._entries
        ]

    def of(self, result: Result, case: Case) -> Json:
        """Return the number of each earlier run, the verdict on the case, and who labelled it."""
        found = (index.find(result, case.prompts) for index in self._indices)
        return [
            [number, earlier[0].word or "answered", *([", ".join(people)] if people else [])]
            for number, earlier in enumerate(found)
            if earlier
            for people in (
                [self._labels[id] for id in earlier[0].evaluations if id in self._labels],
            )
        ]
