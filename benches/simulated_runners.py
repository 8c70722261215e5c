"""`python -m benches.simulated_runners STORE …`: many runners share one run, in virtual time.

They are real executors over a real store, with their leases, work rows, budget and rate limits.
Each answer may be judged, by a model with a price and a limit of its own. The provider, the clock
and the delays of transactions are simulated: runners come and go, are killed, fall asleep and lose
their network, and their clocks differ. It prints what they have paid.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, NoReturn

from benches.simulated_provider import JUDGE_PRICE, PRICE, Call, Provider
from benches.simulated_scenario import Outcome, Scenario
from benches.virtual_time import KILLED, RUNNING, Program, VirtualLoop
from evalstore.core import hashing
from evalstore.core.values import (
    Case,
    CaseFile,
    EvaluationVersion,
    Evaluator,
    Message,
    ModelVersion,
    PromptVersion,
    TestVersion,
    Text,
)
from evalstore.planning.cells import Candidate, Cell, Judge, StreamedCells, place_cases
from evalstore.planning.plan import Plan, plan_asks, plan_judgements
from evalstore.runs.execution.executor import Executor
from evalstore.runs.execution.limits.rate_limiter import Account
from evalstore.runs.execution.model_calls import Endpoint, Limits, RunEnvironment
from evalstore.runs.execution.sharing.run_share import SharedWork, add_shares
from evalstore.store import Store
from evalstore.store.leases import SILENT_SECONDS, LeaseHolder
from evalstore.store.location import read_location

if TYPE_CHECKING:
    from evalstore.providers.price_table import Price

_MODEL, _JUDGE = ModelVersion("simulated", "m"), ModelVersion("simulated", "judge")
_PROMPT = PromptVersion(
    (Message("user", (Text("{{_evaluationInstructions}}|{{_actualResponse}}"),)),), ("_evaluator",)
)
_HOUR = 3_600_000_000
_MINUTE = 60.0
_RUN = "5" * 32


class Simulation:
    """One run with its runners."""

    def __init__(self, store: Store, scenario: Scenario) -> None:
        self._store = store
        self._scenario = scenario
        self._random = Random(scenario.seed)
        delays = Random(self._random.random())
        self._loop = VirtualLoop(lambda: delays.uniform(0.002, 0.03))
        self._provider = Provider(Random(self._random.random()))
        self._numbers = count()
        self._executors: dict[Program, Executor] = {}
        self._tasks: dict[Program, asyncio.Task[None]] = {}
        self._coming = 0
        """Programs that will be started instead of others."""
        self._excused: Counter[str] = Counter()
        """Questions -> calls that were in flight when a runner was killed or fell silent."""
        self._outcome = Outcome()
        self._is_judged = scenario.judged_per_minute > 0
        self._evaluator = ""
        self._cells = self._make_cells()
        slowest = min(scenario.per_minute, scenario.judged_per_minute or scenario.per_minute)
        self._duration = _MINUTE * scenario.cases / slowest

    def _make_cells(self) -> list[Cell]:
        contents: dict[str, tuple[str, str]] = {}

        def keep(kind: str, description: dict[str, Any]) -> str:
            id, content = hashing.identify(description)
            contents[id] = (kind, content)
            return id

        evaluation, judges = None, []
        if self._is_judged:
            evaluation = keep(
                "evaluation", hashing.describe_evaluation(EvaluationVersion((Text("Good?"),)))
            )
            prompt = keep("prompt", hashing.describe_prompt(_PROMPT))
            judge = keep("model", hashing.describe_model(_JUDGE))
            self._evaluator = keep(
                "evaluator", hashing.describe_evaluator(Evaluator(judge, prompt, 0))
            )
            judges = [Judge("judge", self._evaluator, prompt, 1)]
        cases = []
        for number in range(self._scenario.cases):
            version = TestVersion((Message("user", (Text(f"Question {number}."),)),))
            test = keep("test", hashing.describe_test(version))
            cases.append(Case("", "", (test,), evaluation, (), (None,), judged_by=("models",)))
        model = keep("model", hashing.describe_model(_MODEL))
        self._store.ensure_versions(contents)
        files = {"all.md": CaseFile(tuple(cases), None, None)}
        made_of = (files, [Candidate("m", model, 0)], judges, lambda _path, _case: True)
        return [*StreamedCells(lambda: place_cases(*made_of))]

    # --- the runners

    def _make_plan(self) -> Plan:
        plan = Plan(cells=list(self._cells))
        plan_asks(plan, self._store.find_samples({cell.questions[0] for cell in plan.cells}))
        plan_judgements(plan, self._store.find_votes(plan.subjects()))
        return plan

    def _begin(self, *, leads: bool = False) -> None:
        """Start one more program that takes part."""
        if not leads and self._store.is_remote and not self._store.find_shared_runs():
            return
        number = next(self._numbers)
        program = Program(self._loop, f"runner {number}")
        self._tasks[program] = program.start(self._take_part(program, number, leads=leads))

    async def _take_part(self, program: Program, number: int, *, leads: bool) -> None:
        scenario, random = self._scenario, Random(self._random.random())
        skew = random.randint(-_HOUR, _HOUR)
        holder = LeaseHolder(f"{random.getrandbits(128):032x}", f"machine {number}", 1, "", 0)
        environment = RunEnvironment(
            now=lambda: 50 * _HOUR + skew + int(1e6 * self._loop.time()),
            nonce=lambda: f"{random.getrandbits(64):016x}",
            monotonic=self._loop.time,
            uptime=self._loop.time,
            runner=lambda: holder,
            jitter=random.random,
        )
        asked = self._endpoint(program, _MODEL, PRICE, scenario.per_minute)
        judges = {}
        if self._is_judged:
            rate = scenario.judged_per_minute
            judges[self._evaluator] = self._endpoint(program, _JUDGE, JUDGE_PRICE, rate)
        is_shared = self._store.is_remote
        shared = SharedWork(_RUN, leads, scenario.limit) if is_shared else None
        limits = Limits(concurrency=scenario.concurrency)
        executor = Executor(self._store, {"m": asked}, judges, limits, environment, shared=shared)
        self._executors[program] = executor
        if scenario.max_time is not None:
            left = max(scenario.max_time - self._loop.time(), 0.0)
            self._loop.call_later(left, _end_in_time, executor)
        async with executor:
            await executor.carry_out(self._make_plan())
            shares = await executor.finish_shared() if is_shared else []
        if is_shared and shares is not None and self._store.find_shared_runs():
            add_shares(executor.outcome, shares)
            ids = [sample.id for samples in self._find_samples().values() for sample in samples]
            votes = sum(map(len, self._store.find_votes(ids).values()))
            counted = executor.outcome.asked + executor.outcome.judged
            self._outcome.uncounted = len(ids) + votes - counted
            all_shares = self._store.find_shares(_RUN)
            self._outcome.known = sum(share.spent + share.reserved for share in all_shares)
            self._outcome.is_recorded = True
            self._store.remove_shared_runs([_RUN])

    def _endpoint(
        self, program: Program, version: ModelVersion, price: Price, per_minute: float
    ) -> Endpoint:
        from evalstore.workspace.model_files import Model, ProviderFile

        model = Model(version.code, ProviderFile("simulated", "simulated"), version.code)
        place = f"https://{version.code}"
        account = Account(version.code, place, requests_per_minute=per_minute)
        provider = self._provider.of(program, price)
        return Endpoint(model, version, provider, price, 0, account=account)

    # --- what happens to them

    async def _run(self) -> None:
        scenario, random, loop = self._scenario, self._random, self._loop
        self._store.add_shared_run(_RUN, {}, scenario.limit)
        self._begin(leads=True)
        for _ in range(scenario.runners - 1):
            loop.call_later(random.uniform(0.1, 5.0), self._begin)
        events = [
            (self._kill, scenario.killed),
            (self._stop, scenario.stopped),
            (self._put_to_sleep, scenario.asleep),
            (self._cut_off, scenario.offline),
        ]
        for happen, times in events:
            for _ in range(times):
                loop.call_later(random.uniform(1.0, self._duration), happen)
        while self._coming or any(not self._is_over(program) for program in self._tasks):
            if loop.time() > 20 * self._duration + 600:
                self._outcome.problems.append("the runners do not end")
                return
            await asyncio.sleep(1.0)

    def _is_over(self, program: Program) -> bool:
        return program.state == KILLED or self._tasks[program].done()

    def _choose(self) -> Program | None:
        running = [
            program
            for program, task in self._tasks.items()
            if program.state == RUNNING and not task.done()
        ]
        return self._random.choice(running) if running else None

    def _kill(self) -> None:
        if program := self._choose():
            self._excuse(program)
            program.kill()
            self._replace()

    def _stop(self) -> None:
        if program := self._choose():
            executor = self._executors.get(program)
            # The one that has begun the run ends it for all.
            if executor and program.name != "runner 0":
                program.start(_halt(executor))
                self._replace()

    def _replace(self) -> None:
        """Start another program some seconds later, instead of one that is lost."""
        self._coming += 1

        def begin() -> None:
            self._coming -= 1
            self._begin()

        self._loop.call_later(self._random.uniform(1.0, 10.0), begin)

    def _put_to_sleep(self) -> None:
        if program := self._choose():
            self._fall_silent(program, program.sleep)

    def _cut_off(self) -> None:
        if program := self._choose():

            def cut(seconds: float) -> None:
                program.offline_until = self._loop.time() + seconds
                if seconds > SILENT_SECONDS / 2:
                    # Until it counts itself as silent, it makes calls.
                    self._loop.call_later(SILENT_SECONDS, self._excuse, program)

            self._fall_silent(program, cut)

    def _fall_silent(self, program: Program, fall: Any) -> None:
        seconds = self._random.choice((3.0, 10.0, 20.0, 40.0, 90.0))
        if seconds > SILENT_SECONDS / 2:
            self._excuse(program)
        fall(seconds)

    def _excuse(self, program: Program) -> None:
        """Note the calls of a runner that are in flight, whose answers it may lose."""
        stored = self._find_samples()
        for call in self._provider.calls:
            if call.runner == program.name and call.cost and not call.is_settled:
                call.is_settled = True
                if not self._is_stored(call, stored):
                    self._excused[call.question] += 1

    def _is_stored(self, call: Call, stored: dict[str, list[Any]]) -> bool:
        """Return whether the answer to a question, or a verdict of an answer, is stored."""
        number = int(call.question.rpartition(" ")[2].rstrip("."))
        samples = stored.get(self._cells[number].questions[0], ())
        if not call.judges:
            return bool(samples)
        sessions = self._store.load_sessions([sample.id for sample in samples])
        judged = [id for id, session in sessions.items() if session.turns[-1].text == call.question]
        return bool(self._store.find_votes(judged))

    def _find_samples(self) -> dict[str, list[Any]]:
        return self._store.find_samples(cell.questions[0] for cell in self._cells)

    # --- results

    def simulate(self) -> Outcome:
        """Simulate it until all runners have ended."""
        self._loop.run_until_complete(self._run())
        outcome, calls = self._outcome, self._provider.calls
        for program, task in self._tasks.items():
            if task.done() and (error := task.exception()):
                outcome.problems.append(f"{program.name}: {error!r}")
        paid = [call for call in calls if call.cost]
        times = Counter(call.question for call in paid)
        outcome.seconds = round(self._loop.time(), 3)
        outcome.answered = round(max(call.at for call in calls), 3)
        outcome.calls, outcome.paid = len(calls), len(paid)
        outcome.judged = sum(call.judges for call in paid)
        outcome.left = self._scenario.cases - self._count_done()
        for question, number in times.items():
            excused = min(number - 1, self._excused[question])
            outcome.lost += excused
            outcome.paid_again += number - 1 - excused
        outcome.spent = round(sum(call.cost for call in paid), 6)
        for judges, limit in ((False, self._scenario.per_minute), (True, self._judge_limit)):
            peak = _peak([call.at for call in calls if call.judges == judges])
            name = "judged_peak" if judges else "peak"
            setattr(outcome, name, round(peak / limit, 4))
        outcome.transactions = self._loop.handed_over
        outcome.states = dict(Counter(program.state for program in self._tasks))
        return outcome

    @property
    def _judge_limit(self) -> float:
        return self._scenario.judged_per_minute or 1.0

    def _count_done(self) -> int:
        """Return how many questions have an answer, and a judgement of it if they are judged."""
        samples = self._find_samples()
        if not self._is_judged:
            return len(samples)
        votes = self._store.find_votes(
            [sample.id for answers in samples.values() for sample in answers]
        )
        return sum(any(votes.get(sample.id) for sample in answers) for answers in samples.values())


async def _halt(executor: Executor) -> None:
    executor.outcome.interrupted = True
    executor.halt()


def _end_in_time(executor: Executor) -> None:
    if not executor.is_halted:
        executor.outcome.over_budget = executor.outcome.time_is_up = True
        executor.halt()


def _peak(times: list[float]) -> int:
    """Return the most of these times in a minute."""
    times = sorted(times)
    counts = (bisect_left(times, at + _MINUTE) - index for index, at in enumerate(times))
    return max(counts, default=0)


def main() -> Iterator[str]:
    """Simulate what the arguments say."""
    parser = argparse.ArgumentParser(prog="python -m benches.simulated_runners")
    parser.add_argument("store")
    for name, value in asdict(Scenario()).items():
        kind = float if value is None else type(value)
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=value)
    arguments = vars(parser.parse_args())
    location = read_location(arguments.pop("store"))
    store = Store.open(location, create=True)
    simulation = Simulation(store, Scenario(**arguments))
    yield json.dumps(asdict(simulation.simulate()))


def print_outcome() -> NoReturn:
    """Print what came of it, and end: the programs that were killed have nothing to clean up."""
    logging.getLogger("asyncio").disabled = True
    for line in main():
        print(line, flush=True)
    os._exit(0)


if __name__ == "__main__":
    print_outcome()
