"""A workspace in the abstract, and what its runs must ask: the oracle of the machine.

Nothing here knows evalstore's ids. A question is the tuple of all a model is shown; an
evaluation is the tuple of all a judge is told.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

PNG = b"\x89PNG\r\n\x1a\n"
CODES = {"first": "first", "twin": "first", "plain": "plain"}
"""Display id -> code: `twin` is `first` under another name."""
CUT_BELOW = 10
"""The fake models need this many tokens for an answer."""


class Question(NamedTuple):
    """All a candidate is shown."""

    text: str
    special: frozenset[str]
    tool: str | None
    schema: str | None
    file: tuple[str, bytes] | None
    own_temperature: float | None
    system: str | None
    code: str
    temperature: float


class Evaluation(NamedTuple):
    """All an evaluator is told of one case."""

    instructions: str | None
    checks: str | None
    contains: str | None = None


class Judge(NamedTuple):
    """Who judges."""

    code: str
    prompt: str
    temperature: float


class Asked(NamedTuple):
    """What arrives at a provider when a question is asked."""

    code: str
    system: str | None
    text: str
    tool: str | None
    schema: str | None
    json_mode: bool
    file: tuple[str, bytes] | None
    temperature: float


class Judged(NamedTuple):
    """What arrives at a provider when an answer is judged."""

    judge: Judge
    instructions: str
    answer: str


@dataclass
class File:
    """One test file."""

    question: int = 0
    instruction: int | None = 0
    rows: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    special: tuple[str, ...] = ()
    tool: bool = False
    schema: bool = False
    picture: bool = False
    prompts: tuple[str | None, ...] = ()
    attempts: int | None = None
    temperature: float | None = None
    only_first_judge: bool = False
    noise: int = 0
    """Key order, line ends, quotes, comments: nothing that counts."""

    @property
    def is_structured(self) -> bool:
        return self.schema or "_json_mode" in self.special


class Cell(NamedTuple):
    """A case for one candidate."""

    question: Question
    evaluation: Evaluation
    judges: tuple[Judge, ...]
    attempts: int


@dataclass
class Desk:
    """The workspace and its settings."""

    files: dict[str, File] = field(default_factory=lambda: {"a": File()})
    tool: int = 0
    schema: int = 0
    picture: int = 0
    picture_name: str = "one.png"
    system: int = 0
    moods: tuple[str, ...] = ()
    """Values of the system prompt's replacement."""
    evaluator_prompt: int = 0
    candidates: tuple[str, ...] = ("first",)
    temperature: float = 0
    override: float | None = None
    """Of the model `plain`."""
    checks: tuple[str | None, str | None, str | None] = (None, None, None)
    """What the answer to each question must contain: two files with new answers to the same one
    and with the same instructions do not differ in their checks alone, as both would be judged."""
    judges: tuple[str, ...] = ("judge",)
    judge_temperature: float = 0
    attempts: int = 1
    per_judge: int = 1
    limit: int | None = None
    max_age: float | None = None
    """Days: half a one more than whole ones, as answers are whole days old."""

    # --- as files

    def render(self) -> dict[str, bytes]:
        """All files of the workspace."""
        actual = {
            "evalstore.yaml": json.dumps(
                {
                    "candidates": list(self.candidates),
                    "candidatesTemperature": self.temperature,
                    "evaluators": [{"id": id, "prompt": "strict"} for id in self.judges],
                    "evaluatorsTemperature": self.judge_temperature,
                    "attempts": self.attempts,
                    "evaluationsPerEvaluator": self.per_judge,
                    "retries": 0,
                    **({"maxTestOutputTokens": self.limit} if self.limit else {}),
                    **({"maxAge": f"{self.max_age}d"} if self.max_age else {}),
                }
            ),
            "providers/fake.yaml": "code: fake\ntype: openai-compatible\n"
            "baseURL: http://127.0.0.1:9/v1\n",
            "tools/look.yaml": f"id: look\n{self._tool()}\n",
            "schemas/thing.yaml": f"id: thing\n{self._schema()}\n",
            "prompts/sys.md": self._prompt_file(),
            "prompts/strict.md": "---\ntags: [_evaluator]\n---\n# 👤\n\n"
            f"{self._strict()} <<`{{{{_evaluationInstructions}}}}`>> `{{{{_actualResponse}}}}`\n",
        }
        for id in ("first", "twin", "plain", "judge", "judge2"):
            model: dict[str, Any] = {"id": id, "code": CODES.get(id, id), "provider": "fake"}
            if id == "plain":
                model["capabilities"] = {"output": {"tools": False}}
                if self.override is not None:
                    model["candidateOverrides"] = {"temperature": self.override}
            actual[f"models/{id}.yaml"] = json.dumps(model)
        files = {name: text.encode() for name, text in actual.items()}
        files[f"tests/{self.picture_name}"] = self._bytes()
        for name, file in self.files.items():
            files[f"tests/{name}.md"] = self._test_file(file)
        return files

    def _tool(self) -> str:
        return json.dumps({"name": "look", "description": f"Look {self.tool}"})[1:-1].replace(
            '", "', '"\n"'
        )

    def _schema(self) -> str:
        return f"type: object\ntitle: Thing {self.schema}"

    def _strict(self) -> str:
        return f"Judge by rule {self.evaluator_prompt}."

    def _bytes(self) -> bytes:
        return PNG + bytes([self.picture])

    def _prompt_file(self) -> str:
        if not self.moods:
            return f"You are number {self.system}.\n"
        rows = "\n".join(f"  - {{mood: {mood}}}" for mood in self.moods)
        return f"---\nreplacements:\n{rows}\n---\nYou are {{{{mood}}}} number {self.system}.\n"

    def systems(self) -> tuple[str, ...]:
        """The versions of the system prompt."""
        if not self.moods:
            return (f"You are number {self.system}.",)
        return tuple(f"You are {mood} number {self.system}." for mood in self.moods)

    def _test_file(self, file: File) -> bytes:
        noise = random.Random(file.noise)
        head = [f"tags: {json.dumps(list(file.tags + file.special))}"]
        if file.rows:
            rows = "\n".join(f"  - {{city: {row}}}" for row in file.rows)
            head.append(f"replacements:\n{rows}")
        if file.tool:
            head.append("availableTools: [look]")
        if file.schema:
            head.append("structuredResponseSchema: thing")
        if file.prompts:
            head.append(f"systemPrompts: {json.dumps(list(file.prompts))}")
        if file.attempts:
            head.append(f"attempts: {file.attempts}")
        if file.temperature is not None:
            head.append(f"options: {{temperature: {file.temperature}}}")
        if file.only_first_judge:
            head.append("evaluators: [judge]")
        if noise.random() < 0.5:
            head.append(f'description: "{noise.random()}"')
        noise.shuffle(head)
        city = " {{city}}" if file.rows else ""
        picture = f" {{{{_file:{self.picture_name}}}}}" if file.picture else ""
        body = f"# 👤\n\nQuestion {file.question}{city}?{picture}\n"
        if noise.random() < 0.5:
            body += f"<!-- {noise.random()} -->\n"
        if file.instruction is not None:
            body += f"\n---\n\nExpect {file.instruction}{city}.\n"
            if (word := self.checks[file.question]) is not None:
                body += f"\n~~~checks\n- contains: {word}\n~~~\n"
        text = "---\n" + "\n".join(head) + "\n---\n" + body
        if noise.random() < 0.3:
            text = text.replace("\n", "\r\n")
        return text.encode()

    # --- as questions

    def cells(self) -> Iterator[Cell]:
        """Every case for every candidate that can take it."""
        judges = [Judge(id, self._strict(), self.judge_temperature) for id in self.judges]
        for file in self.files.values():
            for row in file.rows or ("",):
                city = f" {row}" if row else ""
                evaluation = Evaluation(
                    None if file.instruction is None else f"Expect {file.instruction}{city}.",
                    self._schema() if file.schema else "json" if file.is_structured else None,
                    None if file.instruction is None else self.checks[file.question],
                )
                for id in self.candidates:
                    if id == "plain" and (file.tool or "_has_tools" in file.special):
                        continue
                    for system in self._systems_of(file):
                        question = self._question(file, city, id, system)
                        yield Cell(
                            question,
                            evaluation,
                            tuple(judges[:1] if file.only_first_judge else judges),
                            file.attempts or self.attempts,
                        )

    def _systems_of(self, file: File) -> Iterator[str | None]:
        for prompt in file.prompts or (None,):
            yield from (None,) if prompt is None else self.systems()

    def _question(self, file: File, city: str, id: str, system: str | None) -> Question:
        temperature = self.temperature
        if id == "plain" and self.override is not None:
            temperature = self.override
        return Question(
            text=f"Question {file.question}{city}?",
            special=frozenset(file.special),
            tool=f"Look {self.tool}" if file.tool else None,
            schema=f"Thing {self.schema}" if file.schema else None,
            file=(self.picture_name, self._bytes()) if file.picture else None,
            own_temperature=file.temperature,
            system=system,
            code=CODES[id],
            temperature=temperature if file.temperature is None else file.temperature,
        )


