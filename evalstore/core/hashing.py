"""Identity: which values count as the same version.

An id is a 128-bit xxh3 over the canonical JSON of what a model, or an evaluator, is
shown. The kind and the scheme number are hashed too, so a test and an evaluation never
share an id, and a change of these rules cannot go unnoticed. Defaults are left out, so
that a field added later does not change the ids that exist. Golden vectors in the tests
pin every rule of this module.

Canonical JSON is the one form that is hashed and stored: equal values have equal texts. Digests of
many values take little memory here: about ten bytes for each.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any

import xxhash

from evalstore.core.values import (
    NO_USAGE,
    AnswerRef,
    Case,
    CaseFile,
    Cost,
    Evaluation,
    EvaluationVersion,
    Evaluator,
    Failure,
    FileVersion,
    Json,
    Message,
    ModelVersion,
    Options,
    Part,
    PromptVersion,
    Question,
    Reply,
    SampleRef,
    Session,
    TestVersion,
    Text,
    ToolVersion,
    Usage,
)

SCHEME = 1
"""Raise this when unchanged files must get new ids; every stored id then changes."""

Description = dict[str, Any]

_ENCODER = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    ensure_ascii=False,
    allow_nan=False,
    check_circular=False,  # what comes from files cannot be; the check costs time
)


def _make_encode() -> Callable[[Json], str]:
    """Return the encoder's `encode`, without making its inner part again for every value."""
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return _ENCODER.encode
    arguments = (None, _ENCODER.default, json.encoder.encode_basestring, None, ":", ",")
    pieces = make(*arguments, True, False, False)
    return lambda value: "".join(pieces(value, 0))


_encode = _make_encode()


def canonical_json(value: Json) -> str:
    """Encode a value with sorted keys and no insignificant space; non-ASCII stays as it is.

    Raises ValueError for NaN and infinities.
    """
    return _encode(value)


def is_deeper(value: Json, levels: int) -> bool:
    """Return whether a value has more than so many levels of mappings and lists."""
    level: list[Any] = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        inner = (item.values() if isinstance(item, dict) else item for item in level)
        level = [each for values in inner for each in values if isinstance(each, dict | list)]
    return bool(level)


def hash_content(canonical: str) -> str:
    """Hash a canonical description to an id: 32 hexadecimal digits."""
    return xxhash.xxh3_128_hexdigest(canonical.encode())


def hash_stream(pieces: Iterable[bytes | memoryview]) -> str:
    """Hash the bytes of all pieces together to a digest, which is not an id."""
    digest = xxhash.xxh3_128()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def hash_bytes(data: bytes | memoryview) -> str:
    """Hash raw bytes to a digest of 32 hexadecimal digits, which is not an id."""
    return xxhash.xxh3_128_hexdigest(data)


def digest_bytes(data: bytes) -> int:
    """Hash raw bytes to 64 bits: the first half of `hash_bytes`."""
    return xxhash.xxh3_128_intdigest(data) >> 64


def describe(kind: str, **fields: Any) -> Description:
    """Describe a thing of this kind without the fields that have their default."""
    description = {
        name: value
        for name, value in fields.items()
        if value or (value is not None and value not in ("", [], {}, ()))
    }
    description["kind"] = kind
    description["scheme"] = SCHEME
    return description


def identify(description: Description) -> tuple[str, str]:
    """Return the id of a description, and the canonical JSON that is stored under it."""
    content = canonical_json(description)
    return hash_content(content), content


@cache
def stored_names(kind: type) -> dict[str, str]:
    """Return the name in descriptions of each field of a kind of value, such as `topP` of `top_p`.

    In the order of the fields.
    """
    fields: Iterable[str] = kind.__match_args__  # type: ignore[attr-defined]
    words = ((field, field.split("_")) for field in fields)
    names = {field: first + "".join(map(str.capitalize, more)) for field, (first, *more) in words}
    return {**names, "base_url": "baseURL"} if "base_url" in names else names


def fields_of(value: Any, **replaced: Any) -> Description:
    """Return the fields of a value by their names in descriptions.

    Those in `replaced`, which have these names, too, have other values: None leaves one out.
    """
    kind: Any = type(value)
    names, read = _fields_of(kind)
    return {**dict(zip(names, read(value), strict=True)), **replaced}


def stored_fields(kind: Any, description: Description) -> dict[str, Any]:
    """Return the fields of a kind of value that a description has, by their names in the value."""
    stored = stored_names(kind).items()
    return {field: description[name] for field, name in stored if name in description}


@cache
def _fields_of(kind: type) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    names = stored_names(kind)
    return tuple(names.values()), attrgetter(*names)


# --- descriptions, one for each kind ----------------------------------------------------


def describe_file(version: FileVersion) -> Description:
    """Describe a file by its media type and the digest of its bytes."""
    return describe(
        "file",
        mediaType=version.media_type,
        size=len(version.data),
        digest=hash_bytes(version.data),
    )


def describe_tool(version: ToolVersion) -> Description:
    """Describe a tool as a model sees it. Its id and file name are not part of it."""
    return describe("tool", **fields_of(version))


