"""The plan: set differences on ids, so that nothing is asked or judged twice."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.core import hashing
from evalstore.core.values import VERDICTS, Case, CaseFile, Sample, Verdict, Vote, Word
from evalstore.planning import cell_results
from evalstore.planning import plan as plan_module
from evalstore.planning.cell_results import CellResult, compute_results
from evalstore.planning.cells import Candidate, Cell, Judge, StreamedCells, place_cases
from evalstore.planning.failed_work import FailedWork, busy_cells, drop_untried
from evalstore.planning.plan import (
    CHECKS,
    EVER,
    UNSETTLED,
    AgeLimit,
    Plan,
    counted_votes,
    counts,
    missing_judgements,
    plan_asks,
    plan_judgements,
)
from evalstore.planning.selection import Selection, Target
from evalstore.store.events import Place
from tests.builders import build_cells

FIRST = Candidate("first", "m1", 0)
JUDGE = Judge("judge", "e1", "p1")


def case(test: str = "t", evaluation: str | None = "e", **fields: object) -> Case:
    tags = fields.pop("tags", ())
    return Case("", "", (test,), evaluation, tags, (None,), **fields)  # type: ignore[arg-type]


def cells_of(
    *cases: Case,
    candidates: Sequence[Candidate] = (FIRST,),
    judges: Sequence[Judge] = (JUDGE,),
    **fields: object,
) -> list[Cell]:
    file = CaseFile(cases, **fields)  # type: ignore[arg-type]
    return build_cells({"a.md": file}, candidates, judges, lambda _path, _case: True)[0]


def plan_of(
    cells: list[Cell],
    samples: Mapping[str, Sequence[Sample]] | None = None,
    votes: Mapping[str, Sequence[Vote]] | None = None,
) -> Plan:
    plan = Plan(cells=cells)
    plan_asks(plan, samples or {})
    plan_judgements(plan, votes or {})
    return plan


def vote(evaluator: str = "e1", verdict: Verdict = "pass", *, evaluation: str = "e") -> Vote:
    return Vote(1, "v", evaluation, evaluator, verdict, None)


def replaced(**fields: object) -> Vote:
    return vote()._replace(**fields)  # type: ignore[arg-type]


def carried_out(plan: Plan) -> tuple[dict[str, list[Sample]], dict[str, list[Vote]]]:
    """What is stored after a plan; checks pass."""
    samples = {
        question: [Sample(1, session, None) for session in sessions]
        for question, sessions in plan.sessions.items()
    }
    for ask in plan.asks:
        for number in range(ask.count):
            id = f"{ask.question_id}/{number}"
            samples.setdefault(ask.question_id, []).append(Sample(2, id, None))
    votes = {session: list(session_votes) for session, session_votes in plan.votes.items()}
    for cell in plan.cells:
        if cell.case.evaluation is None:
            continue
        for sample in samples[cell.questions[0]][: cell.required_answers]:
            have = votes.setdefault(sample.id, [])
            expected = [(judge.evaluator, judge.times) for judge in cell.judges]
            for evaluator, times in [(CHECKS, 1), *expected]:
                new_vote = vote(evaluator, evaluation=cell.case.evaluation)
                have += [new_vote] * (times - have.count(new_vote))
    return samples, votes


# --- laying out


def test_every_case_meets_every_candidate_and_prompt() -> None:
    two = case()._replace(prompts=("p", None))
    cells = cells_of(two, candidates=(FIRST, Candidate("second", "m2", 0)))
    assert [(cell.candidate.id, cell.prompt) for cell in cells] == [
        ("first", "p"),
        ("first", None),
        ("second", "p"),
        ("second", None),
    ]
    assert len({cell.questions[0] for cell in cells}) == 4


def test_a_candidate_that_lacks_a_capability_is_skipped_and_listed() -> None:
    def lacks(needs: tuple[str, ...]) -> list[str]:
        return [need for need in needs if need == "tools"]

    file = CaseFile((case(needs=("image", "tools")), case("t2")))
    candidates = (Candidate("plain", "m1", 0, lacks=lacks),)
    cells, skipped = build_cells({"a.md": file}, candidates, (), lambda _path, _case: True)
    assert [cell.case.tests for cell in cells] == [("t2",)]
    assert [(pair.model, pair.lacks) for pair in skipped] == [("plain", "tools")]


def test_a_judge_with_several_names_has_one_voice() -> None:
    twin, other = JUDGE._replace(id="twin"), Judge("other", "e2", "p1")
    (cell,) = cells_of(case(), judges=(JUDGE, twin, other))
    assert cell.judges == (JUDGE, other)
    cast = [vote("e1", "pass"), vote("e2", "fail")]
    assert counted_votes(cell, cast) == cast


def test_a_person_who_takes_a_label_back_has_no_word() -> None:
    (cell,) = cells_of(case(), judges=(JUDGE, Judge("other", "e2", "p1")))

    def person_vote(at: int, verdict: Word, person: str = "ada") -> Vote:
        return Vote(at, str(at), "e", person, verdict, None, human=True)

    first, back, again = person_vote(2, "pass"), person_vote(3, "none"), person_vote(4, "fail")
    assert counted_votes(cell, [vote("e1"), first]) == [first, vote("e1")]
    assert not list(missing_judgements(cell, [vote("e1"), first]))
    # In whichever order they come: stores are merged.
    for cast in permutations((vote("e1"), first, back)):
        assert counted_votes(cell, cast) == [vote("e1")]
        assert [judge.evaluator for judge, _ in missing_judgements(cell, cast) if judge] == ["e2"]
    assert counted_votes(cell, [first, back, again]) == [again]
    assert counted_votes(cell, [first, back, person_vote(5, "fail", "bob")]) == [
        person_vote(5, "fail", "bob")
    ]


def test_a_file_can_name_a_judge_by_any_of_its_names() -> None:
    twin = JUDGE._replace(id="twin")
    (cell,) = cells_of(case(), judges=(JUDGE, twin), evaluators=("twin",))
    assert cell.judges == (twin,)


def test_a_model_with_two_prompts_is_two_judges() -> None:
    strict = JUDGE._replace(evaluator="e2", prompt="p2")
    (cell,) = cells_of(case(), judges=(JUDGE, strict), evaluators=("judge",))
    assert cell.judges == (JUDGE, strict)


def test_tags_say_whom_a_candidate_and_a_judge_are_meant_for() -> None:
    tagged = case()._replace(tags=("x",))
    only = Candidate("only", "m2", 0, required_tags=("x",))
    never = Candidate("never", "m3", 0, prohibited_tags=("x",))
    picky = Judge("picky", "e2", "p1", prohibited_tags=("x",))
    cells = cells_of(tagged, case("t2"), candidates=(only, never), judges=(JUDGE, picky))
    assert [(cell.candidate.id, len(cell.judges)) for cell in cells] == [("only", 1), ("never", 2)]


def test_the_test_decides_its_temperature_seed_and_attempts() -> None:
    (cell,) = cells_of(case(temperature=0.5, seed=7), attempts=3)
    assert (cell.question.temperature, cell.question.seed, cell.required_answers) == (0.5, 7, 3)


def test_the_command_line_wins_over_the_attempts_of_files() -> None:
    file = CaseFile((case(),), attempts=3)
    cells, _ = build_cells({"a.md": file}, (FIRST,), (), lambda _path, _case: True, attempts=2)
    assert cells[0].required_answers == 2


def test_a_file_can_want_nobody_to_judge() -> None:
    assert cells_of(case(), evaluators=())[0].judges == ()


# --- asking


def test_cells_that_share_a_question_ask_it_once_as_often_as_one_wants() -> None:
    cells = cells_of(case(evaluation="e1"), attempts=1) + cells_of(
        case(evaluation="e2"), attempts=3
    )
    plan = plan_of(cells)
    assert [(ask.cell.required_answers, ask.count) for ask in plan.asks] == [(3, 3)]
    assert plan.ask_count == 3


def test_the_most_that_is_wanted_counts_whatever_the_order() -> None:
    few, many = cells_of(case(), attempts=1), cells_of(case(), attempts=3)
    for cells in (few + many, many + few):
        plan = plan_of(cells)
        assert [(ask.cell.required_answers, ask.count) for ask in plan.asks] == [(3, 3)]
        assert [judgement.count for judgement in plan.judgements] == [3]
        assert plan_of(cells, {cells[0].questions[0]: [Sample(1, "s", None)]}).ask_count == 2


def test_answers_that_files_bring_are_not_asked() -> None:
    plan = plan_of(cells_of(case("t1", recorded="m"), case("t2"), attempts=2))
    assert (plan.ask_count, plan.recorded_count) == (2, 1)


def test_candidates_of_the_same_version_share_their_answers() -> None:
    cells = cells_of(case(), candidates=(FIRST, FIRST._replace(id="twin")))
    assert plan_of(cells).ask_count == 1


def test_the_oldest_samples_count() -> None:
    (cell,) = cells_of(case(), attempts=2)
    stored = [Sample(started, f"s{started}", None) for started in (1, 2, 3)]
    plan = plan_of([cell], {cell.questions[0]: stored})
    assert plan.sessions == {cell.questions[0]: ["s1", "s2"]}
    assert plan.newest == {cell.questions[0]: 3}
    assert plan.reused == 2


def test_a_cut_answer_counts_only_while_the_limit_has_not_been_raised() -> None:
    cut = Sample(1, "s", 400)
    assert counts(cut, 400)
    assert counts(cut, 100)
    assert not counts(cut, 401)
    assert not counts(cut, None)
    assert counts(Sample(1, "s", None), None)


def test_a_cut_answer_is_named_as_the_reason_even_beside_a_whole_one() -> None:
    (cell,) = cells_of(case(), candidates=(FIRST._replace(limit=800),), attempts=2)
    stored = [Sample(1, "cut", 400), Sample(2, "whole", None)]
    (ask,) = plan_of([cell], {cell.questions[0]: stored}).asks
    assert (ask.count, ask.cut_at) == (1, 400)


def test_the_highest_limit_of_the_answers_that_were_cut_off_is_the_reason() -> None:
    (cell,) = cells_of(case(), candidates=(FIRST._replace(limit=800),), attempts=3)
    limits = (400, 600, 900, None)
    stored = [Sample(started, str(limit), limit) for started, limit in enumerate(limits)]
    plan = plan_of([cell], {cell.questions[0]: stored})
    assert plan.sessions == {cell.questions[0]: ["900", "None"]}
    assert [(ask.count, ask.cut_at, ask.why) for ask in plan.asks] == [(1, 600, "")]


def test_a_test_has_its_own_limit() -> None:
    (cell,) = cells_of(case(limit=100), candidates=(FIRST._replace(limit=800),))
    assert plan_of([cell], {cell.questions[0]: [Sample(1, "cut", 100)]}).asks == []


# --- judging


def test_coming_answers_are_judged_as_often_as_each_cell_wants() -> None:
    cells = cells_of(case(evaluation="e1"), attempts=1) + cells_of(
        case(evaluation="e2"), attempts=3
    )
    plan = plan_of(cells)
    counted = [
        (judgement.cell.case.evaluation, judgement.subject, judgement.count)
        for judgement in plan.judgements
    ]
    assert counted == [("e1", None, 1), ("e2", None, 3)]


def test_cells_with_one_evaluation_are_judged_as_often_as_the_most_demanding() -> None:
    cells = cells_of(case(), attempts=1) + cells_of(case(), attempts=3)
    assert [judgement.count for judgement in plan_of(cells).judgements] == [3]


def test_a_case_without_an_evaluation_is_not_judged() -> None:
    assert plan_of(cells_of(case(evaluation=None))).judgements == []


def test_a_case_that_is_not_judged_does_not_block_others_and_is_not_a_subject() -> None:
    cells = cells_of(case("t1", None), case("t2"))
    samples = {cell.questions[0]: [Sample(1, cell.case.tests[0], None)] for cell in cells}
    plan = plan_of(cells, samples)
    assert [judgement.subject for judgement in plan.judgements] == list(plan.subjects()) == ["t2"]


def test_what_is_left_to_do_is_named_by_its_places() -> None:
    asked, judged = cells_of(case("t1"), case("t2", judged_by=("checks",)))
    plan = plan_of([asked, judged], {judged.questions[0]: [Sample(1, "s", None)]})
    assert list(plan.todo()) == [
        asked.questions[0],
        (asked.questions, "e", "e1"),
        (judged.questions, "e", CHECKS),
    ]


def test_votes_under_another_evaluation_or_by_another_judge_do_not_count() -> None:
    (cell,) = cells_of(case())
    samples = {cell.questions[0]: [Sample(1, "s", None)]}
    for stored, missing in (
        (vote(), 0),
        (vote(evaluation="old"), 1),
        (vote("other"), 1),
        (vote(verdict="undecided"), 0),
        (vote(verdict="error"), 0),
    ):
        assert plan_of([cell], samples, {"s": [stored]}).judge_count == missing


def test_more_judgements_are_wanted_when_the_number_is_raised() -> None:
    (cell,) = cells_of(case(), judges=(JUDGE._replace(times=3),))
    samples = {cell.questions[0]: [Sample(1, "s", None)]}
    (judgement,) = plan_of([cell], samples, {"s": [vote()]}).judgements
    assert judgement.count == 2


def test_models_are_not_needed_when_the_checks_have_failed() -> None:
    (cell,) = cells_of(case(judged_by=("checks", "models")))
    samples = {cell.questions[0]: [Sample(1, "s", None)]}

    def judges(*stored: Vote) -> list[str]:
        plan = plan_of([cell], samples, {"s": stored})
        return [
            judgement.judge.id if judgement.judge else "checks" for judgement in plan.judgements
        ]

    assert judges() == ["checks", "judge"]
    assert judges(vote(CHECKS)) == ["judge"]
    assert judges(vote(CHECKS, "fail")) == []
    assert judges(vote(CHECKS, "error")) == []
    assert judges(vote(CHECKS), vote()) == []


def test_models_are_not_asked_before_the_checks_unless_all_is_wanted() -> None:
    (cell,) = cells_of(case(judged_by=("checks", "models")))
    assert list(missing_judgements(cell, ())) == [(None, 1)]
    assert list(missing_judgements(cell, [vote(CHECKS)])) == [(JUDGE, 1)]


def test_where_checks_alone_judge_no_model_does() -> None:
    (cell,) = cells_of(case(judged_by=("checks",)))
    assert [judgement.evaluator for judgement in plan_of([cell]).judgements] == [CHECKS]
    assert counted_votes(cell, [vote(), vote(CHECKS)]) == [vote(CHECKS)]


def test_where_models_alone_judge_no_check_counts() -> None:
    (cell,) = cells_of(case())
    assert counted_votes(cell, [vote(), vote(CHECKS)]) == [vote()]


def test_the_word_of_a_person_counts_beside_checks_and_models() -> None:
    (cell,) = cells_of(case(judged_by=("checks", "models")))
    word = replaced(evaluator="ada", human=True)
    assert counted_votes(cell, [vote(CHECKS), word, vote()]) == [word, vote(CHECKS), vote()]
    assert list(missing_judgements(cell, [word])) == []


def test_of_two_votes_the_one_that_decides_counts() -> None:
    (cell,) = cells_of(case())
    assert counted_votes(cell, [vote(verdict="undecided"), vote()]) == [vote()]
    assert counted_votes(cell, [vote(verdict="error"), vote(verdict="fail")]) == [
        vote(verdict="fail")
    ]
    undecided = [vote(verdict="undecided")._replace(started=at, id=f"v{at}") for at in (1, 2, 3)]
    assert counted_votes(cell, undecided) == undecided[2:], "the newest"
    (cell,) = cells_of(case(), judges=(JUDGE._replace(times=2),))
    assert counted_votes(cell, undecided) == undecided[1:], "in the order of their times"


def test_of_too_many_votes_the_oldest_count() -> None:
    (cell,) = cells_of(case(judged_by=("checks", "models")))
    stored = [vote("e1", "fail"), vote("e1"), vote(CHECKS), vote(CHECKS, "fail"), vote("human")]
    assert counted_votes(cell, stored) == [vote(CHECKS), vote("e1", "fail")]


def test_a_vote_that_decides_counts_before_an_older_one_that_does_not() -> None:
    (cell,) = cells_of(case(judged_by=("checks", "models")), judges=(JUDGE._replace(times=2),))
    stored = [
        vote("e1", "undecided"),
        vote(CHECKS, "error"),
        vote("e1", "fail"),
        vote(CHECKS),
        vote("e1", "undecided"),
        vote("e1"),
    ]
    assert counted_votes(cell, stored) == [vote(CHECKS), vote("e1", "fail"), vote("e1")]
    plan = plan_of([cell], {cell.questions[0]: [Sample(1, "s", None)]}, {"s": stored[:2]})
    assert plan.judgements == []
    plan = plan_of([cell], {cell.questions[0]: [Sample(1, "s", None)]}, {"s": stored[1:4]})
    assert [
        (judgement.judge and judgement.judge.id, judgement.count) for judgement in plan.judgements
    ] == [("judge", 1)]


# --- several conversations in a case


def together(*tests: str, **fields: object) -> Case:
    return case(**fields)._replace(tests=tests)  # type: ignore[arg-type]


def test_each_conversation_asks_its_own_question() -> None:
    (cell,) = cells_of(together("a", "a", "b"), attempts=2)
    plan = plan_of([cell])
    asked = [(ask.question.test, ask.number, ask.count) for ask in plan.asks]
    assert asked == [("a", 0, 4), ("b", 2, 2)]
    assert [ask.question_id for ask in plan.asks] == [cell.questions[0], cell.questions[2]]
    assert plan.questions == set(cell.questions)
    assert [(judgement.sessions, judgement.count) for judgement in plan.judgements] == [((), 2)]


def test_what_is_complete_is_judged_and_the_rest_when_it_comes() -> None:
    (cell,) = cells_of(together("a", "b"), attempts=3)
    first, second = cell.questions
    samples = {
        first: [Sample(1, "a1", None), Sample(2, "a2", None)],
        second: [Sample(3, "b1", None)],
    }
    plan = plan_of([cell], samples)
    assert [
        (judgement.sessions, judgement.count, judgement.why) for judgement in plan.judgements
    ] == [
        (("a1", "b1"), 1, ""),
        ((), 2, ""),
    ]
    assert list(plan.subjects()) == [hashing.subject_of(("a1", "b1"))]


@pytest.mark.parametrize("tests", [("a", "b"), ("a", "b", "c"), ("a", "a", "b")])
def test_answers_that_will_not_come_are_not_to_be_judged(tests: tuple[str, ...]) -> None:
    far = FIRST._replace(reachable=False)
    (cell,) = cells_of(together(*tests), candidates=(far,), attempts=2)
    samples = {
        question: [Sample(number, f"{question}/{number}", None) for number in range(4)]
        for question in cell.questions
    }
    samples[cell.questions[-1]] = [Sample(1, "last", None)]
    plan = plan_of([cell], samples)
    assert (plan.asks, plan.left_asks) == ([], 1)
    assert [judgement.sessions[-1] for judgement in plan.judgements] == ["last"]


def test_a_conversation_that_is_held_twice_needs_two_answers_for_each_judgement() -> None:
    far = FIRST._replace(reachable=False)
    (cell,) = cells_of(together("a", "a", "b"), candidates=(far,), attempts=2)
    twice, once = cell.questions[0], cell.questions[2]
    samples = {
        twice: [Sample(number, f"a{number}", None) for number in range(3)],
        once: [Sample(number, f"b{number}", None) for number in range(2)],
    }
    plan = plan_of([cell], samples)
    assert [judgement.sessions for judgement in plan.judgements] == [("a0", "a1", "b0")]


def test_some_answers_that_come_are_judged_beside_those_that_are_there() -> None:
    (cell,) = cells_of(case(), attempts=3)
    plan = plan_of([cell], {cell.questions[0]: [Sample(1, "s", None)]})
    assert [(judgement.sessions, judgement.count) for judgement in plan.judgements] == [
        (("s",), 1),
        ((), 2),
    ]


# --- what counts in one command


def test_the_checks_are_one_evaluator_for_ever() -> None:
    assert CHECKS == "4e746071c4fc6b446646257b6aca27ff"


def test_however_old_all_counts_unless_a_bound_is_given() -> None:
    assert EVER == AgeLimit() == (-math.inf, "")


def test_answers_before_the_bound_do_not_count() -> None:
    (cell,) = cells_of(case(), attempts=2)
    stored = {cell.questions[0]: [Sample(started, f"s{started}", None) for started in (1, 2, 3)]}
    for since, counted, missing, why in (
        (1, ["s1", "s2"], 0, []),
        (2, ["s2", "s3"], 0, []),
        (3, ["s3"], 1, ["old"]),
        (math.inf, [], 2, ["old"]),
    ):
        plan = Plan(cells=[cell])
        plan_asks(plan, stored, AgeLimit(since, "old"))
        assert plan.sessions.get(cell.questions[0], []) == counted
        assert plan.ask_count == missing
        assert [ask.why for ask in plan.asks] == why
        assert plan.newest == {cell.questions[0]: 3}


def test_an_answer_that_is_missing_for_another_reason_is_not_called_old() -> None:
    (cell,) = cells_of(case(), attempts=2)
    plan = Plan(cells=[cell])
    plan_asks(plan, {cell.questions[0]: [Sample(5, "s", None)]}, AgeLimit(5, "old"))
    assert [(ask.count, ask.why) for ask in plan.asks] == [(1, "")]


def test_votes_before_the_bound_and_those_to_be_repeated_do_not_count() -> None:
    (cell,) = cells_of(case())
    stored = {"s": [vote(verdict="undecided")]}
    for bound, again, count, why in (
        (EVER, (), 0, []),
        (AgeLimit(2, "old"), (), 1, ["old"]),
        (EVER, UNSETTLED, 1, ["retry of an undecided verdict"]),
    ):
        plan = Plan(cells=[cell])
        plan_asks(plan, {cell.questions[0]: [Sample(1, "s", None)]})
        plan_judgements(plan, stored, bound, again)
        assert plan.judge_count == count
        assert [judgement.why for judgement in plan.judgements] == why
        assert plan.votes == {"s": [] if count else stored["s"]}


def test_votes_that_do_not_count_are_distinguished() -> None:
    cells = cells_of(case("t1"), case("t2"))
    samples = {cell.questions[0]: [Sample(1, cell.case.tests[0], None)] for cell in cells}
    stored = {
        "t1": [replaced(started=1, id="old"), replaced(started=2, id="new")],
        "t2": [replaced(started=1, id="other")],
    }
    plan = Plan(cells=cells)
    plan_asks(plan, samples)
    plan_judgements(plan, stored, AgeLimit(2, "old"))
    assert plan.passed_over == {"old", "other"}
    assert {
        subject: [counted.id for counted in votes] for subject, votes in plan.votes.items()
    } == {
        "t1": ["new"],
        "t2": [],
    }
    assert [(judgement.subject, judgement.why) for judgement in plan.judgements] == [("t2", "old")]
    assert (plan.blocked_judgements, plan.left_judgements) == (0, 0)


def test_a_person_is_never_too_old_and_repeated_by_no_command() -> None:
    (cell,) = cells_of(case())
    word = replaced(human=True, evaluator="ada", verdict="undecided")
    plan = Plan(cells=[cell])
    plan_asks(plan, {cell.questions[0]: [Sample(1, "s", None)]})
    plan_judgements(plan, {"s": [word]}, AgeLimit(5, "old"), UNSETTLED)
    assert (plan.judgements, plan.passed_over) == ([], set())


def test_verdicts_that_are_repeated_are_those_from_before_the_run() -> None:
    (cell,) = cells_of(case())
    for started, count in ((4, 1), (5, 0)):
        plan = Plan(cells=[cell])
        plan_asks(plan, {cell.questions[0]: [Sample(1, "s", None)]})
        votes = {"s": [replaced(started=started, verdict="undecided")]}
        plan_judgements(plan, votes, EVER, UNSETTLED, begun=5)
        assert plan.judge_count == count


def test_a_vote_on_the_bound_counts_and_is_not_a_reason() -> None:
    (cell,) = cells_of(case(), judges=(JUDGE._replace(times=2),))
    plan = Plan(cells=[cell])
    plan_asks(plan, {cell.questions[0]: [Sample(1, "s", None)]})
    plan_judgements(plan, {"s": [replaced(started=2)]}, AgeLimit(2, "old"))
    assert [(judgement.count, judgement.why) for judgement in plan.judgements] == [(1, "")]


def test_the_newest_vote_in_the_place_is_the_reason() -> None:
    (cell,) = cells_of(case(judged_by=("checks", "models")))
    plan = Plan(cells=[cell])
    plan_asks(plan, {cell.questions[0]: [Sample(1, "s", None)]})
    stored = [
        replaced(evaluator=CHECKS, verdict="error"),
        replaced(started=1),
        replaced(started=2, verdict="undecided"),
        replaced(evaluation="elsewhere"),
    ]
    plan_judgements(plan, {"s": stored}, AgeLimit(9, "old"), UNSETTLED)
    assert [(judgement.evaluator, judgement.why) for judgement in plan.judgements] == [
        (CHECKS, "retry of an error of a check"),
        ("e1", "retry of an undecided verdict"),
    ]


def test_what_may_not_be_called_is_left_and_counted() -> None:
    far = FIRST._replace(id="far", model="m2", reachable=False)
    judge = JUDGE._replace(evaluator="e2", reachable=False)
    cells = cells_of(case(), candidates=(FIRST, far), judges=(JUDGE, judge), attempts=2)
    plan = plan_of(cells)
    assert [(ask.cell.candidate.id, ask.count) for ask in plan.asks] == [("first", 2)]
    assert [(judgement.judge, judgement.count) for judgement in plan.judgements] == [(JUDGE, 2)]
    assert (plan.left_asks, plan.left_judgements) == (2, 2)
    assert [reachable for reachable, _ in missing_judgements(cells[0], ())] == [JUDGE]


def test_what_is_left_of_all_cells_is_counted_together() -> None:
    far = FIRST._replace(reachable=False)
    judge = JUDGE._replace(reachable=False)
    cells = cells_of(case("t1"), case("t2"), candidates=(far,), judges=(judge,), attempts=2)
    samples = {cell.questions[0]: [Sample(1, cell.case.tests[0], None)] for cell in cells}
    plan = plan_of(cells, samples)
    assert (plan.left_asks, plan.left_judgements) == (2, 2)
    assert (plan.ask_count, plan.judge_count) == (0, 0)
    assert plan_of(cells[:1]).left_asks == 2


def test_judgements_by_files_that_are_not_trusted_wait_and_so_do_those_that_follow_them() -> None:
    both = case(judged_by=("checks", "models"))
    blocked, other = cells_of(both, both._replace(tests=("t2",), evaluation="other"))
    samples = {blocked.questions[0]: [Sample(1, "s", None)]}

    def planned(votes: Mapping[str, Sequence[Vote]]) -> Plan:
        plan = Plan(cells=[blocked, other], blocked={"e"})
        plan_asks(plan, samples)
        plan_judgements(plan, votes)
        return plan

    plan = planned({})
    assert (plan.blocked_judgements, plan.waiting) == (1, {"e"})
    assert [(judgement.cell, judgement.evaluator) for judgement in plan.judgements] == [
        (other, CHECKS),
        (other, "e1"),
    ]
    checked = planned({"s": [vote(CHECKS)]})
    assert (checked.blocked_judgements, checked.waiting) == (0, set())
    assert (blocked, "e1") in [
        (judgement.cell, judgement.evaluator) for judgement in checked.judgements
    ]
    judges = (JUDGE._replace(times=5),)
    cells = cells_of(both, both._replace(tests=("t2",)), judges=judges)
    twice = Plan(cells=cells, blocked={"e"})
    plan_asks(twice, {})
    plan_judgements(twice, {})
    assert twice.blocked_judgements == 2  # by the checks; who judges then is not known yet


def test_only_what_was_tried_is_left_of_a_plan_and_its_cells() -> None:
    cells = cells_of(*(case(test, "e") for test in ("asked", "judged", "unread", "new")))
    samples = {cell.questions[0]: [Sample(1, cell.case.tests[0], None)] for cell in cells[1:]}
    plan = Plan(cells=cells)
    plan_asks(plan, samples)
    plan_judgements(plan, {"unread": [vote(verdict="undecided")]}, again=UNSETTLED)
    questions = {cells[0].questions[0], cells[2].questions[0]}
    tried: set[Place] = {("judged", "e", "e1"), ("asked", "e", "e1"), ("new", "other", "e1")}
    drop_untried(plan, FailedWork(questions, tried))
    assert [ask.cell for ask in plan.asks] == cells[:1]
    assert [(judgement.subject, judgement.cell) for judgement in plan.judgements] == [
        (None, cells[0]),
        ("judged", cells[1]),
        ("unread", cells[2]),
    ]
    assert busy_cells(plan) == cells[:3]


def test_a_check_that_is_repeated_keeps_the_judgements_that_hang_on_it() -> None:
    (cell,) = cells_of(case(judged_by=("checks", "models")))
    plan = Plan(cells=[cell])
    plan_asks(plan, {cell.questions[0]: [Sample(1, "s", None)]})
    plan_judgements(plan, {"s": [vote(CHECKS, "error")]}, again=UNSETTLED)
    drop_untried(plan, FailedWork(set(), set()))
    assert [judgement.evaluator for judgement in plan.judgements] == [CHECKS, "e1"]


# --- properties

cases = st.builds(
    lambda test, evaluation, checks: case(
        test, evaluation, judged_by=("checks", "models") if checks else ("models",)
    ),
    st.sampled_from(["t1", "t2", "t3"]),
    st.sampled_from(["e1", "e2", None]),
    st.booleans(),
)
files = st.lists(
    st.builds(
        lambda case_list, attempts: (tuple(case_list), attempts),
        st.lists(cases, min_size=1, max_size=4),
        st.sampled_from([None, 1, 2, 3]),
    ),
    min_size=1,
    max_size=4,
)
settings = st.tuples(
    st.lists(
        st.builds(
            lambda id, model, temperature, attempts: Candidate(
                id, model, temperature, attempts=attempts
            ),
            id=st.sampled_from(["a", "b", "c"]),
            model=st.sampled_from(["m1", "m2"]),
            temperature=st.sampled_from([0.0, 1.0]),
            attempts=st.integers(1, 3),
        ),
        min_size=1,
        max_size=3,
    ),
    st.lists(
        st.builds(
            lambda evaluator, times: Judge("j", evaluator, "p", times),
            st.sampled_from(["e1", "e2"]),
            st.integers(1, 3),
        ),
        min_size=1,
        max_size=3,
        unique_by=lambda judge: judge.evaluator,
    ),
)


def all_cells(
    drawn: list[tuple[tuple[Case, ...], int | None]],
    participants: tuple[list[Candidate], list[Judge]],
) -> list[Cell]:
    return [
        cell
        for case_list, attempts in drawn
        for cell in cells_of(
            *case_list, candidates=participants[0], judges=participants[1], attempts=attempts
        )
    ]


@given(files, settings)
def test_after_a_complete_run_the_plan_is_empty(
    drawn: list[tuple[tuple[Case, ...], int | None]],
    participants: tuple[list[Candidate], list[Judge]],
) -> None:
    cells = all_cells(drawn, participants)
    again = plan_of(cells, *carried_out(plan_of(cells)))
    assert (again.asks, again.judgements) == ([], [])


@given(files, settings)
def test_new_instructions_lead_to_judgements_but_to_no_question(
    drawn: list[tuple[tuple[Case, ...], int | None]],
    participants: tuple[list[Candidate], list[Judge]],
) -> None:
    before = plan_of(all_cells(drawn, participants))
    edited = [
        (
            tuple(
                each._replace(evaluation=each.evaluation and f"{each.evaluation}'")
                for each in case_list
            ),
            attempts,
        )
        for case_list, attempts in drawn
    ]
    after = plan_of(all_cells(edited, participants), *carried_out(before))
    assert after.asks == []
    assert after.judge_count == before.judge_count


@given(files, settings)
def test_no_question_and_no_judgement_is_planned_twice(
    drawn: list[tuple[tuple[Case, ...], int | None]],
    participants: tuple[list[Candidate], list[Judge]],
) -> None:
    plan = plan_of(all_cells(drawn, participants))
    questions = [ask.question_id for ask in plan.asks]
    assert len(set(questions)) == len(questions)
    judged = [
        (
            judgement.cell.questions[0],
            judgement.cell.case.evaluation,
            judgement.judge.evaluator if judgement.judge else None,
        )
        for judgement in plan.judgements
    ]
    assert len(set(judged)) == len(judged)


# --- what is quick for most cases has the results that it has for all

VOTES = st.builds(
    Vote,
    started=st.integers(1, 3),
    id=st.integers(0, 10**9).map(str),
    evaluation=st.sampled_from(["e", "e", "e", "old"]),
    evaluator=st.sampled_from([CHECKS, CHECKS, "e1", "person"]),
    verdict=st.sampled_from([*VERDICTS]),
    score=st.none() | st.sampled_from([0.0, 0.25, 1.0]),
)
JUDGED_BY = st.sampled_from(
    [("checks",), ("checks",), ("models",), ("checks", "models"), ("checks", "models", "on_fail")]
)


@given(
    st.lists(st.tuples(JUDGED_BY, st.lists(VOTES, max_size=3)), min_size=1, max_size=4),
    st.integers(1, 2),
    st.sampled_from(["majority", "all", "any", ">= 0.5"]),
    st.sampled_from([EVER, AgeLimit(2, "old")]),
    st.sampled_from([(), UNSETTLED]),
)
def test_cases_that_only_checks_judge_have_the_plans_and_verdicts_of_all_others(
    cases: list[tuple[tuple[str, ...], list[Vote]]],
    attempts: int,
    rule: str,
    bound: AgeLimit,
    again: Sequence[Verdict],
) -> None:
    cells = cells_of(
        *(case(f"t{number}", judged_by=by) for number, (by, _) in enumerate(cases)),
        attempts=attempts,
    )
    samples = {
        cell.questions[0]: [Sample(1, f"s{number}", None), Sample(2, f"z{number}", 9)][: number + 1]
        for number, cell in enumerate(cells)
    }
    votes = {
        f"s{number}": sorted(each._replace(human=each.evaluator == "person") for each in some)
        for number, (_, some) in enumerate(cases)
    }

    def outcome() -> tuple[Plan, list[CellResult]]:
        plan = Plan(cells=cells)
        plan_asks(plan, samples, bound)
        plan_judgements(plan, votes, bound, again, 3)
        return plan, compute_results(plan, rule)

    quick = outcome()
    with pytest.MonkeyPatch.context() as patch:
        for module in (plan_module, cell_results):
            patch.setattr(module, "is_checked", lambda _cell, _votes: False)
        assert outcome() == quick


def test_streamed_cells_are_those_of_all_cases_and_know_what_several_ask() -> None:
    ids = [hashing.hash_content(str(number)) for number in range(10)]
    tagged = [case(ids[number % 5], tags=("x",) * (number % 2)) for number in range(12)]
    needy = [case(ids[number + 5], needs=("image",)) for number in range(3)]
    candidates = (
        FIRST,
        Candidate("second", "m2", 0, required_tags=("x",)),
        Candidate("blind", "m3", 0, lacks=lambda needs: needs),
    )
    files = {
        "a.md": CaseFile(tuple(tagged)),
        "b.md": CaseFile((*needy, case(ids[5]), case(ids[9]))),
    }
    arguments = (files, candidates, (JUDGE,), lambda _path, _case: True)
    cells, skipped = build_cells(*arguments)
    streamed = StreamedCells(partial(place_cases, *arguments))
    assert ([*streamed], streamed.skipped, len(streamed)) == (cells, skipped, len(cells))
    assert {*streamed.judges.values()} == {cell.judges for cell in cells}
    asked_by: dict[str, set[tuple[str, int]]] = {}
    for cell in cells:
        for id in cell.questions:
            asked_by.setdefault(id, set()).add((cell.file, cell.number))
    several = {id for id, cases in asked_by.items() if len(cases) > 1}
    assert several <= {id for id in asked_by if id in streamed.shared}
    assert streamed.shared.isdisjoint(cells[-1].questions)


@given(
    st.lists(st.sampled_from([(), ("x",), ("x", "y"), ("y",)]), max_size=8),
    st.lists(st.booleans(), min_size=8, max_size=8),
    st.sampled_from([(), ("x",), ("y", "z")]),
    st.sampled_from([(), ("y",)]),
)
def test_cases_with_equal_tags_are_selected_together_where_only_tags_select(
    tags: list[tuple[str, ...]],
    recorded: list[bool],
    wanted: tuple[str, ...],
    excluded: tuple[str, ...],
) -> None:
    cases = [
        case(f"t{number}", tags=some, recorded="r" if recorded[number] else None)
        for number, some in enumerate(tags)
    ]
    files = {"a.md": CaseFile(tuple(cases[::2])), "b.md": CaseFile(tuple(cases))}
    selection = Selection((Target("b.md"), Target("c.md")), wanted, excluded)
    assert not selection.is_by_row
    arguments = (files, (FIRST,), (JUDGE,), selection.matcher())
    assert [*place_cases(*arguments, by_row=False)] == [*place_cases(*arguments)]


def test_rows_and_names_select_each_case_by_itself() -> None:
    assert Selection(name="x").is_by_row
    assert Selection((Target("a.md"), Target("a.md", "row"))).is_by_row
