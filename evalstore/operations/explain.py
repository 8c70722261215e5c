"""Why a question or a judgement is in the plan: what differs from its nearest stored relative.

The nearest relative is the same file and row in the newest run that knew it otherwise.
No reason is guessed: each is a difference between two stored descriptions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from evalstore import hashing
from evalstore.operations.renames import pair_with_workspace
from evalstore.operations.retries import failed_judgements, failed_questions
from evalstore.plan import CHECKS, Ask, Judgement, Plan
from evalstore.report.case_edits import differ_cases
from evalstore.report.difference import (
    Difference,
    differ_evaluations,
    differ_models,
    differ_prompts,
    differ_tests,
    shorten,
)
from evalstore.store.trees import read_tree
from evalstore.values import RECORDED, Case, CaseFile, Json, Question

if TYPE_CHECKING:
    from evalstore.cells import Cell
    from evalstore.operations.desk import Desk
    from evalstore.store.failures import Place, Trouble

_NAMED = (
    *("tool ", "schema ", "file ", "special tag ", "model ", "check ", "instructions "),
    *("recorded answer", "repetitions", "conversation ", "order of ", "judged by"),
    "evaluator prompt ",
)
"""Differences that say by themselves what changed."""
_RUNS_BACK = 20
"""How many runs are searched for a relative."""


class Reason(NamedTuple):
    """Why something is to be done, and the first thing that differs."""

    text: str
    was: str | None = None
    now: str | None = None
    relative: str | None = None
    """Id of the question that is the nearest relative, when there is one."""


class _Known(NamedTuple):
    """How a run knew a case."""

    case: Case
    run: Json
    file: CaseFile


@dataclass
class Explainer:
    """Explains the items of one plan."""

    desk: Desk
    _runs: list[Json] | None = None
    _trees: dict[str, dict[str, str]] = field(default_factory=dict)
    _pairs: dict[str, dict[str, str]] = field(default_factory=dict)
    """By snapshot: the path that each test file had in it."""
    _files: dict[str, CaseFile] = field(default_factory=dict)
    _contents: dict[str, Json] = field(default_factory=dict)

    def asks(self, plan: Plan) -> list[tuple[Ask, Reason]]:
        """Every question with its reason."""
        failed = failed_questions(self.desk, plan) if self.runs else {}
        self._prefetch("test", (id for ask in plan.asks for id in self._tests_near(ask.cell)))
        return [(ask, self._ask(ask, failed)) for ask in plan.asks]

    def judgements(self, plan: Plan) -> list[tuple[Judgement, Reason]]:
        """Every judgement with its reason."""
        failed = failed_judgements(self.desk, plan) if plan.judgements else {}
        return [(one, self._judgement(one, plan, failed)) for one in plan.judgements]

    # --- history

    @property
    def runs(self) -> list[Json]:
        """The contents of the newest runs, newest first."""
        if self._runs is None:
            self._runs = [content for _, content in self.desk.store.find_runs(limit=_RUNS_BACK)]
        return self._runs

    def tree(self, root: str) -> dict[str, str]:
        """The entries of a snapshot."""
        if root not in self._trees:
            self._trees[root] = read_tree(root, self.desk.store.load_nodes)
            missing = set(self._trees[root].values()) - self._files.keys()
            self._files |= self.desk.store.find_case_files(list(missing))
        return self._trees[root]

    def known(self, file: str, case: Case) -> Iterator[_Known]:
        """How earlier runs knew this case, newest first; equal snapshots count once."""
        seen: set[str] = set()
        for run in self.runs:
            root = run["snapshot"]
            path = self._path_in(root, file)
            node = self.tree(root)[path] if path else None
            key = f"{node}:{json.dumps(run.get('candidates'))}"
            if node is None or key in seen:
                continue
            seen.add(key)
            old = self._files.get(node)
            found = same_row(case, old) if old else None
            if found and old:
                yield _Known(found, run, old)

    def _path_in(self, root: str, file: str) -> str | None:
        """The path that a test file had in a snapshot; None: it was not there."""
        if root not in self._pairs:
            self._pairs[root] = pair_with_workspace(self.desk, self.tree(root), self._files)
        return self._pairs[root].get(file)

    # --- contents

    def find(self, kind: str, id: str) -> Json:
        """The content of a version, read now or stored; None when it is nowhere."""
        if id in self._contents:
            return self._contents[id]
        fresh = self.desk.reading.contents.get(id) or self.desk.contents.get(id)
        content = (
            json.loads(fresh[1]) if fresh else self.desk.store.load_contents(kind, [id]).get(id)
        )
        if content is not None:
            self._contents[id] = content
        return content

    def _prefetch(self, kind: str, ids: Iterable[str]) -> None:
        wanted = [id for id in dict.fromkeys(ids) if id not in self._contents]
        self._contents |= self.desk.store.load_contents(kind, wanted)

    def _tests_near(self, cell: Cell) -> Iterator[str]:
        for known in self.known(cell.file, cell.case):
            yield known.case.tests[0]
            break

    # --- reasons

    def _ask(self, ask: Ask, failed: dict[str, Trouble]) -> Reason:
        cell = ask.cell
        if ask.cut_at:
            limit = cell.case.limit or cell.candidate.limit
            return Reason(
                f"answer was cut at {ask.cut_at} tokens, limit is now {limit or 'none'}",
                str(ask.cut_at),
                str(limit) if limit else None,
                ask.question_id,
            )
        if ask.why:
            return Reason(ask.why, relative=ask.question_id)
        if ask.question_id in failed:
            return Reason(f"retry of a failure: {shorten(failed[ask.question_id].message)}")
        wanted = cell.wanted_of(ask.question_id)
        if ask.count < wanted:
            have = wanted - ask.count
            what = "attempts" if wanted == cell.attempts else "answers"
            return Reason(f"{what} {have} -> {wanted}", str(have), str(wanted), ask.question_id)
        is_known = False
        for known in self.known(cell.file, cell.case):
            is_known = True
            reason = self._differences(ask, known)
            if reason:
                return reason
        if is_known:
            return Reason("not taken yet" if cell.case.recorded else "not answered yet")
        if any(self._path_in(run["snapshot"], cell.file) for run in self.runs):
            return Reason("new row")
        return Reason("new test")

    def _differences(self, ask: Ask, known: _Known) -> Reason | None:
        """What differs from a relative; None when nothing does."""
        case, cell, number = known.case, ask.cell, ask.number
        model = next(
            (one for one in known.run.get("candidates", ()) if one["id"] == cell.candidate.id),
            None,
        )
        relative = self._relative(cell, case, model)
        if cell.case.tests[number] not in case.tests:
            old = case.tests[min(number, len(case.tests) - 1)]
            if len(case.tests) > 1 and old in cell.case.tests:
                return Reason("new conversation", relative=relative)
            found = differ_tests(
                self.find("test", old) or {},
                self.find("test", cell.case.tests[number]) or {},
                self.find,
                self.desk.name_of_version,
            )
            return _reason(found, "test changed", relative)
        if cell.prompt not in case.prompts:
            position = cell.case.prompts.index(cell.prompt)
            before = case.prompts[position] if position < len(case.prompts) else None
            if before is None or cell.prompt is None:
                return Reason(
                    "system prompt is new" if cell.prompt else "without a system prompt now",
                    relative=relative,
                )
            found = differ_prompts(
                self.find("prompt", before) or {}, self.find("prompt", cell.prompt) or {}
            )
            return _reason(found, "system prompt changed", relative)
        if cell.case.recorded:
            if case.recorded == cell.case.recorded:
                return None
            was, now = self._recorded(case), self._recorded(cell.case)
            return _reason([Difference("recorded answer", was, now)], "recorded answer")
        if model is None:
            return Reason(f"new candidate {cell.candidate.id}")
        if model["model"] != cell.question.model:
            found = differ_models(
                self.find("model", model["model"]) or {},
                self.find("model", cell.question.model) or {},
            )
            return _reason(found, "model changed", relative)
        if model.get("temperature") != cell.candidate.temperature and cell.case.temperature is None:
            was, now = str(model.get("temperature")), str(cell.candidate.temperature)
            return Reason(f"model option temperature {was} -> {now}", was, now, relative)
        return None

    def _recorded(self, case: Case) -> str:
        """The answers that a row brings itself."""
        version = self.find("model", case.recorded) if case.recorded else None
        return "\n".join(version["options"]["answers"]) if version else ""

    def _relative(self, cell: Cell, case: Case, model: Json) -> str | None:
        if model is None:
            return None
        prompt = cell.prompt if cell.prompt in case.prompts else case.prompts[0]
        temperature = model.get("temperature") if case.temperature is None else case.temperature
        return hashing.question_id(
            Question(case.tests[0], prompt, model["model"], temperature, case.seed)
        )

    def _judgement(self, one: Judgement, plan: Plan, failed: dict[Place, Trouble]) -> Reason:
        subject = one.subject
        if subject is None:
            return Reason("new answer")
        if one.why:
            return Reason(one.why)
        evaluation = one.cell.case.evaluation
        assert evaluation is not None
        votes = plan.votes.get(subject, [])
        here = [vote for vote in votes if vote.evaluation == evaluation]
        same = [vote for vote in here if vote.evaluator == one.evaluator]
        if same and one.judge:
            was, now = str(len(same)), str(one.judge.times)
            return Reason(f"evaluationsPerEvaluator {was} -> {now}", was, now)
        if not here and votes:
            relative = self._evaluation_before(one, votes[-1].evaluation)
            found = differ_evaluations(
                self.find("evaluation", relative) or {},
                self.find("evaluation", evaluation) or {},
                self.find,
            )
            return _reason(found, "evaluation changed")
        place = (subject, evaluation, one.evaluator)
        if place in failed:
            message = failed[place].message
            return Reason(f"retry of a failure: {shorten(message)}")
        by_others = [vote for vote in here if vote.evaluator != CHECKS]
        if by_others and one.judge:
            return self._other_evaluator(by_others[-1].evaluator, one.judge.evaluator, one.judge.id)
        return self._judged_otherwise(one) or Reason("not judged yet")

    def _judged_otherwise(self, one: Judgement) -> Reason | None:
        """What differs from the nearest relative that this candidate answered; None: nothing."""
        cell = one.cell
        for known in self.known(cell.file, cell.case):
            ids = [candidate["id"] for candidate in known.run.get("candidates", ())]
            if cell.prompt not in known.case.prompts or cell.candidate.id not in (*ids, RECORDED):
                continue
            found = list(
                differ_cases(
                    replace(known.case, prompts=cell.case.prompts),
                    cell.case,
                    self.find,
                    self.desk.name_of_version,
                )
            )
            if found:
                return _reason(found, "case changed")
        return None

    def _evaluation_before(self, one: Judgement, newest: str) -> str:
        """The evaluation version this case had last, else the newest that judged the session."""
        for known in self.known(one.cell.file, one.cell.case):
            if known.case.evaluation and known.case.evaluation != one.cell.case.evaluation:
                return known.case.evaluation
        return newest

    def _other_evaluator(self, old: str, new: str, id: str) -> Reason:
        was, now = self.find("evaluator", old) or {}, self.find("evaluator", new) or {}
        if was.get("model") != now.get("model"):
            return Reason(f"new evaluator {id}")
        if was.get("prompt") != now.get("prompt"):
            found = differ_prompts(
                self.find("prompt", was.get("prompt", "")) or {},
                self.find("prompt", now.get("prompt", "")) or {},
            )
            return _reason(found, "evaluator prompt changed")
        return Reason(
            f"evaluator temperature {was.get('temperature')} -> {now.get('temperature')}",
            str(was.get("temperature")),
            str(now.get("temperature")),
        )


def _reason(found: list[Difference], what: str, relative: str | None = None) -> Reason:
    if not found:
        return Reason(what, relative=relative)
    first, *rest = found
    more = f" (and {len(rest)} more)" if rest else ""
    text = str(first) if first.what.startswith(_NAMED) else f"{what}: {first}"
    return Reason(text + more, first.was, first.now, relative)


def same_row(case: Case, file: CaseFile) -> Case | None:
    """The case of the same row: by its values, by its label, or the only one."""
    for attribute in ("key", "row"):
        for old in file.cases:
            if getattr(old, attribute) == getattr(case, attribute):
                return old
    return file.cases[0] if len(file.cases) == 1 and not case.row else None
