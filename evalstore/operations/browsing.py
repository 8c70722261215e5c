"""What the browser shows: runs, their cases, and what belongs to one case.

Everything is read in bulk and kept in memory as long as it is shown. No model is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.operations.desk import Desk, open_desk, open_store, open_workspace, store_path
from evalstore.operations.history import in_order
from evalstore.operations.orders import Wanted
from evalstore.operations.quiet import see
from evalstore.operations.results import VERDICTS, as_result, iterate_results, settle
from evalstore.report.statistics import Rate, wilson
from evalstore.store.revisions import resolve_run
from evalstore.store.trees import read_tree

if TYPE_CHECKING:
    from evalstore.operations.orders import Where
    from evalstore.report.compare import Result
    from evalstore.values import Json


_WORDS = (*VERDICTS, "answered")


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run as the history lists it."""

    id: str
    started: int
    """Microseconds since 1970, UTC."""
    ended: int
    status: str
    message: str
    verdicts: Mapping[str, int]
    asked: int
    recorded: int
    judged: int
    reused: int
    failed: int
    cost: float | None
    git: str
    """The commit of the workspace, with a `+` when it had changes; or empty."""
    is_partial: bool
    """Whether it was about a selection."""
    models: tuple[str, ...]

    @property
    def rate(self) -> Rate:
        """The share of passes among the judged cases, with its 95 % Wilson interval."""
        judged = sum(count for word, count in self.verdicts.items() if word != "pending")
        return wilson(self.verdicts.get("pass", 0), judged)


@dataclass(frozen=True, slots=True)
class CaseRow:
    """A case with one system prompt, and what each candidate came to."""

    file: str
    row: str
    prompt: str
    """Which system prompt, when the case has several; or empty."""
    tags: tuple[str, ...]
    results: tuple[Result | None, ...]
    """By candidate, in the order of `Cases.models`."""


@dataclass(frozen=True, slots=True)
class Cases:
    """The cases of a run, or of the workspace with the verdicts that it has now."""

    run: str | None
    """None: the workspace."""
    models: tuple[str, ...]
    rows: Sequence[CaseRow]
    counts: Mapping[str, int] = field(default_factory=dict)
    """How many results have each verdict."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What the store looks like from outside; it differs when anybody has written to it."""

    seen: tuple[object, ...]
    path: str
    is_there: bool


def runs(where: Where) -> list[RunLine]:
    """All runs, newest first."""
    with open_store(where) as store:
        return [_line(id, content) for id, content in store.find_runs()]


def _line(id: str, content: Json) -> RunLine:
    git = content.get("git") or {}
    return RunLine(
        id=id,
        started=content["started"],
        ended=content["ended"],
        status=content["status"],
        message=content.get("message") or "",
        verdicts=in_order(content["verdicts"]),
        asked=content["asked"],
        recorded=content.get("recorded", 0),
        judged=content["judged"],
        reused=content["reused"],
        failed=content.get("failed", 0),
        cost=content.get("cost"),
        git=f"{git['commit'][:8]}{'+' * bool(git.get('dirty'))}" if git else "",
        is_partial=bool(content.get("selection")),
        models=tuple(dict.fromkeys(one["id"] for one in content.get("candidates", ()))),
    )


def cases(where: Where, revision: str | None) -> Cases:
    """The cases of a run; of the workspace as it is now when there is no revision."""
    if revision is None:
        with open_desk(where) as desk:
            desk.require_sound(Wanted())
            return _of_workspace(desk)
    with open_store(where) as store:
        id, content = resolve_run(store, revision)
        leaves = list(read_tree(content["snapshot"], store.load_nodes).items())
        tags: dict[tuple[str, str], tuple[str, ...]] = {}
        for start in range(0, len(leaves), 500):
            some = dict(leaves[start : start + 500])
            files = store.load_case_files(list(set(some.values())))
            for path, node in some.items():
                tags |= {(path, case.row): case.tags for case in files[node].cases}
        found = (one for portion in iterate_results(store, content) for one in portion)
        return _arranged(id, list(found), tags)


def _of_workspace(desk: Desk) -> Cases:
    results = [as_result(one) for one in settle(desk.plan(Wanted()), desk.settings.verdict)]
    tags = {
        (path, case.row): case.tags
        for path, file in desk.reading.files.items()
        for case in file.cases
    }
    return _arranged(None, results, tags)


def _arranged(
    run: str | None,
    results: Sequence[Result],
    tags: Mapping[tuple[str, str], tuple[str, ...]],
) -> Cases:
    """Results side by side, one row for each case and system prompt."""
    models = tuple(sorted({one.model for one in results}))
    numbers = {model: number for number, model in enumerate(models)}
    prompts: dict[str, set[str | None]] = {}
    for one in results:
        prompts.setdefault(one.file, set()).add(one.prompt)
    places: dict[tuple[str, str, int], list[Result | None]] = {}
    counts: dict[str, int] = {}
    for one in results:
        listed = places.setdefault((one.file, one.row, one.prompt_number), [None] * len(models))
        listed[numbers[one.model]] = one
        word = one.word or "answered"
        counts[word] = counts.get(word, 0) + 1
    rows = [
        CaseRow(
            file,
            row,
            _prompt(number, found) if len(prompts[file]) > 1 else "",
            tags.get((file, row), ()),
            tuple(found),
        )
        for (file, row, number), found in places.items()
    ]
    return Cases(run, models, rows, {word: counts[word] for word in _WORDS if word in counts})


def _prompt(number: int, found: Sequence[Result | None]) -> str:
    prompt = next(one.prompt for one in found if one)
    return "no prompt" if prompt is None else f"prompt {number + 1}"


def test_files(where: Where) -> list[str]:
    """The test files of the workspace."""
    return list(open_workspace(where).find_files("tests", ".md"))


def feedback(where: Where, evaluations: Sequence[str]) -> dict[str, str]:
    """The feedback of these judgements by id, of those that have some."""
    with open_store(where) as store:
        return store.find_feedback(evaluations)


def stamp(where: Where) -> Stamp:
    """What the store looks like now."""
    found = store_path(open_workspace(where), where)
    path = str(found)
    return Stamp(tuple(see(name) for name in (path, f"{path}-wal")), path, found.exists())
