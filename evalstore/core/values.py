"""The frozen values that flow between the steps: read this first.

files -> `TestFile` -> `Case` (test version + evaluation version) -> `Question` and
judgement -> `Reply` -> session and evaluation in the store. An id is 32 hexadecimal
digits, computed by `hashing`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, NamedTuple

DEFAULT_PROMPT = "_evaluator_default"
"""The evaluator prompt of evaluators that name none."""


Role = Literal["system", "user", "assistant"]
Verdict = Literal["pass", "fail", "undecided", "error"]
VERDICTS: tuple[Verdict, ...] = ("pass", "fail", "undecided", "error")
RESULT_WORDS = (*VERDICTS, "pending")
"""The words for results of cases, in the order in which counts are shown."""
URGENCY = ("error", "no reply", "fail", "undecided", "pending", "answered", "pass")
"""What a result can say, in the order in which a reader wants to see it; `answered`: nothing
judges it."""
Word = Literal["pass", "fail", "undecided", "error", "none"]
"""What a judgement says: a verdict; or `none`, with which a person takes a label back."""
WORDS: tuple[Word, ...] = (*VERDICTS, "none")
Json = Any
"""A value that `json.loads` returns."""

REQUIRED_NAMES = ("_evaluationInstructions", "_actualResponse")
"""What every evaluator prompt is filled with when it is used."""
RUNTIME_NAMES = (*REQUIRED_NAMES, "_messages", "_systemPrompt", "_schema", "_tools")
"""What an evaluator prompt can be filled with when it is used."""

SPECIAL_TAGS = ("_evaluator", "_json_mode", "_has_tools", "_tools_only")


RECORDED = "recorded"
"""Who gave the answers that a file brings itself: a candidate that is never called."""


@dataclass(frozen=True, slots=True)
class Text:
    """Text in a message."""

    text: str


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file shown in a message: its bytes are in the store under `id`."""

    path: str
    """As the author wrote it, with forward slashes."""
    media_type: str
    id: str


@dataclass(frozen=True, slots=True)
class AnswerRef:
    """A placeholder for answers in instructions."""

    places: tuple[tuple[int, int], ...]
    """The number of a session, and of the answer in it, both from 0."""

    def __str__(self) -> str:
        """Return the place as messages show it; both numbers from 1."""
        single = all(session == 0 for session, _ in self.places)
        places = (
            f"{turn + 1}" if single else f"{turn + 1} of conversation {session + 1}"
            for session, turn in self.places
        )
        return f"[answer {', '.join(places)}]"


@dataclass(frozen=True, slots=True)
class SampleRef:
    """A placeholder in instructions for an expression over `sample`."""

    expression: str
    """Mentions nothing but `sample`."""

    def __str__(self) -> str:
        """Return the place as messages show it."""
        return f"[{self.expression}]"


Part = Text | FileRef | AnswerRef | SampleRef


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    parts: tuple[Part, ...]
    filled: bool = False
    """Whether the candidate fills this turn: then it has no parts of its own."""
    name: str | None = None
    """The name of the speaker, which some providers show to the model."""


@dataclass(frozen=True, slots=True)
class FileVersion:
    """The bytes of a referenced file."""

    media_type: str
    data: bytes = field(repr=False)


def order_counts(verdicts: Mapping[str, int]) -> dict[str, int]:
    """Sort counts of verdicts in the order in which they are shown."""
    return {word: verdicts[word] for word in RESULT_WORDS}


def is_text(media_type: str) -> bool:
    """Return whether a file of this type is shown as text."""
    return media_type.startswith("text/")


@dataclass(frozen=True, slots=True)
class ToolVersion:
    """A function the candidate may call; `parameters` is a JSON Schema."""

    name: str
    description: str
    parameters: Json


@dataclass(frozen=True, slots=True)
class Options:
    """Generation options set by a test; they belong to its identity."""

    temperature: float | None = None
    max_output_tokens: int | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    provider_options: Json = None


