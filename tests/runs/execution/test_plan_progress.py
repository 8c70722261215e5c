"""The progress of a plan: what is left of it, and which cells judge which answers."""

from __future__ import annotations

from collections import Counter

from evalstore.core.values import Case, CaseFile, Question, Reply, Sample, Session
from evalstore.planning.cells import Candidate, Cell, Judge
from evalstore.planning.plan import Plan, plan_asks, plan_judgements
from evalstore.runs.execution.execution_counts import ExecutionCounts
from evalstore.runs.execution.executor import PlanProgress, group_by_account
from evalstore.runs.execution.sharing.work_sharing import Item, lease_key_of
from tests.builders import build_cells

_JUDGES = (Judge("judge", "e" * 32, "p" * 32),)


def make_cells(*attempts: int, tests: tuple[str, ...] = ("t",)) -> list[Cell]:
    """A cell for each number of attempts; all share their questions."""
    case = Case("", "", tests, "evaluation", (), (None,), judged_by=("models",))
    files = {f"{number}.md": CaseFile((case,), count) for number, count in enumerate(attempts)}
    return build_cells(files, [Candidate("m", "model", 0)], _JUDGES, lambda _path, _case: True)[0]


def make_plan(*attempts: int, tests: tuple[str, ...] = ("t",), stored: int = 0) -> Plan:
    plan = Plan(cells=make_cells(*attempts, tests=tests))
    samples = {id: [Sample(at, f"old{at}", None) for at in range(stored)] for id in plan.questions}
    plan_asks(plan, samples)
    plan_judgements(plan, {})
    return plan


def session(number: int) -> Session:
    return Session(Question("t", None, "model", 0), (Reply("Yes"),), number, f"{number:016x}")


def test_a_key_is_finished_when_nothing_of_it_is_outstanding() -> None:
    progress = PlanProgress(Plan(), ExecutionCounts(), Counter())
    progress.begin("key", 2)
    assert progress.has_outstanding("key")
    assert not progress.finish_call("key")
    assert progress.finish_call("key")
    assert not progress.has_outstanding("key")


def test_what_has_failed_in_this_run_is_not_tried_again() -> None:
    plan = make_plan(3)
    failures = Counter({plan.asks[0].question_id: 2})
    progress = PlanProgress(plan, ExecutionCounts(), failures)
    assert [item.count for item in progress.take_open(plan.asks)] == [1]
    progress.fail(plan.asks[0].question_id)
    assert list(progress.take_open(plan.asks)) == []


def test_a_judgement_is_queued_once() -> None:
    plan = make_plan(1, stored=1)
    progress = PlanProgress(plan, ExecutionCounts(), Counter())
    assert list(progress.take_open(plan.judgements)) == plan.judgements
    assert list(progress.take_open(plan.judgements)) == []
    assert not progress.queue(lease_key_of(plan.judgements[0]))


def test_a_judgement_that_has_failed_in_this_run_is_not_queued() -> None:
    plan = make_plan(1, stored=1)
    progress = PlanProgress(plan, ExecutionCounts(), Counter([lease_key_of(plan.judgements[0])]))
    assert list(progress.take_open(plan.judgements)) == []


def test_a_cell_that_wants_fewer_answers_judges_the_oldest() -> None:
    plan = make_plan(3, 2, stored=1)
    outcome = ExecutionCounts()
    progress = PlanProgress(plan, outcome, Counter())
    (question,) = plan.questions
    outcome.sessions[question] = [Sample(20, "later", None), Sample(10, "sooner", None)]
    progress.answers["later"] = session(20)
    progress.answers["sooner"] = session(10)
    most, fewer = plan.cells
    assert progress.single_cells(question) == [most, fewer]
    assert progress.cells_requiring_all(question) == [most]
    assert progress.take_oldest(question) == [(fewer, "sooner", session(10))]


def test_a_group_is_due_when_no_answer_of_it_is_outstanding() -> None:
    plan = make_plan(1, tests=("t", "u"))
    (cell,) = plan.cells
    first, second = cell.questions
    outcome = ExecutionCounts()
    progress = PlanProgress(plan, outcome, Counter())
    for number, question in enumerate(cell.questions):
        progress.begin(question, 1)
        outcome.sessions[question] = [Sample(number, f"new{number}", None)]
    progress.finish_call(first)
    progress.add_answered(first)
    assert progress.take_answered() == {}
    progress.finish_call(second)
    progress.add_answered(second)
    assert progress.take_answered() == {("new0", "new1"): [cell]}
    assert progress.take_answered() == {}


def test_judgements_of_stored_answers_come_before_questions() -> None:
    plan = make_plan(2, stored=1)

    def account_of(_item: Item) -> str:
        return "account"

    judgement = next(judgement for judgement in plan.judgements if judgement.sessions)
    assert group_by_account(plan, account_of) == {"account": [judgement, *plan.asks]}
