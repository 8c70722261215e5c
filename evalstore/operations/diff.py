"""`diff`: two sides paired case by case, each a run or the workspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from evalstore.assemble import show_answer
from evalstore.errors import EvalstoreError
from evalstore.fields import suggest
from evalstore.operations.contents import Contents
from evalstore.operations.desk import Desk, open_desk, open_store
from evalstore.operations.file_edits import find_edits
from evalstore.operations.orders import Wanted, Where, is_partial
from evalstore.operations.results import (
    as_result,
    join_feedback,
    prompt_labels,
    read_results,
    settle,
)
from evalstore.report.compare import Comparison, Pair, Result, compare, compare_models
from evalstore.report.difference import Difference, unified
from evalstore.selection import Selection
from evalstore.store.revisions import resolve_run
from evalstore.store.trees import read_tree
from evalstore.values import RECORDED, Case, CaseFile, Json

if TYPE_CHECKING:
    from evalstore.report.statistics import Rate

WORKSPACE = "workspace"


@dataclass
class _Side:
    name: str
    results: list[Result]
    nodes: dict[str, str]
    """The snapshot: test file -> leaf."""
    files: dict[str, CaseFile]
    models: set[str] | None
    """The candidates; None when the run was restricted to some of them."""
    partial: bool = False
    """Whether the run was about a selection of the cases."""


@dataclass
class Diff:
    """What differs between two sides."""

    was: str
    now: str
    """A run's id, or `workspace`."""
    comparison: Comparison
    edits: dict[str, list[Difference]]
    """Test file -> what was edited."""
    feedback: dict[str, str]
    answers: dict[str, str] = field(default_factory=dict)
    """Session id -> its answer, when answers are wanted."""
    prompts: dict[str, dict[str | None, str]] = field(default_factory=dict)
    """Test files with several system prompts -> what to call each."""
    notes: list[str] = field(default_factory=list)
    """What a reader must know of the sides."""
    models: tuple[str, str] | None = None
    """The candidates that are compared, when both sides are those of one run."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        found = self.comparison
        return not (
            found.broke or found.fixed or found.changed or found.new or found.gone or self.edits
        )

    @property
    def names(self) -> tuple[str, str]:
        """What to call the sides."""
        return self.models or (_name(self.was), _name(self.now))

    def swapped(self) -> Diff:
        """The same looked at from the other side."""
        return replace(
            self,
            was=self.now,
            now=self.was,
            comparison=self.comparison.swapped(),
            edits={file: [one.swapped() for one in found] for file, found in self.edits.items()},
            models=self.models and (self.models[1], self.models[0]),
        )

    def feedback_of(self, result: Result | None) -> str:
        """The feedback on one side of a pair."""
        return join_feedback(result.evaluations, self.feedback) if result else ""

    def reason(self, pair: Pair) -> str:
        """What of the definitions or the answer changed between the two sides."""
        was, now = pair.was, pair.now
        if was is None or now is None:
            return "new" if was is None else "gone"
        found = [
            word
            for word, differs in (
                ("test changed", was.test != now.test),
                ("system prompt changed", was.prompt != now.prompt),
                ("evaluation changed", was.evaluation != now.evaluation),
            )
            if differs
        ]
        if not found and self.models is None and was.sessions != now.sessions:
            found = ["another answer"]
        is_new = self.models is None and was.evaluations != now.evaluations
        return ", ".join(found) or ("another judgement" if is_new else "")

    def answer_diff(self, pair: Pair) -> list[str]:
        """The unified diff of the first answers of both sides; empty when they are equal."""
        was = self.answers.get(pair.was.sessions[0], "") if pair.was and pair.was.sessions else ""
        now = self.answers.get(pair.now.sessions[0], "") if pair.now and pair.now.sessions else ""
        return unified(was, now, *self.names)

    def document(self) -> Json:
        """As JSON."""
        found = self.comparison
        before, after = found.rates()
        return {
            "from": self.was,
            "to": self.now,
            **({"models": list(self.models)} if self.models else {}),
            **{
                name: [self._pair(pair) for pair in getattr(found, name)]
                for name in ("broke", "fixed", "changed", "new", "gone")
            },
            "unchanged": len(found.unchanged),
            "edits": [
                {"file": file, "edits": [one.document() for one in edits]}
                for file, edits in self.edits.items()
            ],
            "statistics": {
                "pairs": len(found.pairs),
                "was": _rate(before),
                "now": _rate(after),
                "p": found.p_value(),
            },
        }

    def _pair(self, pair: Pair) -> Json:
        shown = pair.either
        document = {
            "file": shown.file,
            "row": shown.row,
            "prompt": shown.prompt,
            "model": shown.model,
            "was": self._side(pair.was),
            "now": self._side(pair.now),
            "reason": self.reason(pair),
        }
        if self.answers:
            document["answers"] = self.answer_diff(pair)
        return document

    def _side(self, result: Result | None) -> Json:
        if result is None:
            return None
        return {
            "verdict": result.verdict or ("pending" if result.evaluation else None),
            "feedback": self.feedback_of(result),
            "session": result.sessions[0] if result.sessions else None,
        }


def _name(side: str) -> str:
    """A run as people see it, or `workspace`, which is not to be cut."""
    return side if side == WORKSPACE else side[:8]


def _rate(rate: Rate) -> Json:
    return {
        "passed": rate.passed,
        "judged": rate.judged,
        "rate": rate.rate,
        "low": rate.low,
        "high": rate.high,
    }


def diff(
    where: Where,
    first: str | None = None,
    second: str | None = None,
    *,
    wanted: Wanted | None = None,
    answers: bool = False,
) -> Diff:
    """Compare a run (default: the latest) with another run, or with the workspace.

    The workspace's verdicts are those that stored answers and judgements give it now.
    """
    wanted = wanted or Wanted()
    with open_desk(where) as desk:
        desk.require_sound(wanted)
        was = _run_side(desk, first or "@")
        now = _run_side(desk, second) if second else _workspace_side(desk, wanted)
        selection = desk.selection(Wanted(paths=wanted.paths)) if wanted.paths else Selection()
        was = _follow(was, _renamed(was, now))
        was, now = (_only(side, wanted.models) for side in (was, now))
        comparison = compare(_comparable(was, now, selection), _comparable(now, was, selection))
        both = {one.file for one in was.results} & {one.file for one in now.results}
        edited = {
            path: (was.files[was.nodes[path]], now.files[node])
            for path, node in sorted(now.nodes.items())
            if was.nodes.get(path, node) != node and path in both and selection.covers_file(path)
        }
        edits = find_edits(Contents(desk.store, desk.reading.contents), edited)
        sides = _listed(comparison)
        return Diff(
            was.name,
            now.name,
            comparison,
            {path: found for path, found in edits.items() if found},
            desk.store.find_feedback(id for side in sides for id in side.evaluations),
            _answers(desk, sides) if answers else {},
            prompt_labels(desk, [*was.results, *now.results]),
            [
                f"run {side.name[:8]} was about a selection, "
                f"{len(side.results)} cases: only those are compared"
                for side in (was, now)
                if side.partial
            ],
        )


def diff_models(
    where: Where,
    revision: str | None,
    models: tuple[str, str],
    *,
    wanted: Wanted | None = None,
    answers: bool = False,
) -> Diff:
    """Compare two candidates of one run, or of the workspace when there is no revision.

    Raises `EvalstoreError` for a candidate that is not in it.
    """
    wanted = wanted or Wanted()
    with open_desk(where) as desk:
        desk.require_sound(wanted)
        side = _run_side(desk, revision) if revision else _workspace_side(desk, Wanted())
        known = {one.model for one in side.results}
        for model in models:
            if model not in known:
                raise EvalstoreError(
                    f"'{model}' is no candidate of "
                    + ("the workspace" if side.name == WORKSPACE else f"run {side.name[:8]}"),
                    hint=suggest(model, known, "candidates"),
                )
        selection = desk.selection(Wanted(paths=wanted.paths)) if wanted.paths else Selection()
        was, now = (
            [one for one in side.results if one.model == model and selection.covers_file(one.file)]
            for model in models
        )
        comparison = compare_models(was, now)
        sides = _listed(comparison)
        return Diff(
            side.name,
            side.name,
            comparison,
            {},
            desk.store.find_feedback(id for one in sides for id in one.evaluations),
            _answers(desk, sides) if answers else {},
            prompt_labels(desk, side.results),
            models=models,
        )


def _listed(found: Comparison) -> list[Result]:
    """Both sides of all pairs that are not unchanged."""
    groups = (found.broke, found.fixed, found.changed, found.new, found.gone)
    pairs = [pair for group in groups for pair in group]
    return [side for pair in pairs for side in (pair.was, pair.now) if side]


def read_answers(where: Where, sessions: Sequence[str]) -> dict[str, str]:
    """The last answers of these sessions by id, as they are read."""
    with open_store(where) as store:
        return {
            id: show_answer(session.answer) for id, session in store.find_sessions(sessions).items()
        }


def _run_side(desk: Desk, revision: str) -> _Side:
    id, content = resolve_run(desk.store, revision)
    nodes = read_tree(content["snapshot"], desk.store.load_nodes)
    files = desk.store.load_case_files(list(set(nodes.values())))
    restricted = content.get("selection", {}).get("models")
    asked = {one["id"] for one in content.get("candidates", ())}
    models = None if restricted else {RECORDED, *asked}
    partial = is_partial(content)
    return _Side(id, read_results(desk.store, content), nodes, files, models, partial)


def _workspace_side(desk: Desk, wanted: Wanted) -> _Side:
    plan = desk.plan(wanted)
    results = [as_result(one) for one in settle(plan, desk.settings.verdict)]
    files = {node: desk.reading.files[path] for path, node in desk.reading.nodes.items()}
    models = None if wanted.models else {cell.candidate.id for cell in plan.cells}
    return _Side(WORKSPACE, results, dict(desk.reading.nodes), files, models)


def _renamed(was: _Side, now: _Side) -> dict[str, str]:
    """Files that moved: gone under the old path, new with the same cases under another."""
    new = {node: path for path, node in now.nodes.items() if path not in was.nodes}
    return {
        path: new[node] for path, node in was.nodes.items() if path not in now.nodes and node in new
    }


def _only(side: _Side, models: tuple[str, ...]) -> _Side:
    """The side with these candidates only, when there are any."""
    if not models:
        return side
    return replace(side, results=[one for one in side.results if one.model in models])


def _follow(was: _Side, renamed: dict[str, str]) -> _Side:
    """The older side with files under their new paths."""
    if not renamed:
        return was
    return replace(
        was,
        results=[replace(one, file=renamed.get(one.file, one.file)) for one in was.results],
        nodes={renamed.get(path, path): node for path, node in was.nodes.items()},
    )


def _places(one: Result) -> set[tuple[str, str, str, Any]]:
    """Where a cell may be paired with another."""
    return {
        (one.file, one.model, row, prompt)
        for row in (one.key, one.row)
        for prompt in (one.prompt, one.prompt_number)
    }


def _names(row: Case | Result) -> tuple[tuple[str, str], ...]:
    """What a row is known by."""
    return ("key", row.key), ("row", row.row)


def _comparable(side: _Side, other: _Side, selection: Selection) -> list[Result]:
    """The selected cells of a side, without those that the other side knew but did not run."""
    there = {place for one in other.results for place in _places(one)}
    rows: dict[str, frozenset[tuple[str, str]]] = {}

    def counts(one: Result) -> bool:
        if not selection.covers_file(one.file):
            return False
        if there & _places(one):
            return True
        node = other.nodes.get(one.file)
        if node is None or (other.models is not None and one.model not in other.models):
            return True
        if node not in rows:
            cases = other.files[node].cases
            rows[node] = frozenset(name for case in cases for name in _names(case))
        return rows[node].isdisjoint(_names(one))

    return [one for one in side.results if counts(one)]


def _answers(desk: Desk, sides: Sequence[Result]) -> dict[str, str]:
    ids = [side.sessions[0] for side in sides if side.sessions]
    return {
        id: show_answer(session.answer) for id, session in desk.store.find_sessions(ids).items()
    }
