"""The cases of a workspace in a pytest session: collected, run once, and reported.

One process makes one run for all cases that are selected, before the first item: pytest itself, or
the controller of pytest-xdist, which knows the selection when a worker has collected it, and hands
out no item before. Workers only read the store.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import pytest

from evalstore.core.display import plural, safe
from evalstore.core.errors import EvalstoreError, Problem
from evalstore.core.runs import ProgressListener
from evalstore.core.values import CellKey
from evalstore.planning.cell_results import CellResult, as_result, compute_results, find_feedback
from evalstore.planning.failed_work import busy_cells
from evalstore.planning.open_project import open_project
from evalstore.planning.options import Location, RunOptions, SelectionOptions
from evalstore.planning.plan import Plan
from evalstore.planning.planner import plan_cells, require_sound, resolve_scope
from evalstore.planning.project import Project
from evalstore.results.log.failures import failed_now
from evalstore.results.names import TestLines, prompt_label, shortened, show_answer
from evalstore.results.value_text import answer_text
from evalstore.runs.run_report import cell_key
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.settings.settings import find_root

if TYPE_CHECKING:
    from pathlib import Path


_INPUT = "evalstore"
"""The name under which the controller of pytest-xdist passes a worker its input."""


class CaseSession:
    """The hooks of a session with cases."""

    def __init__(self, config: pytest.Config, folder: Path | None) -> None:
        """`folder` is that of the workspace; None: the current folder, or one above it."""
        self._config = config
        self.is_offline: bool = config.getoption("evalstore_offline")
        """Whether no model is called that needs the network."""
        self.refused = ""
        """Why no run was made although something is missing; empty if one was made, and in a worker
        of pytest-xdist, where the summary has it."""
        self._warnings: list[str] = []
        self._summary = ""
        """What the run did, or that nothing was missing; empty if no run could be made."""
        self._collected: set[str] = set()
        self._current: CurrentCases | None = None
        self._by_place: dict[CellKey, CurrentCase] = {}
        self._may_run = not config.option.collectonly
        self._is_settled = False
        self._input: dict[str, Any] | None = getattr(config, "workerinput", {}).get(_INPUT)
        """What a worker of pytest-xdist is told; None in every other process."""
        try:
            root = find_root((folder or config.invocation_params.dir).absolute())
        except EvalstoreError as error:
            hint = "name the workspace with --evalstore-workspace or 'evalstore_workspace'"
            raise pytest.UsageError(f"--evalstore: {error} ({hint})") from error
        self.root = root
        self._location = Location(root, warn=self._warnings.append)
        self._selection = SelectionOptions(offline=self.is_offline, keep_going=True)

    # --- collecting

    @property
    def current(self) -> CurrentCases:
        """Return the cases with their verdicts, as they were read last."""
        if self._current is None:
            self._read()
        assert self._current is not None
        return self._current

    def _read(self) -> None:
        """Read the cases and their verdicts; raises `EvalstoreError` or `OSError`."""
        self._current = read_current(self._location, self._selection)
        self._by_place = {case.place: case for case in self._current}

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Read the workspace, so that its errors end the session before anything is started."""
        if self._input is not None:
            return
        try:
            self._read()
        except (EvalstoreError, OSError) as error:
            raise pytest.UsageError(f"--evalstore: {_with_hint(error)}") from error

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> TestFileNode | None:
        """Collect a test file of the workspace that pytest has found, or that is named."""
        if file_path.suffix != ".md":
            return None
        file = self._find_file(file_path)
        if file is None:
            return None
        self._collected.add(file)
        return self._make_node(parent, file)

    def _find_file(self, path: Path) -> str | None:
        """Return the path of a test file relative to the workspace; None if it is not one."""
        root, current = self._location.directory, self.current
        for base, inside in ((root, path), (root.resolve(), path.resolve())):
            if inside.is_relative_to(base):
                file = inside.relative_to(base).as_posix()
                if file in current.cases or file in current.problems:
                    return file
        return None

    def _make_node(self, parent: pytest.Collector, file: str) -> TestFileNode:
        path = self._location.directory / file
        return TestFileNode.from_parent(
            parent, path=path, nodeid=self._node_id(file), cases=self, file=file
        )

    def _node_id(self, file: str) -> str:
        path = os.path.relpath(self._location.directory / file, self._config.rootpath)
        return path.replace(os.sep, "/")

    @pytest.hookimpl(tryfirst=True)  # before cases are deselected
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> None:
        """Add the other test files of the workspace, unless the command line names paths.

        pytest does not look into their folders, so that no `conftest.py` of them is imported.
        """
        if not self._is_whole():
            return
        current = self.current
        for file in sorted({*current.cases, *current.problems} - self._collected):
            node = self._make_node(session, file)
            report = node.ihook.pytest_make_collect_report(collector=node)
            node.ihook.pytest_collectreport(report=report)
            items += report.result or ()

    def _is_whole(self) -> bool:
        """Return whether the session is about all cases of the workspace."""
        if self._input is not None:
            return bool(self._input["whole"])
        return self._config.args_source is not pytest.Config.ArgsSource.ARGS

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Run nothing after an error of collection, as pytest."""
        if report.failed and not self._config.option.continue_on_collection_errors:
            self._may_run = False

    # --- running

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Run the selected cases, in a session without workers."""
        if self._input is not None or not self._may_run:
            return
        places = [item.case.place for item in session.items if isinstance(item, CaseItem)]
        if places:  # the controller of pytest-xdist has no items
            self._settle(places)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker of pytest-xdist which cases to collect."""
        node.workerinput[_INPUT] = {"whole": self._is_whole()}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Run the cases that the first worker has selected; all workers select the same."""
        if self._is_settled or not self._may_run:
            return
        known = {
            f"{self._node_id(file)}::{name}": case.place
            for file, cases in self.current.cases.items()
            for name, case in name_cases(cases)
        }
        self._settle([known[id] for id in ids if id in known])

    def _settle(self, places: Collection[CellKey]) -> None:
        """Ask and judge what the cases at these places lack."""
        self._is_settled = True
        if not any(self._by_place[place].can_run for place in places):
            if places:
                self._summary = f"{plural(len(places), 'case')}, nothing to ask or judge, $0"
            return
        from evalstore.interfaces.api.workspace import outside_of_a_loop
        from evalstore.runs.run import run  # it takes as long to import as all of the above
        from evalstore.runs.run_preview import TooExpensiveError
        from evalstore.runs.run_text import summary_text

        bound = self._config.getoption("evalstore_max_cost")
        options = RunOptions(max_cost=bound, yes=bound is not None, fail_on="none")
        listener = _Listener(self._config)
        try:
            kept = set(places)
            report = outside_of_a_loop(
                lambda: run(
                    self._location,
                    self._selection,
                    options,
                    listener,
                    only=lambda cell: cell_key(cell) in kept,
                )
            )
            self._warnings += listener.notes
            self._summary = summary_text(report)
            self._read()
        except TooExpensiveError as error:
            self.refused = f"{error} (add --evalstore-max-cost USD to stop at a price)"
        except (EvalstoreError, OSError) as error:
            self.refused = _with_hint(error)
        else:
            if report.status == "interrupted":
                raise KeyboardInterrupt

    def settled(self, case: CurrentCase) -> CurrentCase:
        """Return a case with its verdict after the run; `case` is as it was collected."""
        if case.can_run and self._input is not None and not self._is_settled:
            self._is_settled = True
            try:
                self._read()
            except (EvalstoreError, OSError) as error:
                self.refused = _with_hint(error)
        now = self._by_place.get(case.place)
        if now is None:
            pytest.fail("the case is no longer in the workspace", pytrace=False)
        return now

    # --- reporting

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what the run did and cost."""
        warnings = [*(self._current.warnings if self._current else ()), *self._warnings]
        for message in filter(None, [*dict.fromkeys(warnings), self._summary, self.refused]):
            terminalreporter.write_line(f"evalstore: {message}")


class _Listener(ProgressListener):
    """Prints the numbers of the plan before the first call, and keeps notes for the summary."""

    def __init__(self, config: pytest.Config) -> None:
        self.notes: list[str] = []
        self._reporter: pytest.TerminalReporter | None = config.pluginmanager.get_plugin(
            "terminalreporter"
        )

    def start(self, asks: int, judgements: int) -> None:
        """Print the numbers of the plan."""
        if self._reporter is not None:
            self._reporter.ensure_newline()
            todo = f"{plural(asks, 'answer')} to ask, {plural(judgements, 'verdict')} to make"
            self._reporter.write_line(f"evalstore: {todo}")

    def note(self, message: str) -> None:
        """Keep a message for the summary."""
        self.notes.append(message)


def _with_hint(error: EvalstoreError | OSError) -> str:
    """Return the message of an error with its hint."""
    hint = getattr(error, "hint", None)
    return f"{error} ({hint})" if hint else str(error)


# --- the nodes of a pytest session: a test file, and a case with a system prompt and a candidate


class TestFileNode(pytest.File):
    """A test file of the workspace."""

    def __init__(self, *, cases: CaseSession, file: str, **keywords: Any) -> None:
        """`file` is the path relative to the workspace."""
        super().__init__(**keywords)
        self._cases = cases
        self._file = file

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the cases of the file; raises `CollectError` with its errors."""
        current = self._cases.current
        if problems := current.problems.get(self._file):
            lines = [f"{safe(problem.place)}: {safe(problem.message)}" for problem in problems]
            raise self.CollectError("\n".join(lines))
        for name, case in name_cases(current.cases.get(self._file, [])):
            yield CaseItem.from_parent(self, name=name, cases=self._cases, case=case)