@dataclass(frozen=True, slots=True)
class TestVersion:
    """Everything the candidate is shown in one conversation."""

    messages: tuple[Message, ...]
    special_tags: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    """Ids of tool versions; their order does not count."""
    schema: str | None = None
    """Id of a schema version."""
    options: Options = Options()


@dataclass(frozen=True, slots=True)
class EvaluationVersion:
    """Everything the evaluator is told about one case."""

    instructions: tuple[Part, ...] = ()
    checks: tuple[Json, ...] = ()
    """Checks in canonical form: type, revision, all settings."""


@dataclass(frozen=True, slots=True)
class PromptVersion:
    """A system prompt, or an evaluator prompt with its runtime names still in it."""

    messages: tuple[Message, ...]
    special_tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelVersion:
    """Who answers, as far as it decides the answer."""

    provider: str
    """The kind of provider: `openai`, `openai-compatible`, `scripted`, any litellm provider."""
    code: str
    base_url: str | None = None
    options: Json = None
    """Effective options: provider options, thinking, provider tools."""
    service: str | None = None
    """The name of the service, which replaces its base URL: it has several addresses."""


@dataclass(frozen=True, slots=True)
class Question:
    """One answer to get. Attempts are samples under one question."""

    test: str
    prompt: str | None
    model: str
    temperature: float | None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Who judges: a model with an evaluator prompt; the checks; a person; or another system."""

    model: str | None = None
    prompt: str | None = None
    temperature: float | None = None
    checks: bool = False
    human: str | None = None
    system: str | None = None
    """The system whose recorded verdicts were imported, such as `lve`."""
    reading: int | None = None
    """The revision of how the replies of a model are read."""


class Case(NamedTuple):
    """One test file filled with one row; a tuple, as there may be millions."""

    row: str
    """The row's label, unique in its file; empty when there is only one row."""
    key: str
    """Hash of the row's values: same values, same row, whatever the body says."""
    tests: tuple[str, ...]
    """Ids of test versions, one for each conversation; one that is held often stands there
    often."""
    evaluation: str | None
    tags: tuple[str, ...]
    prompts: tuple[str | None, ...]
    """Ids of system prompt versions; None: without a system prompt."""
    needs: tuple[str, ...] = ()
    """Capabilities a model must have: `tools`, `structured`, `image`, `pdf`, `file`, `audio`."""
    judged_by: tuple[str, ...] = ("models",)
    """`checks` when the evaluation version has some, `models` when it has instructions or `judge`.

    With both: `on_fail` or `always` when models judge not only what has passed the checks.
    """
    temperature: float | None = None
    """Set by the test, instead of the settings' temperature."""
    seed: int | None = None
    """Set by the test."""
    limit: int | None = None
    """Token limit set by the test, instead of the settings' limit."""
    recorded: str | None = None
    """Id of the model version that stands for the answers which the row brings itself."""
    judge_prompts: tuple[str, ...] = ()
    """Ids of the evaluator prompt versions that models judge by; empty: each by its own."""
    code: tuple[str, ...] = ()
    """Ids of the Python files that its checks run; with `+network` what wants the network."""

    @property
    def references(self) -> tuple[str, ...]:
        """Return the ids of the tests, prompts and evaluation that it refers to."""
        shown = (*self.tests, *self.prompts, *self.judge_prompts, self.evaluation)
        return tuple(id for id in shown if id)


@dataclass(frozen=True, slots=True)
class CaseFile:
    """All cases of one test file, and the other facts about it that planning needs."""

    cases: Sequence[Case]
    attempts: int | None = None
    evaluators: tuple[str, ...] | None = None
    """Display ids of the evaluators this file asks for; None: those of the settings."""
    threshold: float | None = None
    id: str | None = None
    """The `id` of the frontmatter, when it has one."""
    code: tuple[str, ...] | None = field(default=None, compare=False)
    """What its cases run, sorted; None: only they tell."""

    @property
    def runs(self) -> Sequence[str]:
        """Return the Python files that its cases run, as they have them."""
        if self.code is not None:
            return self.code
        return sorted({path for case in self.cases for path in case.code})


