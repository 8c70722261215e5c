"""Executing a plan on a real store: what is asked how often, what is stored, what is lost."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from evalstore.core import hashing
from evalstore.core.clock import uptime
from evalstore.core.errors import StoreError, StoreLockedError
from evalstore.core.runs import ProgressListener
from evalstore.core.values import (
    Case,
    CaseFile,
    EvaluationVersion,
    Evaluator,
    Message,
    ModelVersion,
    PromptVersion,
    Reply,
    Request,
    TestVersion,
    Text,
    Usage,
)
from evalstore.exchange.sync.fsck import check_store
from evalstore.planning.cells import Candidate, Cell
from evalstore.planning.cells import Judge as PlanJudge
from evalstore.planning.plan import CHECKS, Plan, plan_asks, plan_judgements
from evalstore.providers.base import Provider, ProviderError
from evalstore.providers.price_table import Price
from evalstore.providers.script import ScriptedProvider
from evalstore.runs.execution.execution_counts import ExecutionCounts, ModelSpending
from evalstore.runs.execution.executor import Executor
from evalstore.runs.execution.model_calls import Endpoint, Limits, RunEnvironment
from evalstore.runs.execution.sharing.run_share import SharedWork
from evalstore.store import Store, leases
from evalstore.store.leases import Leases
from evalstore.workspace.model_files import Model, ProviderFile
from tests.builders import build_cells
from tests.stored_rows import count_rows, read_contents

Act = Callable[[Request, int], "Reply | Coroutine[Any, Any, Reply]"]
"""From a request and how often it came to an answer; or raises."""

GOOD = '{"pass": true, "feedback": "fine"}'


class Listener(ProgressListener):
    """Notes what it is told."""

    def __init__(self, seen: list[tuple[str, int]], notes: list[str]) -> None:
        self._seen, self._notes = seen, notes

    def advance(self, kind: str, count: int) -> None:
        self._seen.append((kind, count))

    def note(self, message: str) -> None:
        self._notes.append(message)


class Acting:
    """A provider that does what a test says."""

    def __init__(self, act: Act) -> None:
        self.act = act
        self.requests: list[Request] = []
        self.now = self.most_at_once = 0
        self.closed = 0

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        self.requests.append(request)
        count = self.requests.count(request)
        self.now += 1
        self.most_at_once = max(self.most_at_once, self.now)
        try:
            await asyncio.sleep(0)
            reply = self.act(request, count)
            return reply if isinstance(reply, Reply) else await reply
        finally:
            self.now -= 1

    async def close(self) -> None:
        self.closed += 1


def always(text: str) -> Act:
    return lambda _request, _count: Reply(text, finish_reason="stop", usage=Usage(10, 2))


async def never() -> Reply:
    """Hang until it is cancelled."""
    future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    return await future


def failing(*errors: ProviderError, then: str = "answer") -> Act:
    def act(_request: Request, count: int) -> Reply:
        if count <= len(errors):
            raise errors[count - 1]
        return Reply(then)

    return act


def busy(retry_after: float | None = None) -> ProviderError:
    return ProviderError("status", "too many", status=429, retry=True, retry_after=retry_after)


_ANSWER, _GOOD = always("answer"), always(GOOD)


@dataclass
class Lab:
    """A store, models and cases; `run` plans and executes as `evalstore run` does."""

    store: Store
    act: Act = _ANSWER
    judging: Act = _GOOD
    attempts: int = 1
    times: int = 1
    limit: int | None = None
    limits: Limits = Limits()  # noqa: RUF009
    files: dict[str, CaseFile] = field(default_factory=dict)
    judges: tuple[str, ...] = ("judge",)
    models: tuple[str, ...] = ("m",)
    price: Price | None = None
    plans: dict[Executor, Plan] = field(default_factory=dict)
    slept: list[float] = field(default_factory=list)
    time: float = 0.0
    """Seconds that were slept."""
    suspended: float = 0.0
    """Seconds for which the machine slept."""
    shared: SharedWork | None = None
    warned: list[str] = field(default_factory=list)
    seen: list[tuple[str, int]] = field(default_factory=list)
    clock: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    nonces: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.candidate: Provider = Acting(lambda *arguments: self.act(*arguments))
        self.judge: Provider = Acting(lambda *arguments: self.judging(*arguments))

    @property
    def asked(self) -> list[Request]:
        assert isinstance(self.candidate, Acting)
        return self.candidate.requests

    @property
    def judged(self) -> list[Request]:
        assert isinstance(self.judge, Acting)
        return self.judge.requests

    def add(
        self,
        text: str = "Hi",
        instructions: str | None = "Judge.",
        *,
        json_mode: bool = False,
        schema: Any = None,
        attempts: int | None = None,
        evaluators: tuple[str, ...] | None = None,
        tags: tuple[str, ...] = (),
        repetitions: int = 1,
    ) -> None:
        """Add a test file with one case."""
        contents: dict[str, tuple[str, str]] = {}

        def keep(kind: str, description: dict[str, Any]) -> str:
            id, content = hashing.identify(description)
            contents[id] = (kind, content)
            return id

        checks: tuple[Any, ...] = ({"type": "json", "revision": 2},) if json_mode else ()
        schema_id = None
        if schema is not None:
            schema_id = keep("schema", hashing.describe_schema(schema))
            checks = ({"type": "jsonSchema", "revision": 2, "schema": schema_id},)
        version = TestVersion((Message("user", (Text(text),)),), schema=schema_id)
        parts = (Text(instructions),) if instructions else ()
        evaluation = EvaluationVersion(parts, checks)
        case = Case(
            "",
            "",
            (keep("test", hashing.describe_test(version)),) * repetitions,
            keep("evaluation", hashing.describe_evaluation(evaluation))
            if instructions or checks
            else None,
            tags,
            (None,),
            judged_by=tuple(
                judge_kind
                for judge_kind, has in (("checks", checks), ("models", instructions))
                if has
            )
            or ("models",),
        )
        self.files[f"{len(self.files)}.md"] = CaseFile((case,), attempts, evaluators)
        self.store.ensure_versions(contents)

    def model(self, id: str) -> ModelVersion:
        return ModelVersion("fake", id)

    def plan(self) -> Plan:
        strict = PromptVersion(
            (Message("user", (Text("{{_evaluationInstructions}}|{{_actualResponse}}"),)),),
            ("_evaluator",),
        )
        prompt, content = hashing.identify(hashing.describe_prompt(strict))
        contents = {prompt: ("prompt", content)}
        checks = hashing.describe_evaluator(Evaluator(checks=True))
        contents[CHECKS] = ("evaluator", hashing.identify(checks)[1])
        candidates, judges = [], []
        for id in (*self.models, *self.judges):
            model, content = hashing.identify(hashing.describe_model(self.model(id)))
            contents[model] = ("model", content)
            if id in self.models:
                candidates.append(Candidate(id, model, 0, self.limit, self.attempts))
                continue
            evaluator = hashing.describe_evaluator(Evaluator(model, prompt, 0))
            name, content = hashing.identify(evaluator)
            contents[name] = ("evaluator", content)
            tags = ("only",) if id == "tagged" else ()
            judges.append(PlanJudge(id, name, prompt, self.times, required_tags=tags))
        self.store.ensure_versions(contents)
        cells, _ = build_cells(self.files, candidates, judges, lambda _path, _case: True)
        plan = Plan(cells=cells)
        plan_asks(plan, self.store.find_samples({cell.questions[0] for cell in cells}))
        plan_judgements(plan, self.store.find_votes(plan.subjects()))
        return plan

    def executor(self, plan: Plan | None = None) -> Executor:
        plan = plan or self.plan()

        def endpoint(id: str, provider: Provider) -> Endpoint:
            model = Model(id, ProviderFile("fake", "fake"), id)
            return Endpoint(model, self.model(id), provider, self.price, 0)

        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)
            self.time += seconds
            await asyncio.sleep(0)

        executor = Executor(
            self.store,
            {cell.candidate.id: endpoint(cell.candidate.id, self.candidate) for cell in plan.cells},
            {
                judge.evaluator: endpoint(judge.id, self.judge)
                for cell in plan.cells
                for judge in cell.judges
            },
            self.limits,
            RunEnvironment(
                now=lambda: next(self.clock),
                nonce=lambda: f"{next(self.nonces):016x}",
                listener=Listener(self.seen, self.warned),
                sleep=sleep,
                monotonic=lambda: self.time,
                uptime=lambda: uptime() + self.suspended,
                jitter=lambda: 1.0,
            ),
            shared=self.shared,
        )
        self.plans[executor] = plan
        return executor

    async def execute(self, executor: Executor) -> ExecutionCounts:
        """Carry out the plan that this executor was made for."""
        async with executor:
            await executor.carry_out(self.plans[executor])
        return executor.outcome

    def run(self) -> ExecutionCounts:
        return asyncio.run(self.execute(self.executor()))

    def is_done(self) -> bool:
        plan = self.plan()
        return not plan.asks and not plan.judgements

    def stored(self, table: str) -> list[Any]:
        """The contents of a table, in the order they were stored."""
        return read_contents(self.store, table)


IN_A_FILE = pytest.mark.parametrize("location", ["sqlite"], indirect=True)
"""Of tests of calls, judges and limits: what decides there is not in the database."""


@pytest.fixture
def lab(store: Store) -> Iterator[Lab]:
    """A store in each database."""
    yield Lab(store)
    assert check_store(store)[1] == []


# --- asking


def test_an_answer_is_stored_and_judged(lab: Lab) -> None:
    lab.add()
    outcome = lab.run()
    assert (outcome.asked, outcome.judged, outcome.failed) == (1, 1, 0)
    assert lab.stored("sessions")[0]["turns"][0]["text"] == "answer"
    assert lab.stored("evaluations")[0]["verdict"] == "pass"
    assert lab.seen == [("asked", 1), ("judged", 1)]
    assert lab.is_done()


@IN_A_FILE
def test_a_burst_of_answers_leaves_time_to_other_tasks(lab: Lab) -> None:
    """All forty answers come in one iteration of the event loop; eight are taken in each."""
    lab.limits = Limits(concurrency=160)
    lab.add(attempts=40)
    taken = [0]

    async def run() -> None:
        all_asked = asyncio.Event()

        async def answer(count: int) -> Reply:
            if count == 40:
                all_asked.set()
            await all_asked.wait()
            return Reply("answer")

        lab.act = lambda _request, count: answer(count)
        executing = asyncio.create_task(lab.execute(lab.executor()))
        while not executing.done():
            await asyncio.sleep(0)
            taken.append(lab.seen.count(("asked", 1)))
        await executing

    asyncio.run(run())
    assert taken[-1] == 40
    assert max(now - before for before, now in itertools.pairwise(taken)) <= 8


@IN_A_FILE
def test_the_scripted_provider_takes_the_same_path(lab: Lab) -> None:
    lab.add("What?")
    lab.candidate = ScriptedProvider([{"when": "What", "answer": " 42 \n"}])
    lab.judge = ScriptedProvider([{"answer": {"pass": False, "feedback": "no"}}])
    lab.run()
    assert lab.stored("sessions")[0]["turns"][0]["text"] == "42"
    assert lab.stored("evaluations")[0]["feedback"] == "no"


def test_identical_questions_are_asked_once(lab: Lab) -> None:
    for instructions in ("One.", "Two.", "One."):
        lab.add("Same", instructions)
    outcome = lab.run()
    assert (outcome.asked, outcome.judged) == (1, 2)
    assert lab.is_done()


def test_attempts_are_samples_of_one_question(lab: Lab) -> None:
    lab.add(attempts=3)
    lab.run()
    assert len(lab.asked) == len(lab.judged) == 3
    lab.files = {}
    lab.add(attempts=5)
    lab.run()
    assert len(lab.asked) == len(lab.judged) == 5
    assert lab.is_done()


def test_answers_that_only_another_file_wants_are_judged_for_that_file_alone(lab: Lab) -> None:
    lab.add("Same", "Three.", attempts=3)
    lab.add("Same", "One.", attempts=1)
    assert lab.plan().judge_count == 4
    lab.run()
    instructions = [request.messages[0].text.partition("|")[0] for request in lab.judged]
    assert sorted(instructions) == ["One.", "Three.", "Three.", "Three."]
    assert lab.is_done()


def test_the_oldest_answer_is_judged_where_one_is_wanted_though_it_came_last(lab: Lab) -> None:
    def act(_request: Request, count: int) -> Any:
        async def late() -> Reply:
            for _ in range(100 if count == 1 else 0):
                await asyncio.sleep(0)
            return Reply(f"answer {count}")

        return late()

    lab.act = act
    lab.add("Same", "Three.", attempts=3)
    lab.add("Same", "One.", attempts=1)
    lab.run()
    (judged,) = [request for request in lab.judged if request.messages[0].text.startswith("One.")]
    assert "answer 1" in judged.messages[0].text
    assert lab.is_done()


def test_a_clock_that_goes_back_changes_nothing_about_what_counts(lab: Lab) -> None:
    lab.clock = itertools.count(1_000_000)
    lab.add("Same", "One.")
    lab.run()
    lab.clock = itertools.count(1)
    lab.add("Same", "Two.", attempts=2)
    lab.run()
    started = [session["started"] for session in lab.stored("sessions")]
    assert started == sorted(started)
    assert lab.is_done()


def test_answers_of_the_same_microsecond_leave_nothing_to_do(lab: Lab) -> None:
    lab.clock = itertools.repeat(7)
    lab.add("Same", "One.", attempts=1)
    lab.add("Same", "Three.", attempts=3)
    lab.run()
    assert lab.is_done()
    assert len(lab.judged) == 4


@IN_A_FILE
def test_no_more_calls_at_once_than_allowed(lab: Lab) -> None:
    lab.limits = Limits(concurrency=3)
    for number in range(20):
        lab.add(f"Question {number}", None)
    lab.run()
    assert isinstance(lab.candidate, Acting)
    assert lab.candidate.most_at_once == 3


# --- answers that were cut off


def cut(limit_needed: int) -> Act:
    def act(request: Request, _count: int) -> Reply:
        limit = request.max_output_tokens
        is_cut = limit is not None and limit < limit_needed
        return Reply("answer", finish_reason="length" if is_cut else "stop")

    return act


@IN_A_FILE
def test_a_cut_answer_counts_until_the_limit_is_raised(lab: Lab) -> None:
    lab.act = cut(500)
    lab.limit = 400
    lab.add(instructions=None)
    lab.run()
    assert lab.is_done()
    lab.limit = 300
    assert lab.is_done()
    lab.limit = 800
    (ask,) = lab.plan().asks
    assert ask.cut_at == 400
    lab.run()
    assert lab.is_done()
    lab.limit = 100
    assert lab.is_done()
    assert len(lab.asked) == 2


@IN_A_FILE
def test_without_a_limit_a_cut_answer_is_asked_again(lab: Lab) -> None:
    lab.act = cut(500)
    lab.limit = 400
    lab.add(instructions=None)
    lab.run()
    lab.limit = None
    lab.run()
    assert len(lab.asked) == 2
    assert lab.is_done()


@IN_A_FILE
def test_an_answer_the_provider_cut_by_itself_is_not_asked_again(lab: Lab) -> None:
    lab.act = lambda _request, _count: Reply("answer", finish_reason="length")
    lab.add(instructions=None)
    lab.run()
    lab.limit = 100
    assert lab.is_done()


# --- failures


@IN_A_FILE
def test_a_call_is_tried_again_as_often_as_allowed(lab: Lab) -> None:
    lab.limits = Limits(retries=2)
    lab.act = failing(*[busy()] * 9)
    lab.add(instructions=None)
    outcome = lab.run()
    assert len(lab.asked) == 3
    assert outcome.failures == {"m: too many": 1}
    (failure,) = lab.stored("failures")
    assert (failure["attempts"], failure["status"], failure["type"]) == (3, 429, "status")
    assert not lab.is_done()


@IN_A_FILE
def test_a_failure_that_passes_costs_nothing_but_time(lab: Lab) -> None:
    lab.act = failing(busy(), busy())
    lab.add(instructions=None)
    outcome = lab.run()
    assert (outcome.asked, outcome.failed) == (1, 0)
    assert lab.slept == [0.5, 1.0]
    assert lab.stored("failures") == []


@IN_A_FILE
def test_the_server_says_how_long_to_wait(lab: Lab) -> None:
    lab.act = failing(busy(7.0), busy(20.0))
    lab.add(instructions=None)
    assert lab.run().asked == 1
    assert lab.slept == [7.0, 20.0]


@IN_A_FILE
def test_a_wait_that_is_longer_than_the_timeout_ends_the_model(lab: Lab) -> None:
    lab.act = failing(*[busy(10_000.0)] * 9)
    lab.add(instructions=None)
    lab.add("Hello", instructions=None)
    lab.limits = Limits(concurrency=1)
    assert lab.run().failed == 2
    assert len(lab.asked) == 1
    assert lab.warned == [
        "model 'm' is not asked again in this run: too many (it asks to wait 10,000 s, "
        "and the timeout is 120 s)"
    ]


@IN_A_FILE
def test_the_wait_is_bounded_and_spread(lab: Lab) -> None:
    lab.limits = Limits(retries=12, timeout=1000)
    lab.act = failing(*[busy()] * 12)
    lab.add(instructions=None)
    lab.run()
    assert lab.slept == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, *[30.0] * 6]


@IN_A_FILE
def test_what_cannot_succeed_is_not_tried_again(lab: Lab) -> None:
    lab.act = failing(ProviderError("status", "bad request", status=400))
    lab.add(instructions=None)
    lab.run()
    assert len(lab.asked) == 1


def test_a_failure_leaves_the_answer_missing_and_the_next_run_asks_for_it(lab: Lab) -> None:
    lab.act = failing(ProviderError("status", "bad request", status=400))
    lab.add("One")
    lab.run()
    lab.act = always("answer")
    lab.add("Two")
    outcome = lab.run()
    assert (outcome.asked, outcome.judged) == (2, 2)
    assert lab.is_done()


@IN_A_FILE
def test_a_refused_key_stops_that_model_with_one_message(lab: Lab) -> None:
    def act(request: Request, _count: int) -> Reply:
        if request.code == "locked":
            raise ProviderError("status", "no such key", status=401, stops_model=True)
        return Reply("answer")

    lab.act = act
    lab.models = ("locked", "m")
    lab.limits = Limits(concurrency=2)
    for number in range(10):
        lab.add(f"Question {number}", None)
    outcome = lab.run()
    assert outcome.asked == 10
    assert outcome.failures == {"locked: no such key": 10}
    assert outcome.permanent_failures == 10
    assert lab.warned == ["model 'locked' is not asked again in this run: no such key"]
    assert sum(1 for request in lab.asked if request.code == "locked") <= 2
    assert len(lab.stored("failures")) <= 2


@IN_A_FILE
def test_a_failing_judge_leaves_the_judgement_missing(lab: Lab) -> None:
    lab.judging = failing(ProviderError("connection", "gone"))
    lab.add()
    outcome = lab.run()
    assert (outcome.asked, outcome.judged, outcome.failed) == (1, 0, 1)
    (failure,) = lab.stored("failures")
    assert failure["subject"]
    assert failure["evaluator"]
    assert "question" not in failure
    lab.judging = always(GOOD)
    lab.run()
    assert len(lab.asked) == 1
    assert lab.is_done()


@IN_A_FILE
def test_an_answer_that_is_not_json_where_a_schema_asks_is_paid_for_once_and_fails(
    lab: Lab,
) -> None:
    lab.act = always("Sorry")
    lab.price = Price("costs", per_call=0.5)
    lab.add(schema={"type": "object"})
    outcome = lab.run()
    assert (outcome.asked, outcome.failed, outcome.cost) == (1, 0, 0.5)
    assert lab.stored("evaluations")[0]["verdict"] == "fail"
    assert lab.is_done()


@IN_A_FILE
@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_an_answer_that_was_cut_off_is_an_answer(lab: Lab, reason: str) -> None:
    lab.act = lambda _request, _count: Reply('{"a', finish_reason=reason)
    lab.add(schema={"type": "object"})
    assert lab.run().asked == 1
    assert lab.stored("evaluations")[0]["verdict"] == "fail"
    assert lab.is_done()


# --- judging


@IN_A_FILE
def test_a_judge_is_asked_once_more_when_it_cannot_be_read(lab: Lab) -> None:
    def act(request: Request, _count: int) -> Reply:
        demanded = re.search(r'"code": "(\w+)"', request.messages[-1].text)
        text = "Hm." if demanded is None else f'{{"code": "{demanded[1]}", "pass": true}}'
        return Reply(text, usage=Usage(10, 2))

    lab.judging = act
    lab.price = Price("costs", per_call=1.0)
    lab.add()
    outcome = lab.run()
    (evaluation,) = lab.stored("evaluations")
    assert evaluation["verdict"] == "pass"
    assert evaluation["usage"] == {"inputTokens": 20, "outputTokens": 4}
    assert outcome.judge_cost == evaluation["cost"]["usd"] == 2.0


@IN_A_FILE
def test_the_code_that_a_judge_must_repeat_is_not_the_number_of_the_marks(lab: Lab) -> None:
    lab.judging = always("Hm.")
    lab.add()
    lab.run()
    words = lab.judged[1].messages
    (marks,) = set(re.findall(r"of the response (\w+)", words[0].text))
    (code,) = set(re.findall(r'"code": "(\w+)"', "".join(message.text for message in words)))
    assert code not in marks
    assert words[0].text.index(code) > words[0].text.index("[end of the response")


@IN_A_FILE
def test_a_judge_that_cannot_be_read_twice_is_undecided_and_not_asked_again(lab: Lab) -> None:
    lab.judging = always("Hm.")
    lab.add()
    lab.run()
    (evaluation,) = lab.stored("evaluations")
    assert evaluation["verdict"] == "undecided"
    assert evaluation["feedback"] == "the judge's reply is not one JSON object and nothing else"
    assert len(lab.judged) == 2
    assert lab.is_done()


@IN_A_FILE
def test_a_judge_that_fails_after_an_unreadable_reply_has_cost_something(lab: Lab) -> None:
    def act(request: Request, _count: int) -> Reply:
        if len(request.messages) > 1:
            raise ProviderError("connection", "gone")
        return Reply("Hm.")

    lab.judging = act
    lab.price = Price("costs", per_call=1.0)
    lab.add()
    outcome = lab.run()
    assert (outcome.judged, outcome.failed, outcome.judge_cost) == (0, 1, 1.0)


@IN_A_FILE
def test_checks_that_fail_save_the_judgement_of_the_model(lab: Lab) -> None:
    lab.add(json_mode=True)
    lab.run()
    assert lab.judged == []
    assert [row["verdict"] for row in lab.stored("evaluations")] == ["fail"]
    assert lab.is_done()


@IN_A_FILE
def test_checks_that_pass_leave_the_verdict_to_the_model(lab: Lab) -> None:
    lab.act = always("{}")
    lab.add(json_mode=True)
    lab.run()
    assert len(lab.judged) == 1
    assert lab.is_done()


def test_checks_of_files_that_share_an_answer_are_each_made_once(lab: Lab) -> None:
    lab.act = always("{}")
    lab.add("Same", "One.", json_mode=True)
    lab.add("Same", "Two.", json_mode=True)
    lab.add("Same", None, json_mode=True, attempts=2)
    lab.add("Same", "One.", json_mode=True, tags=("only",))
    lab.judges = ("judge", "tagged")
    outcome = lab.run()
    # Three evaluation versions; the one without a judge has two answers to check.
    assert outcome.judged == 4 + len(lab.judged)
    judged = sorted(request.code + request.messages[0].text[:4] for request in lab.judged)
    assert judged == ["judgeOne.", "judgeTwo.", "taggedOne."]
    assert lab.is_done()


@IN_A_FILE
def test_every_evaluator_judges_as_often_as_wanted(lab: Lab) -> None:
    lab.judges, lab.times = ("judge", "other"), 2
    lab.add()
    lab.run()
    assert sorted(request.code for request in lab.judged) == ["judge", "judge", "other", "other"]
    lab.times = 3
    lab.run()
    assert len(lab.judged) == 6
    assert lab.is_done()


@IN_A_FILE
def test_a_file_can_ask_for_some_evaluators(lab: Lab) -> None:
    lab.judges = ("judge", "other")
    lab.add(evaluators=("other",))
    lab.run()
    assert [request.code for request in lab.judged] == ["other"]
    assert lab.is_done()


@IN_A_FILE
def test_an_evaluator_can_be_meant_for_a_tag(lab: Lab) -> None:
    lab.judges = ("judge", "tagged")
    lab.add("Same", tags=())
    lab.add("Same", tags=("only",))
    lab.run()
    assert sorted(request.code for request in lab.judged) == ["judge", "tagged"]
    assert lab.is_done()


@IN_A_FILE
def test_the_same_judge_under_two_names_judges_once(lab: Lab) -> None:
    lab.add()
    plan = lab.plan()
    plan.cells = [cell._replace(judges=cell.judges * 2) for cell in plan.cells]
    asyncio.run(lab.execute(lab.executor(plan)))
    assert len(lab.judged) == 1


def test_stored_answers_are_judged_without_being_asked_again(lab: Lab) -> None:
    lab.add(instructions="Old.")
    lab.run()
    lab.files = {}
    lab.add(instructions="New.")
    outcome = lab.run()
    assert (outcome.asked, outcome.judged) == (0, 1)
    assert "answer" in lab.judged[-1].messages[0].text


# --- writing


def test_an_answer_is_in_the_store_before_the_run_ends(lab: Lab) -> None:
    started: list[int] = []

    def act(_request: Request, count: int) -> Any:
        async def last() -> Reply:
            while not lab.stored("sessions"):
                await asyncio.sleep(0.001)
            started.append(len(lab.stored("sessions")))
            return Reply("late")

        return Reply("first") if count == 1 else last()

    lab.act = act
    lab.add(instructions=None, attempts=2)
    lab.run()
    assert started == [1]


def test_one_writer_commits_many_answers_at_once(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []
    writing: list[int] = []
    record = Store.record

    def counting(store: Store, sessions: Any, *rest: Any, wait: bool) -> None:
        writing.append(1)
        assert len(writing) == 1
        batches.append(len(sessions))
        record(store, sessions, *rest, wait=wait)
        writing.pop()

    monkeypatch.setattr(Store, "record", counting)
    for number in range(50):
        lab.add(f"Question {number}", None)
    lab.run()
    assert sum(batches) == 50
    assert len(batches) < 25


def test_an_error_of_the_store_surfaces(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def record(*_: Any, wait: bool) -> None:
        raise StoreError("the store is locked")

    monkeypatch.setattr(Store, "record", record)
    lab.add()
    with pytest.raises(StoreError, match="is locked"):
        lab.run()
    assert isinstance(lab.candidate, Acting)
    assert lab.candidate.closed == 1


def test_an_answer_that_could_not_be_stored_is_stored_at_the_end(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = Store.record
    calls: list[int] = []

    def once(store: Store, *rest: Any, wait: bool) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise StoreError("the store is locked")
        record(store, *rest, wait=wait)

    def act(_request: Request, count: int) -> Any:
        async def later() -> Reply:
            while not calls:
                await asyncio.sleep(0.001)
            return await never()

        return Reply("first") if count == 1 else later()

    monkeypatch.setattr(Store, "record", once)
    lab.act = act
    lab.add(instructions=None, attempts=2)
    with pytest.raises(StoreError, match="is locked"):
        lab.run()
    assert len(lab.stored("sessions")) == 1


@IN_A_FILE
@pytest.mark.parametrize(
    "bug",
    [
        OverflowError("date value out of range"),
        RecursionError(),
        KeyError("choices"),
        MemoryError(),
    ],
    ids=lambda bug: type(bug).__name__,
)
@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_bug_in_a_provider_fails_its_call_and_no_other(
    lab: Lab, bug: Exception, concurrency: int
) -> None:
    def act(request: Request, _count: int) -> Reply:
        if "7" in request.messages[0].text:
            raise bug
        return Reply("answer")

    lab.act = act
    lab.limits = Limits(concurrency=concurrency)
    for number in range(10):
        lab.add(f"Question {number}")
    outcome = lab.run()
    assert (outcome.asked, outcome.judged, outcome.failed) == (9, 9, 1)
    (message,) = outcome.failures
    assert message.startswith(f"m: a bug in the provider: {type(bug).__name__}")
    (failure,) = lab.stored("failures")
    assert (failure["type"], failure["attempts"]) == ("bug", 1)
    assert isinstance(lab.candidate, Acting)
    assert lab.candidate.closed == 1
    lab.act = always("answer")
    assert lab.run().asked == 1


@IN_A_FILE
def test_a_bug_in_the_provider_of_a_judge_leaves_the_judgement_missing(lab: Lab) -> None:
    def broken(_request: Request, _count: int) -> Reply:
        raise ZeroDivisionError("division\x1b[31m by zero")

    lab.judging = broken
    lab.add()
    outcome = lab.run()
    assert (outcome.asked, outcome.judged, outcome.failed) == (1, 0, 1)
    assert list(outcome.failures) == [
        "judge: a bug in the provider: ZeroDivisionError: division\\x1b[31m by zero"
    ]
    lab.judging = always(GOOD)
    again = lab.run()
    assert (again.asked, again.judged) == (0, 1)


def test_a_key_in_the_words_of_a_bug_is_not_stored(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_API_KEY", "other-secret-value")

    def broken(_request: Request, _count: int) -> Reply:
        raise ValueError("cannot parse other-secret-value")

    lab.act = broken
    lab.add()
    assert list(lab.run().failures) == ["m: a bug in the provider: ValueError: cannot parse ***"]


# --- stopping


@IN_A_FILE
def test_halting_finishes_what_is_in_flight_and_starts_nothing(lab: Lab) -> None:
    for number in range(10):
        lab.add(f"Question {number}")
    lab.limits = Limits(concurrency=2)
    executor = lab.executor()

    def act(_request: Request, _count: int) -> Reply:
        executor.halt()
        executor.halt()
        return Reply("answer")

    lab.act = act
    outcome = asyncio.run(lab.execute(executor))
    assert outcome.asked == len(lab.asked) == len(lab.stored("sessions")) == 2
    assert lab.judged == []
    lab.act = always("answer")
    lab.run()
    assert len(lab.asked) == 10
    assert lab.is_done()


@IN_A_FILE
def test_halting_does_not_wait_for_another_try(lab: Lab) -> None:
    lab.add(instructions=None)
    executor = lab.executor()

    async def forever(_seconds: float) -> None:
        executor.halt()
        await asyncio.get_running_loop().create_future()

    calls = executor.calls
    calls._environment = replace(calls._environment, sleep=forever)
    lab.act = failing(busy(100.0))
    outcome = asyncio.run(lab.execute(executor))
    assert (outcome.asked, outcome.failed) == (0, 1)
    assert len(lab.asked) == 1


def test_however_often_it_is_cancelled_what_was_answered_is_stored(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.limits = Limits(concurrency=1)
    lab.add("One", None)
    lab.add("Two", None)
    executor = lab.executor()
    record = Store.record
    tasks: list[asyncio.Task[ExecutionCounts]] = []
    loops: list[asyncio.AbstractEventLoop] = []

    def cancelled_meanwhile(store: Store, *rest: Any, wait: bool) -> None:
        if not wait:
            raise StoreLockedError("the store is locked")
        for _ in range(3):
            loops[0].call_soon_threadsafe(tasks[0].cancel)
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loops[0]).result()
        record(store, *rest)

    monkeypatch.setattr(Store, "record", cancelled_meanwhile)

    def act(request: Request, _count: int) -> Any:
        return Reply("answer") if "One" in request.messages[0].text else never()

    lab.act = act

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        tasks.append(asyncio.create_task(lab.execute(executor)))
        with contextlib.suppress(asyncio.CancelledError):
            await tasks[0]

    asyncio.run(main())
    monkeypatch.undo()
    assert len(lab.stored("sessions")) == 1


# --- costs


def test_the_price_used_is_stored_with_the_answer(lab: Lab) -> None:
    lab.price = Price("costs", per_input_token=0.01, per_call=1.0)
    lab.add()
    outcome = lab.run()
    cost = lab.stored("sessions")[0]["cost"]
    assert cost == {"usd": 1.1, "price": {"source": "costs", "inputToken": 0.01, "call": 1.0}}
    assert (outcome.cost, outcome.judge_cost, outcome.priced) == (1.1, 1.1, True)


@IN_A_FILE
def test_without_a_price_the_cost_is_not_known(lab: Lab) -> None:
    lab.add()
    assert not lab.run().priced


# --- sharing the work with other runs


def run_together(lab: Lab, count: int = 2) -> list[tuple[Plan, ExecutionCounts]]:
    """Several runs at once, each with a plan made before any of them began."""
    plans = [lab.plan() for _ in range(count)]
    executors = [lab.executor(plan) for plan in plans]

    async def run() -> list[ExecutionCounts]:
        return await asyncio.gather(*(lab.execute(executor) for executor in executors))

    return list(zip(plans, asyncio.run(run()), strict=True))


def known(plan: Plan, outcome: ExecutionCounts) -> tuple[int, int]:
    """How many answers and verdicts a run can report: its own and those of others."""
    questions = {cell.questions[0] for cell in plan.cells}
    sessions = {
        *(id for question in questions for id in plan.sessions.get(question, ())),
        *(sample.id for question in questions for sample in outcome.sessions.get(question, ())),
    }
    votes = [
        vote
        for session in sessions
        for vote in (*plan.votes.get(session, ()), *outcome.votes.get(session, ()))
    ]
    assert len({vote.id for vote in votes}) == len(votes)
    return len(sessions), len(votes)


def test_runs_at_the_same_time_share_the_work(lab: Lab) -> None:
    for number in range(100):
        lab.add(f"Question {number}")
    both = run_together(lab, 3)
    assert len(lab.asked) == len(set(map(str, lab.asked))) == 100
    assert len(lab.judged) == 100
    assert sum(outcome.asked for _, outcome in both) == 100
    assert [known(plan, outcome) for plan, outcome in both] == [(100, 100)] * 3
    assert lab.is_done()


def test_what_another_run_fails_at_is_tried_by_this_one(lab: Lab) -> None:
    for number in range(10):
        lab.add(f"Question {number}", instructions=None)
    lab.limits = Limits(retries=0)

    def act(_request: Request, count: int) -> Reply:
        if count == 1:
            raise busy()
        return Reply("answer")

    lab.act = act
    outcomes = [outcome for _, outcome in run_together(lab)]
    assert (sum(each.asked for each in outcomes), sum(each.failed for each in outcomes)) == (10, 10)


def test_stored_answers_are_judged_by_one_of_the_runs(lab: Lab) -> None:
    for number in range(30):
        lab.add(f"Question {number}", instructions=None)
    lab.run()
    lab.files.clear()
    for number in range(30):
        lab.add(f"Question {number}")
    both = run_together(lab)
    assert (len(lab.asked), len(lab.judged)) == (30, 30)
    assert [known(plan, outcome) for plan, outcome in both] == [(30, 30)] * 2


def test_answers_that_are_judged_together_are_judged_by_one_of_the_runs(lab: Lab) -> None:
    for number in range(20):
        lab.add(f"Question {number}", repetitions=3)
    run_together(lab, 3)
    assert (len(lab.asked), len(lab.judged)) == (60, 20)
    assert lab.is_done()


def test_a_run_reports_that_work_is_done_elsewhere(lab: Lab) -> None:
    lab.add("Only one")
    executor = lab.executor()
    other = Leases(lab.store)
    other.claim([cell.questions[0] for cell in lab.plans[executor].cells])

    def warn(message: str) -> None:
        lab.warned.append(message)
        other.leave()

    executor.sharing._warn = warn
    assert asyncio.run(lab.execute(executor)).asked == 1
    (line,) = lab.warned
    assert line.startswith("another run on this store is doing part of this one (process ")


def test_several_answers_are_shared_too(lab: Lab) -> None:
    for number in range(10):
        lab.add(f"Question {number}", json_mode=True)
    lab.act = always('{"a": 1}')
    lab.attempts, lab.times = 3, 2
    both = run_together(lab)
    assert (len(lab.asked), len(lab.judged)) == (30, 60)
    assert [known(plan, outcome) for plan, outcome in both] == [(30, 90)] * 2
    assert lab.is_done()


def test_leases_are_gone_when_a_run_ends_however_it_ends(lab: Lab) -> None:
    for number in range(20):
        lab.add(f"Question {number}")
    executor = lab.executor()

    def act(_request: Request, _count: int) -> Reply:
        executor.halt()
        return Reply("answer")

    lab.act = act
    asyncio.run(lab.execute(executor))
    assert count_rows(lab.store, "leases") == 0
    assert count_rows(lab.store, "runners") == 0


def test_work_that_was_taken_over_while_we_slept_is_not_done_again(lab: Lab) -> None:
    for number in range(12):
        lab.add(f"Question {number}")
    lab.limits = Limits(concurrency=1)
    plans = [lab.plan() for _ in range(2)]
    first, second = (lab.executor(plan) for plan in plans)
    other: list[ExecutionCounts] = []

    async def act_later(request: Request) -> Reply:
        if len(lab.asked) == 3:
            # The first run sleeps; another takes it for dead and does everything.
            first.sharing.presence._last_beat -= 1000
            with lab.store.writing() as connection:
                connection.execute("DELETE FROM leases")
                connection.execute("DELETE FROM runners")
            other.append(await lab.execute(second))
        return Reply("answer")

    lab.act = lambda request, _count: act_later(request)
    ours = asyncio.run(lab.execute(first))
    assert ours.failed == 0
    assert len(lab.asked) == 13  # only what was in flight when we fell asleep is asked twice
    assert len(lab.judged) == 12  # of those two answers one counts, and is judged
    assert len(lab.stored("sessions")) == 13  # what is paid is kept
    assert known(plans[0], ours) == (12, 12)
    assert lab.is_done()


def sleeping_at(lab: Lab, when: Callable[[], bool]) -> tuple[Executor, Callable[[], Any]]:
    """A run, and what sends it to sleep in a call; another takes it for dead and does everything.

    It happens once, when `when` says so.
    """
    first, second = lab.executor(), lab.executor()
    happened: list[ExecutionCounts] = []

    async def sleep() -> bool:
        if happened or not when():
            return False
        first.sharing.presence._last_beat -= 1000
        with lab.store.writing() as connection:
            connection.execute("DELETE FROM leases")
            connection.execute("DELETE FROM runners")
        happened.append(ExecutionCounts())
        happened[0] = await lab.execute(second)
        assert happened[0].failed == 0
        return True

    return first, sleep


def test_after_a_sleep_no_try_is_repeated_that_another_run_has_made(lab: Lab) -> None:
    lab.add(instructions=None)
    first, sleep = sleeping_at(lab, lambda: len(lab.asked) == 1)

    async def act() -> Reply:
        if await sleep():
            raise busy()
        return Reply("answer")

    lab.act = lambda _request, _count: act()
    outcome = asyncio.run(lab.execute(first))
    assert (outcome.asked, outcome.failed, len(lab.asked)) == (0, 0, 2)
    assert lab.stored("failures") == []
    assert lab.is_done()


@pytest.mark.parametrize("judged", [False, True])
def test_a_call_that_breaks_off_in_a_sleep_is_no_failure_when_another_run_has_made_it(
    lab: Lab, *, judged: bool
) -> None:
    lab.add(instructions=None)
    if judged:
        lab.add()
    lab.limits = Limits(retries=0)
    first, sleep = sleeping_at(lab, lambda: bool(lab.judged) == judged)

    async def act(answer: str) -> Reply:
        if await sleep():
            raise busy()
        return Reply(answer)

    lab.act = lambda _request, _count: act("answer")
    lab.judging = lambda _request, _count: act(GOOD)
    outcome = asyncio.run(lab.execute(first))
    assert outcome.failed == 0
    assert lab.stored("failures") == []
    assert lab.is_done()


def test_after_a_sleep_no_judge_is_asked_again_what_another_run_has_heard(lab: Lab) -> None:
    lab.add()
    lab.run()
    lab.judges = ("other",)
    first, sleep = sleeping_at(lab, lambda: len(lab.judged) == 2)

    async def judging() -> Reply:
        return Reply("Nobody can read this." if await sleep() else GOOD)

    lab.judging = lambda _request, _count: judging()
    outcome = asyncio.run(lab.execute(first))
    assert (outcome.judged, outcome.failed, len(lab.judged)) == (0, 0, 3)
    assert len(lab.stored("evaluations")) == 2
    assert lab.is_done()


def test_an_answer_that_came_while_we_slept_is_judged_when_nobody_else_has_one(lab: Lab) -> None:
    lab.add()
    executor = lab.executor()

    def act(_request: Request, _count: int) -> Reply:
        executor.sharing.presence._last_beat -= 1000
        return Reply("answer")

    lab.act = act
    outcome = asyncio.run(lab.execute(executor))
    assert (outcome.asked, outcome.judged, outcome.failed) == (1, 1, 0)
    assert (len(lab.asked), len(lab.judged)) == (1, 1)
    assert lab.seen.count(("asked", 1)) == 1
    assert lab.is_done()


def test_the_part_of_a_run_that_is_stopped_for_long_is_taken_over(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        lab.add(f"Question {number}")
    executor = lab.executor()
    other = Leases(lab.store)
    other.claim([cell.questions[0] for cell in lab.plans[executor].cells][:2])
    monkeypatch.setattr(leases, "HUNG_SECONDS", 0.0)
    outcome = asyncio.run(lab.execute(executor))
    assert (outcome.asked, outcome.judged, outcome.failed) == (5, 5, 0)
    assert (lab.warned, lab.is_done()) == ([], True)


def test_nobody_waits_for_what_a_run_that_is_stopped_has_reserved(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        lab.add(f"Question {number}", instructions=None)
    run, other = "1" * 32, Leases(lab.store)
    lab.store.add_shared_run(run, {}, 0.05)
    lab.shared = SharedWork(run, leads=False, cost_limit=0.05)
    lab.price = Price("test", per_call=0.01)
    other.register()
    lab.store.write_share(run, other.runner.id, 0.03, 0.0, {})
    monkeypatch.setattr(leases, "HUNG_SECONDS", 0.0)
    outcome = lab.run()
    assert (outcome.asked, outcome.over_budget, round(outcome.cost, 9)) == (2, True, 0.02)
    assert [line.partition(":")[0] for line in lab.warned] == [
        "the next call may cost up to $0.0100, and nothing is left"
    ]
    lab.store.remove_shared_runs([run])


def test_after_a_sleep_that_nobody_used_everything_goes_on(lab: Lab) -> None:
    for number in range(12):
        lab.add(f"Question {number}")
    lab.limits = Limits(concurrency=1)
    executor = lab.executor()

    def act(_request: Request, _count: int) -> Reply:
        if len(lab.asked) == 3:
            executor.sharing.presence._last_beat -= 1000
        return Reply("answer")

    lab.act = act
    outcome = asyncio.run(lab.execute(executor))
    assert (outcome.asked, outcome.judged, outcome.failed) == (12, 12, 0)


def test_a_store_that_is_locked_for_a_while_loses_nothing(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        lab.add(f"Question {number}", instructions=None)
    record, calls = lab.store.record, itertools.count()

    def locked(*arguments: Any, wait: bool) -> None:
        if next(calls) in (2, 3, 4, 5, 6, 7):
            raise StoreLockedError("the store is locked")
        record(*arguments, wait=wait)

    monkeypatch.setattr(lab.store, "record", locked)
    outcome = lab.run()
    assert (outcome.asked, outcome.failed, len(lab.stored("sessions"))) == (5, 0, 5)


def test_what_failed_in_one_plan_is_not_tried_again_in_the_next(lab: Lab) -> None:
    lab.add("Same", instructions=None)
    lab.limits = Limits(retries=0)
    lab.act = failing(*[busy()] * 9)
    executor = lab.executor()

    async def run() -> ExecutionCounts:
        async with executor:
            await executor.carry_out(lab.plan())
            await executor.carry_out(lab.plan())
        return executor.outcome

    assert asyncio.run(run()).failed == 1
    assert len(lab.asked) == 1


# --- budget


@IN_A_FILE
def test_the_budget_is_never_exceeded(lab: Lab) -> None:
    lab.price = Price("test", per_call=0.1)
    for number in range(50):
        lab.add(f"Question {number}", instructions=None)
    lab.limits = Limits(concurrency=8, max_cost=1.05)
    outcome = lab.run()
    assert (outcome.asked, outcome.failed, outcome.over_budget) == (10, 0, True)
    assert outcome.cost == pytest.approx(1.0)
    lab.limits = Limits(concurrency=8)
    assert lab.run().asked == 40


@IN_A_FILE
def test_answers_that_cost_less_than_feared_leave_room_for_more(lab: Lab) -> None:
    lab.price = Price("test", per_output_token=0.01)
    for number in range(50):
        lab.add(f"Question {number}", instructions=None)
    # A limit of 100 tokens could cost a dollar; the answers have 2 tokens, so all of them fit.
    lab.limit = 100
    lab.limits = Limits(max_cost=2.5)
    outcome = lab.run()
    assert (outcome.asked, outcome.over_budget) == (50, False)
    assert outcome.cost == pytest.approx(1.0)


@IN_A_FILE
def test_three_times_a_tenth_fit_into_three_tenths(lab: Lab) -> None:
    lab.price = Price("test", per_call=0.1)
    for number in range(5):
        lab.add(f"Question {number}", instructions=None)
    lab.limits = Limits(concurrency=1, max_cost=0.3)
    assert lab.run().asked == 3


@IN_A_FILE
def test_judges_are_paid_from_the_same_budget(lab: Lab) -> None:
    lab.price = Price("test", per_call=0.1)
    for number in range(20):
        lab.add(f"Question {number}")
    lab.limits = Limits(concurrency=1, max_cost=1.0)
    outcome = lab.run()
    assert (outcome.asked, outcome.judged, outcome.over_budget) == (5, 5, True)
    assert [outcome.cost, outcome.judge_cost] == pytest.approx([0.5, 0.5])


@IN_A_FILE
def test_what_nobody_counted_is_reckoned_at_its_likely_price(lab: Lab) -> None:
    lab.price = Price("test", per_output_token=0.001)
    lab.act = lambda _request, _count: Reply("answer")
    for number in range(20):
        lab.add(f"Question {number}", instructions=None)
    lab.limit = 100
    lab.limits = Limits(max_cost=1.0)
    outcome = lab.run()
    assert (outcome.asked, outcome.over_budget, outcome.priced) == (10, True, False)
    assert "cost" not in lab.stored("sessions")[0]


@IN_A_FILE
def test_input_tokens_are_set_aside_before_a_call(lab: Lab) -> None:
    lab.price = Price("test", per_input_token=0.001)
    lab.add(
        "Question " * 100, instructions=None
    )  # 301 tokens, more than the ten that are counted later
    lab.limits = Limits(max_cost=0.3)
    assert (lab.run().asked, len(lab.asked)) == (0, 0)
    lab.limits = Limits(max_cost=0.302)
    assert lab.run().asked == 1


@IN_A_FILE
def test_the_longest_answer_of_a_model_is_set_aside_for_its_next_ones(lab: Lab) -> None:
    def act(request: Request, _count: int) -> Reply:
        tokens = 1_000 if "long" in request.messages[-1].text else 1
        return Reply("answer", finish_reason="stop", usage=Usage(1, tokens))

    lab.price, lab.act = Price("test", per_output_token=0.001), act
    for text in ("short", "long", "short too", "unasked"):
        lab.add(text, instructions=None)
    # 0.001 + 1.000 + 0.001 are spent when another answer might cost a dollar again.
    lab.limits = Limits(concurrency=1, max_cost=2.001)
    outcome = lab.run()
    assert [request.messages[-1].text for request in lab.asked] == ["short", "long", "short too"]
    assert outcome.cost == pytest.approx(1.002)
    assert outcome.over_budget


@IN_A_FILE
def test_each_model_has_an_account_of_its_own(lab: Lab) -> None:
    lab.price = Price("test", per_call=0.1)
    lab.add()
    lab.judging = lambda _request, count: Reply("?" if count == 1 else GOOD, usage=Usage(7, 3))
    spending = lab.run().spending
    assert spending["m", "candidate"] == ModelSpending(1, 10, 2, 0, 0.1)
    assert spending["judge", "evaluator"] == ModelSpending(2, 14, 6, 0, 0.2)


# --- pace


@IN_A_FILE
def test_a_refusal_lets_the_whole_account_wait(lab: Lab) -> None:
    for number in range(6):
        lab.add(f"Question {number}", instructions=None)
    lab.limits = Limits(concurrency=1)
    lab.act = failing(busy(20.0))
    assert lab.run().asked == 6
    assert lab.slept[0] == 20.0
    assert lab.time >= 20.0


@IN_A_FILE
def test_an_answer_can_say_that_there_is_no_room_for_another(lab: Lab) -> None:
    for number in range(3):
        lab.add(f"Question {number}", instructions=None)
    lab.limits = Limits(concurrency=1)
    lab.act = lambda _request, _count: Reply("answer", wait=4.0)
    assert lab.run().asked == 3
    assert sum(lab.slept) == 8.0


@IN_A_FILE
def test_calls_are_spread_over_the_minute(lab: Lab) -> None:
    for number in range(5):
        lab.add(f"Question {number}", instructions=None)
    lab.limits = Limits(concurrency=1, requests_per_minute=62)
    lab.run()
    assert lab.time == pytest.approx(3.0)  # one second's worth is made up for


@IN_A_FILE
def test_waiting_for_a_turn_uses_up_no_timeout(lab: Lab) -> None:
    for number in range(20):
        lab.add(f"Question {number}", instructions=None)
    lab.limits = Limits(timeout=2, requests_per_minute=10, concurrency=1)
    failed = ProviderError("status", "oops", status=500, retry=True)
    lab.act = failing(failed)
    outcome = lab.run()
    assert (outcome.asked, outcome.failed) == (20, 0)


@IN_A_FILE
def test_a_model_that_was_given_up_lets_the_others_go_on_at_once(lab: Lab) -> None:
    lab.models = ("m", "other")
    for number in range(5):
        lab.add(f"Question {number}", instructions=None)
    lab.limits = Limits(concurrency=1)

    def act(request: Request, _count: int) -> Reply:
        if request.code == "m":
            raise busy(1e9)
        return Reply("answer")

    lab.act = act
    outcome = lab.run()
    assert (outcome.asked, outcome.failed) == (5, 5)
    assert lab.time == 0


@IN_A_FILE
def test_a_server_that_answers_at_times_is_not_given_up(lab: Lab) -> None:
    for number in range(100):
        lab.add(f"Question {number}", instructions=None)
    lab.limits = Limits(retries=0, concurrency=1)
    errors = itertools.cycle(
        [
            ProviderError("connection", "connection refused", retry=True),
            ProviderError("status", "bad request", status=400),
        ]
    )

    def act(_request: Request, _count: int) -> Reply:
        raise next(errors)

    lab.act = act
    lab.run()
    assert len(lab.asked) == 100
    assert lab.warned == []


@IN_A_FILE
def test_a_call_with_its_tries_ends_at_the_timeout(lab: Lab) -> None:
    lab.add(instructions=None)
    lab.limits = Limits(timeout=60, retries=50)
    lab.act = failing(*[busy(25.0)] * 50)
    assert lab.run().failed == 1
    assert len(lab.asked) == 3
    assert lab.time == 50.0


@IN_A_FILE
def test_an_endpoint_that_is_gone_is_not_asked_thousands_of_times(lab: Lab) -> None:
    for number in range(200):
        lab.add(f"Question {number}", instructions=None)
    lab.limits = Limits(retries=0, concurrency=4)
    gone = ProviderError("connection", "connection refused", retry=True)

    def act(_request: Request, _count: int) -> Reply:
        raise gone

    lab.act = act
    assert lab.run().failed == 200
    assert len(lab.asked) < 30
    assert "20 times in a row" in lab.warned[0]


def sharing(cells: Sequence[Cell]) -> set[str]:
    return {cell.questions[0] for cell in cells}


def test_cells_that_share_a_question_have_one_id(lab: Lab) -> None:
    lab.add("Same", "One.")
    lab.add("Same", "Two.")
    assert len(sharing(lab.plan().cells)) == 1