def name_cases(cases: list[CurrentCase]) -> Iterator[tuple[str, CurrentCase]]:
    """Yield the cases of one file with their names, such as `city=Oslo[brief-gpt-5.5]`.

    A case without a row is named after its file. The names are unique.
    """
    used: set[str] = set()
    for case in cases:
        file, row, _, model = case.place
        row = row or file.rpartition("/")[2].removesuffix(".md")
        candidate = f"{case.prompt}-{model}" if case.prompt else model
        label = safe(row).replace("::", ":")  # pytest takes node ids apart at `::`
        name = base = f"{label}[{safe(candidate)}]"
        number = 1
        while name in used:
            number += 1
            name = f"{base}-{number}"
        used.add(name)
        yield name, case


class CaseItem(pytest.Item):
    """A case: it passes, fails or is skipped as the verdict on it says."""

    def __init__(self, *, cases: CaseSession, case: CurrentCase, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.case = case
        """The case as it was when it was collected."""
        self._cases = cases
        self.extra_keyword_matches.update(case.tags)
        self.add_marker(pytest.mark.evalstore)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the path, the line from 0, and the name.

        pytest wants it of each item that it runs. Finding a line takes as long as all else, so for
        cases that have passed it is the first.
        """
        is_listed = self.config.option.collectonly or self.case.word != "pass"
        return self.path, self._find_line() - 1 if is_listed else 0, self.name

    def _find_line(self) -> int:
        """Return the line of the row's value, else that of the first message, from 1."""
        file, row, *_ = self.case.place
        return self._cases.current.lines.find(file, row)

    def setup(self) -> None:
        """Skip or fail a case without a verdict, so that it counts as an error."""
        case = self._cases.settled(self.case)
        if case.word == "skipped":
            pytest.skip(case.reason)
        if case.word is None:
            pytest.skip("nothing judges the answer")
        if case.word in ("pending", "no reply"):
            reason = self._cases.refused or case.reason
            if self._cases.is_offline and case.word == "pending":
                pytest.skip(f"pending: {reason}")
            pytest.fail(f"{case.word}: {safe(reason, lines=True)}", pytrace=False)

    def runtest(self) -> None:
        """Fail unless the verdict is a pass."""
        case = self._cases.settled(self.case)
        if case.word != "pass":
            pytest.fail(self._explain(case), pytrace=False)

    def _explain(self, case: CurrentCase) -> str:
        """Return the feedback, then the case and its answer."""
        _, row, _, model = case.place
        path = os.path.relpath(self.path, self.config.invocation_params.dir)
        place = f"{path}:{self._find_line()}" + (f" [{row}]" if row else "")
        feedback = case.feedback or "no feedback"
        lines = [
            f"{case.word}: {shortened(feedback)}",
            f"case: {safe(place)}",
            f"model: {safe(model)}" + (f", system prompt: {safe(case.prompt)}" * bool(case.prompt)),
            f"answer: {shortened(case.answer)}",
            f"({show_answer(case.session, self._cases.root, self.config.invocation_params.dir)})",
        ]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class CurrentCase:
    """A case with a system prompt and a candidate, and its verdict now."""

    place: CellKey
    prompt: str
    """The name of its system prompt if the case has several; else empty."""
    tags: tuple[str, ...]
    word: str | None
    """The verdict, `pending`, or `no reply` if a call failed; `skipped` if the candidate lacks a
    capability; None for an answered case that nothing judges."""
    feedback: str = ""
    answer: str = ""
    """The first answer; empty for a case that passed."""
    session: str = ""
    """The id of that answer."""
    reason: str = ""
    """Why it is pending or skipped."""
    can_run: bool = False
    """Whether a run would ask or judge something for it."""


@dataclass
class CurrentCases:
    """The cases of a workspace, by file and row."""

    cases: dict[str, list[CurrentCase]]
    """By test file, relative to the workspace."""
    workspace: WorkspaceFolder
    problems: dict[str, list[Problem]]
    """The errors of test files, whose cases are left out."""
    warnings: list[str] = field(default_factory=list)

    @cached_property
    def lines(self) -> TestLines:
        """Return the lines of the cases in their files."""
        from evalstore.results.names import TestLines

        return TestLines(self.workspace)

    def __iter__(self) -> Iterator[CurrentCase]:
        """Iterate over all cases."""
        for cases in self.cases.values():
            yield from cases


def read_current(location: Location, selection: SelectionOptions) -> CurrentCases:
    """Return the cases with the verdicts that the store has; raises `EvalstoreError`.

    Nothing is asked or judged. Test files with errors are left out.
    """
    with open_project(location, create=True) as project:
        require_sound(project, selection)
        scope = resolve_scope(project, selection)
        plan = plan_cells(project, scope, [*scope.cells])
        cases: dict[str, list[CurrentCase]] = {}
        for case in _list_cases(project, plan, is_offline=selection.offline):
            cases.setdefault(case.place[0], []).append(case)
        for pair in scope.cells.skipped:
            reason = f"{pair.model} lacks {pair.lacks}"
            place = pair.file, pair.row, 0, pair.model
            cases.setdefault(pair.file, []).append(
                CurrentCase(place, "", (), "skipped", reason=reason)
            )
        problems: dict[str, list[Problem]] = {}
        for problem in project.left_out:
            problems.setdefault(problem.file, []).append(problem)
        return CurrentCases(cases, project.workspace, problems, [*project.warnings])


def _list_cases(project: Project, plan: Plan, *, is_offline: bool) -> Iterator[CurrentCase]:
    """Yield the cases of a plan; what several of them need is read at once."""
    results = compute_results(plan, project.settings.verdict)
    shown = [result for result in results if result.word != "pass"]
    feedback = find_feedback(project.store, (as_result(result).decision for result in shown))
    answers = project.store.find_sessions(it.sessions[0] for it in shown if it.sessions)
    failed = failed_now(project, plan, results)
    busy = set(map(cell_key, busy_cells(plan) if plan.asks or plan.judgements else []))
    name_prompt = cache(partial(prompt_label, project))
    for result in results:
        cell, key = result.cell, cell_key(result.cell)
        word, reason = result.word, ""
        if result.pending:
            failure = failed.get(key)
            word = "no reply" if failure else "pending"
            reason = failure.message if failure else _find_reason(project, plan, result)
            reason += ", as no call was allowed" * (is_offline and reason in _NOT_DONE)
        session = result.sessions[0] if result.sessions else ""
        answer = answers.get(session)
        yield CurrentCase(
            place=key,
            prompt=name_prompt(cell.prompt) if len(cell.case.prompts) > 1 else "",
            tags=cell.case.tags,
            word=word,
            feedback=feedback.get(as_result(result).decision, ""),
            answer="" if answer is None else answer_text(answer.answer),
            session=session,
            reason=reason,
            can_run=key in busy,
        )


_NOT_DONE = ("it was not asked", "it was not judged")


def _find_reason(project: Project, plan: Plan, result: CellResult) -> str:
    """Return why an answer or a judgement is missing that no call was made for."""
    cell, untrusted = result.cell, project.code.untrusted
    waiting = [untrusted[text] for text in cell.case.code if text in untrusted]
    if waiting and cell.case.evaluation in plan.waiting:
        return f"{waiting[0].fact}: {waiting[0].command}"
    models = (cell.candidate.trust_needed, *(judge.trust_needed for judge in cell.judges))
    if model := next(filter(None, models), ""):
        return f"the application of '{model}' is not trusted on this machine"
    if not cell.judges and "models" in cell.case.judged_by and result.sessions:
        return "it has no judge"
    return _NOT_DONE[len(result.sessions) == cell.required_answers]