# --- what goes to a provider and what comes back ---------------------------------------


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file on its way to a provider."""

    path: str
    media_type: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """One turn with the bytes of its files."""

    role: Role
    parts: tuple[Text | FilePart, ...]
    filled: bool = False
    """Whether this turn is still to be filled with what the candidate answers."""
    name: str | None = None

    @property
    def text(self) -> str:
        """Return the text of the turn, without its files."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a model, with all that decides the answer."""

    code: str
    """The model's code at its provider, without the provider's prefix."""
    messages: tuple[OutgoingMessage, ...]
    tools: tuple[ToolVersion, ...] = ()
    schema: Json = None
    """Ask for JSON that matches this JSON Schema."""
    json_mode: bool = False
    """Ask for a JSON object of any shape."""
    temperature: float | None = None
    max_output_tokens: int | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    provider_options: Mapping[str, Json] = field(default_factory=dict)
    """Further fields of the request body, as they are."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool; the arguments are parsed JSON, or text when they are not JSON."""

    name: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call, as the provider counted them; None: not reported."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """How many of the input tokens came from the provider's cache."""
    reasoning_tokens: int | None = None
    """How many of the output tokens were reasoning."""
    cache_write_tokens: int | None = None
    """How many of the input tokens were written into the provider's cache."""


NO_USAGE = Usage()
"""Is compared by identity where it saves time: most results of checks have it."""
CUT = ("length", "max_tokens")
"""Why an answer ended, in the words of providers, when a token limit cut it off."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered to one request."""

    text: str | None
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    """The provider's word: `stop`, `length`, `tool_calls`, `content_filter` …"""
    refusal: str | None = None
    usage: Usage = NO_USAGE
    resolved_model: str | None = None
    """The model the provider says has answered."""
    request_id: str | None = None
    latency: float = 0.0
    """Seconds of the call that succeeded, without the attempts before it."""
    wait: float = 0.0
    """Seconds for which the provider's rate limits leave no room; not stored."""
    cost: float | None = None
    """USD that the call cost, if the one who answered says so; stored with the session."""

    @property
    def is_cut(self) -> bool:
        """Return whether a token limit cut the answer off."""
        return self.finish_reason in CUT


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a call, with the price that was used."""

    usd: float
    price: Json
    """The price in force: USD for each token, call and hour, and where it came from."""


class Session(NamedTuple):
    """One conversation held for a question: a sample under the question's id."""

    question: Question
    turns: tuple[Reply, ...]
    """One reply for each turn that the candidate filled."""
    started: int
    """Microseconds since 1970, UTC."""
    nonce: str
    cost: Cost | None = None
    limit: int | None = None
    """The token limit that cut the answer off; None when it was not cut off by ours."""
    origin: str = "run"

    @property
    def answer(self) -> Reply:
        """Return the answer of the last turn."""
        return self.turns[-1]


ShownTurn = tuple[str | None, str | None, tuple[ToolCall, ...]]
"""The text, the refusal and the tool calls of a turn."""


class ComparedSession(NamedTuple):
    """What is compared of a session."""

    id: str
    question: Question
    started: int
    """Microseconds since 1970, UTC."""
    turns: Sequence[ShownTurn]
    resolved: tuple[str, ...] = ()
    """The models that answered, as the provider named them, sorted."""