def describe_schema(schema: Json) -> Description:
    """Describe a JSON Schema. Its id and file name are not part of it."""
    return describe("schema", schema=schema)


def describe_prompt(version: PromptVersion) -> Description:
    """Describe a prompt by its messages after replacements and its special tags."""
    return describe(
        "prompt",
        messages=[_message(message) for message in version.messages],
        specialTags=sorted(set(version.special_tags)),
    )


def describe_test(version: TestVersion) -> Description:
    """Describe what the candidate is shown. Ordinary tags, path and row are not part of it."""
    return describe(
        "test",
        messages=[_message(message) for message in version.messages],
        specialTags=sorted(set(version.special_tags)),
        tools=sorted(set(version.tools)),
        schema=version.schema,
        options=_options(version.options),
    )


def with_messages(description: Description, messages: Sequence[Message]) -> Description:
    """Add messages to the description of a test that has none yet.

    The rows of a file differ in nothing else, so the rest is described once.
    """
    return {**description, "messages": [_message(message) for message in messages]}


def describe_evaluation(version: EvaluationVersion) -> Description:
    """Describe what the evaluator is shown of one case. Tags and path are not part of it."""
    return describe(
        "evaluation",
        instructions=_parts(version.instructions),
        checks=list(version.checks),
    )


def describe_model(version: ModelVersion) -> Description:
    """Describe what decides the answer. Display id, prices and capabilities are not part of it."""
    return describe("model", **fields_of(version))


def describe_question(question: Question) -> Description:
    """Describe one answer to get. Attempt number, token limit and retries are not part of it."""
    return describe("question", **_fields_of_question(question))


def _fields_of_question(question: Question) -> Description:
    return fields_of(question, temperature=_number(question.temperature))


def describe_evaluator(evaluator: Evaluator) -> Description:
    """Describe who judges."""
    temperature = _number(evaluator.temperature)
    fields = fields_of(evaluator, temperature=temperature, checks=evaluator.checks or None)
    return describe("evaluator", **fields)


def describe_case_file(file: CaseFile) -> Description:
    """Describe all cases of a test file: a leaf of the snapshot. Its path is not part of it."""
    description = describe(
        "cases",
        cases=[_case(case) for case in file.cases],
        attempts=file.attempts,
        evaluators=None if file.evaluators is None else list(file.evaluators),
        threshold=_number(file.threshold),
        id=file.id,
    )
    if file.evaluators == ():
        description["evaluators"] = []  # nobody judges; without the field all evaluators do
    return description


def describe_session(session: Session) -> Description:
    """Describe the whole content of a session, with the question spelled out and a nonce."""
    fields = fields_of(
        session,
        turns=[_reply(turn) for turn in session.turns],
        cost=_cost(session.cost),
        question=None,
    )
    return describe("session", **fields, **_fields_of_question(session.question))


def describe_evaluation_result(evaluation: Evaluation) -> Description:
    """Describe the whole content of one judgement, with a nonce."""
    fields = fields_of(
        evaluation,
        score=_number(evaluation.score),
        usage=_usage(evaluation.usage),
        cost=_cost(evaluation.cost),
        latency=round(evaluation.latency, 4) or None,
    )
    return describe("judgement", **fields)


def describe_failure(failure: Failure) -> Description:
    """Describe the whole content of a failure, with a nonce."""
    fields = fields_of(failure)
    return describe("failure", type=fields.pop("kind"), **fields)


def subject_of(sessions: tuple[str, ...]) -> str:
    """Return the subject of an evaluation: one session, or an ordered list of them."""
    if len(sessions) == 1:
        return sessions[0]
    return identify(describe("subject", sessions=list(sessions)))[0]


def question_id(question: Question) -> str:
    """Return the key under which the samples of a question are stored."""
    return id_of_question(
        question.test, question.prompt, question.model, question.temperature, question.seed
    )


def id_of_question(
    test: str, prompt: str | None, model: str, temperature: float | None, seed: int | None
) -> str:
    """Return the key under which the samples of a question with these fields are stored."""
    ids = test + model
    if not (test and model and ids.isascii() and ids.isalnum()):  # JSON may write them otherwise
        described = describe_question(Question(test, prompt, model, temperature, seed))
        return identify(described)[0]
    before, between = _around_model(prompt, temperature, seed)
    return hash_content(f'{before}{model}{between}{test}"}}')


@lru_cache(maxsize=1024, typed=True)
def _around_model(
    prompt: str | None, temperature: float | None, seed: int | None
) -> tuple[str, str]:
    """Return the canonical JSON of a question before its model, and from there to its test.

    The rows of a file differ in nothing else, so the rest is encoded once.
    """
    content = canonical_json(describe_question(Question("0", prompt, "0", temperature, seed)))
    before, model, rest = content.partition('"model":"')
    return before + model, rest[1:].removesuffix('0"}')


def evaluator_id(evaluator: Evaluator) -> str:
    """Return the id under which an evaluator votes."""
    return identify(describe_evaluator(evaluator))[0]


def row_key(values: dict[str, Json]) -> str:
    """Name a row by its values, for as long as the values stand: 16 hexadecimal digits."""
    return hash_content(canonical_json(values))[:16]