def arriving(question: Question) -> Asked:
    """What the provider sees of a question."""
    return Asked(
        question.code,
        question.system,
        question.text,
        question.tool,
        question.schema,
        "_json_mode" in question.special,
        question.file,
        question.temperature,
    )


def answer_to(asked: Asked) -> str:
    """What the fake candidate answers; JSON is asked for and not always given as wanted."""
    if asked.schema or asked.json_mode:
        return '{"v":1}' if "0" in asked.text else "[1]"
    return f"Answer to {asked.text}"


def verdict_on(instructions: str, code: str | None = None) -> str:
    """What the fake judge says, with the code it is told; nobody can make sense of `Expect 3`."""
    if "Expect 3" in instructions:
        return "Hm."
    verdict = {"pass": "Expect 0" in instructions, "feedback": "as I said"}
    return json.dumps(verdict | ({"code": code} if code else {}))


class Answer(NamedTuple):
    """What is remembered of a stored answer."""

    cut: int | None
    """The limit that cut it off."""
    day: int


class RunSettings(NamedTuple):
    """What the command line says beside the settings."""

    judge_only: bool = False
    attempts: int | None = None
    max_age: float | None = None
    refresh: bool = False


PLAIN = RunSettings()

Vote = tuple[Question, int, Evaluation, Judge | None]
Told = tuple[Question, int, str, Judge]
"""What a judge is told of an answer: all but the checks."""