class Evaluation(NamedTuple):
    """One evaluator's judgement of a session under an evaluation version."""

    sessions: tuple[str, ...]
    evaluation: str
    evaluator: str
    verdict: Word
    started: int
    """Microseconds since 1970, UTC."""
    nonce: str
    score: float | None = None
    """0..1"""
    label: str | None = None
    feedback: str = ""
    reasoning: str = ""
    checks: tuple[Json, ...] = ()
    """The result of each check: `type`, `verdict`, `feedback`."""
    usage: Usage = NO_USAGE
    cost: Cost | None = None
    latency: float = 0.0
    """Seconds of the judge's call."""
    origin: str = "run"
    taken_from: str | None = None
    """Id of the judgement that a judge made under another evaluation version, if it is that one."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed call, which is logged and has no answer."""

    question: str | None
    """Id of the question that was asked; None when a judge failed."""
    subject: str | None
    """Id of the session that was to be judged."""
    evaluator: str | None
    kind: str
    message: str
    at: int
    """Microseconds since 1970, UTC."""
    nonce: str
    status: int | None = None
    attempts: int = 1
    model: str | None = None
    evaluation: str | None = None
    """Id of the evaluation version under which a judge failed."""

    @property
    def text(self) -> str:
        """Return the message behind the name of the model."""
        return f"{self.model}: {self.message}" if self.model else self.message


class Sample(NamedTuple):
    """A stored session, as far as planning needs it."""

    started: int
    id: str
    limit: int | None


class Vote(NamedTuple):
    """A stored evaluation, as far as planning needs it."""

    started: int
    id: str
    evaluation: str
    evaluator: str
    verdict: Word
    score: float | None
    human: bool = False
    """Whether the vote is a person's."""
    is_carried: bool = False
    """Whether it is carried over from another evaluation version, and its row is not stored yet."""


Decision = tuple["Verdict | None", tuple[str, ...]]
"""A verdict and the ids of the judgements that make it."""


CellKey = tuple[str, str, int, str]
"""The file, the row, the number of the system prompt, and the candidate of a result."""


class Result(NamedTuple):
    """One cell of a run or of the workspace: a case, a system prompt, a candidate."""

    file: str
    row: str
    key: str
    prompt_number: int
    """The index of the case's system prompt, which unlike its id does not change with an edit."""
    prompt: str | None
    model: str
    """Display id."""
    test: str
    evaluation: str | None
    verdict: Verdict | None
    """None: not judged, or not completely."""
    score: float | None
    sessions: tuple[str, ...]
    evaluations: tuple[str, ...]
    required_answers: int = 1
    """The number of answers required."""
    conversations: tuple[str, ...] = ()
    """The test versions of a case that is not one conversation held once; else empty."""
    failure: str = ""
    """The message of the failed call for what is missing; known of what is browsed alone."""

    @property
    def cell(self) -> CellKey:
        """Return the place of the result within its run."""
        return self.file, self.row, self.prompt_number, self.model

    @property
    def decision(self) -> Decision:
        """Return the verdict and the judgements that make it."""
        return self.verdict, self.evaluations

    @property
    def tests(self) -> tuple[str, ...]:
        """Return the test version of each conversation; it repeats for one that is held often."""
        return self.conversations or (self.test,)

    @property
    def subjects(self) -> list[tuple[str, ...]]:
        """Return the sessions of each attempt that has all answers, as they are judged together.

        Empty for several conversations while an answer is missing: of which one is not known.
        """
        counts = Counter(self.tests)
        if len(counts) > 1 and len(self.sessions) < self.required_answers:
            return []
        attempts, left = len(self.sessions) // len(self.tests), iter(self.sessions)
        of = {test: iter([*islice(left, attempts * count)]) for test, count in counts.items()}
        return [tuple(next(of[test]) for test in self.tests) for _ in range(attempts)]

    @property
    def has_attempts(self) -> bool:
        """Return whether there are several attempts at the case."""
        return self.required_answers > len(self.tests)

    @property
    def is_missing(self) -> bool:
        """Return whether an answer or a judgement is missing."""
        return self.verdict is None and (
            self.evaluation is not None or len(self.sessions) < self.required_answers
        )

    @property
    def word(self) -> str | None:
        """Return the verdict, `pending` or `no reply`; None for an answer that nothing judges."""
        missing = "no reply" if self.failure else "pending"
        return self.verdict or (missing if self.is_missing else None)

    def marked(self, failed: Mapping[CellKey, Failure]) -> Result:
        """Return the result, with the message of the call for it that failed, if any."""
        failure = failed.get(self.cell) if failed else None
        return self._replace(failure=failure.text) if failure else self