def _case(case: Case) -> Description:
    """Describe a case; tuples are shared, as there may be many cases."""
    described = dict(zip(_CASE, case, strict=True))
    if case.prompts == (None,):
        del described["prompts"]
    if case.judged_by == ("models",):
        del described["judgedBy"]
    if case.temperature is not None:
        described["temperature"] = _number(case.temperature)
    return {name: value for name, value in described.items() if value or value == 0}


_CASE = tuple(stored_names(Case).values())


def _reply(reply: Reply) -> Description:
    calls = [fields_of(call) for call in reply.tool_calls]
    described = fields_of(
        reply,
        toolCalls=calls or None,
        usage=_usage(reply.usage) or None,
        latency=round(reply.latency, 4) or None,
        wait=None,
        cost=None,
    )
    return {name: value for name, value in described.items() if value is not None}


def _usage(usage: Usage) -> Description:
    if usage is NO_USAGE:
        return {}
    return {name: value for name, value in fields_of(usage).items() if value is not None}


def _cost(cost: Cost | None) -> Description | None:
    return None if cost is None else fields_of(cost)


def _message(message: Message) -> Description:
    if message.filled:
        return {"role": message.role, "filled": True}
    described: Description = {"role": message.role}
    if parts := _parts(message.parts):
        described["content"] = parts
    if message.name:
        described["name"] = message.name
    return described


def _parts(parts: tuple[Part, ...]) -> Json:
    """Describe one text as it is, anything else as a list, which is empty without a part."""
    if len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    return [_part(part) for part in parts]


def _part(part: Part) -> Description:
    if isinstance(part, Text):
        return {"text": part.text}
    if isinstance(part, AnswerRef):
        return {"answers": [list(place) for place in part.places]}
    if isinstance(part, SampleRef):
        return {"sample": part.expression}
    return {"file": part.id, "path": part.path, "mediaType": part.media_type}


def _options(options: Options) -> Json:
    described = fields_of(
        options,
        temperature=_number(options.temperature),
        topP=_number(options.top_p),
        stop=options.stop or None,
        providerOptions=options.provider_options or None,
    )
    return {name: value for name, value in described.items() if value is not None}


def _number(value: float | None) -> float | int | None:
    """Convert a float that is whole to an int: `0.0` and `0` are one temperature."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_BITS = 64
_BUCKET_BITS = 15
"""The number of leading bits of a digest that select its bucket."""
_PARTS = 256
"""The number of parts into which the values are divided; each is counted separately."""


class DigestSet:
    """A set of whole numbers of 64 bits, which are evenly distributed."""

    def __init__(self) -> None:
        self._buckets: dict[int, array[int]] = {}

    def add(self, digest: int) -> bool:
        """Add a number, and return whether it is new."""
        place = digest >> (_BITS - _BUCKET_BITS)
        bucket = self._buckets.get(place)
        if bucket is None:
            self._buckets[place] = array("Q", (digest,))
            return True
        if digest in bucket:
            return False
        bucket.append(digest)
        return True

    def __contains__(self, digest: int) -> bool:
        return digest in self._buckets.get(digest >> (_BITS - _BUCKET_BITS), ())

    def __bool__(self) -> bool:
        return bool(self._buckets)


class ValueSet:
    """A set of values in little memory, each by a digest that holds for this process."""

    def __init__(self, values: Iterable[Hashable] = ()) -> None:
        self._digests = DigestSet()
        self.update(values)

    def add(self, value: Hashable) -> bool:
        """Add a value, and return whether it is new."""
        return self._digests.add(digest_of_value(value))

    def update(self, values: Iterable[Hashable]) -> None:
        """Add values."""
        for value in values:
            self.add(value)

    def __bool__(self) -> bool:
        return bool(self._digests)

    def __contains__(self, value: Hashable) -> bool:
        return bool(self) and digest_of_value(value) in self._digests

    def isdisjoint(self, values: Iterable[Hashable]) -> bool:
        """Return whether none of these values is in the set."""
        return not self or not any(digest_of_value(value) in self._digests for value in values)


def digest_of_value(value: Hashable) -> int:
    """Return a digest of a value that holds for this process."""
    return hash(value) % (1 << _BITS)


def digest_of(id: str) -> int:
    """Return the first digits of an id as a whole number of 64 bits."""
    return int(id[:16], 16)


def count_distinct(values: Iterable[int]) -> int:
    """Count the distinct values; each is a whole number of 64 bits."""
    return sum(len(set(part)) for part in _divide(values))


def find_repeated(values: Iterable[int]) -> set[int]:
    """Return the values that occur more than once; each is a whole number of 64 bits."""
    repeated: set[int] = set()
    for part in _divide(values):
        if len(set(part)) < len(part):
            repeated.update(value for value, count in Counter(part).items() if count > 1)
    return repeated


def _divide(values: Iterable[int]) -> list[array[int]]:
    """Return the values in parts; equal ones are in one."""
    parts = [array("Q") for _ in range(_PARTS)]
    adders = [part.append for part in parts]
    for value in values:
        adders[value >> 8 & _PARTS - 1](value)
    return parts