@dataclass
class Memory:
    """What has been answered and judged so far, and what a run must therefore do."""

    day: int = 0
    answered: dict[Question, list[Answer]] = field(default_factory=dict)
    votes: dict[Vote, set[int]] = field(default_factory=dict)
    """The numbers of the verdicts; one that is carried over keeps its number."""
    made: Counter[Told | Vote] = field(default_factory=Counter)
    """How many judgements of each kind were made."""

    def run(
        self, project: Desk, options: RunSettings = PLAIN, *, calls: bool = True
    ) -> tuple[Counter[Asked], Counter[Judged]]:
        """What a complete run asks of candidates and of judges; it is remembered.

        Without `calls`, only what needs none is done.
        """
        cells = [
            cell._replace(attempts=options.attempts or cell.attempts) for cell in project.cells()
        ]
        expected: dict[Question, int] = {}
        for cell in cells:
            expected[cell.question] = max(cell.attempts, expected.get(cell.question, 0))
        asks: Counter[Asked] = Counter()
        counted: dict[Question, list[int]] = {}
        for question, most in expected.items():
            counted[question] = self._counted(question, project, options)
            missing = max(most - len(counted[question]), 0)
            if missing and not options.judge_only:
                asks[arriving(question)] += missing
                is_cut = project.limit is not None and project.limit < CUT_BELOW
                known = self.answered.setdefault(question, [])
                counted[question] += range(len(known), len(known) + missing)
                known += [Answer(project.limit if is_cut else None, self.day)] * missing
        judged: Counter[Judged] = Counter()
        is_again = options.judge_only and options.refresh
        have: dict[Vote, set[int]] = (
            {} if is_again else {vote: {*made} for vote, made in self.votes.items()}
        )
        for cell in cells:
            answer = answer_to(arriving(cell.question))
            for session in counted[cell.question][: cell.attempts]:
                judged += self._judge(cell, session, answer, project.per_judge, have, calls)
        return asks, judged

    def _counted(self, question: Question, project: Desk, options: RunSettings) -> list[int]:
        """The answers that count, oldest first."""
        if options.refresh and not options.judge_only:
            return []
        max_age = project.max_age if options.max_age is None else options.max_age
        return [
            number
            for number, item in enumerate(self.answered.get(question, ()))
            if (item.cut is None or (project.limit is not None and project.limit <= item.cut))
            and (max_age is None or self.day - item.day < max_age)
        ]

    def _judge(
        self,
        cell: Cell,
        session: int,
        answer: str,
        times: int,
        have: dict[Vote, set[int]],
        calls: bool,
    ) -> Counter[Judged]:
        """What is judged of an answer; `have` are the judgements that count."""
        judged: Counter[Judged] = Counter()
        evaluation = cell.evaluation
        if evaluation.checks is not None or evaluation.contains is not None:
            self._vote((cell.question, session, evaluation, None), 1, have)
            if evaluation.checks is not None and answer == "[1]":
                return judged
            if evaluation.contains is not None and evaluation.contains not in answer:
                return judged
        if evaluation.instructions is None:
            return judged
        each = 2 if verdict_on(evaluation.instructions) == "Hm." else 1
        for judge in cell.judges:
            vote: Vote = (cell.question, session, evaluation, judge)
            self._carry(vote, times, have)
            missing = self._vote(vote, times, have) if calls else 0
            if missing:
                judged[Judged(judge, evaluation.instructions, answer)] += each * missing
        return judged

    def _carry(self, vote: Vote, times: int, have: dict[Vote, set[int]]) -> None:
        """Take the oldest judgements by the same judge who was told the same."""
        mine = have.setdefault(vote, set())
        others = {number for each in have if _told(each) == _told(vote) for number in have[each]}
        taken = sorted(others - mine)[: max(times - len(mine), 0)]
        mine.update(taken)
        self.votes.setdefault(vote, set()).update(taken)

    def _vote(self, vote: Vote, times: int, have: dict[Vote, set[int]]) -> int:
        """Vote as often as it is missing; returns how often."""
        mine = have.setdefault(vote, set())
        missing = max(times - len(mine), 0)
        first = self.made[_told(vote)]
        self.made[_told(vote)] += missing
        mine.update(range(first, first + missing))
        self.votes.setdefault(vote, set()).update(range(first, first + missing))
        return missing

    @property
    def answers(self) -> int:
        """How many answers are stored."""
        return sum(map(len, self.answered.values()))

    @property
    def evaluations(self) -> int:
        """How many evaluations are stored."""
        return sum(map(len, self.votes.values()))


def _told(vote: Vote) -> Told | Vote:
    """What decides a vote: the checks are told nobody but themselves."""
    question, session, evaluation, judge = vote
    if judge is None or evaluation.instructions is None:
        return vote
    return question, session, evaluation.instructions, judge
