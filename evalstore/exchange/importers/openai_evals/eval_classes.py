"""Import of evals whose class compares texts, with an equivalent check for each class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from evalstore.exchange.importers.base import NotTakenError, SkippedItem
from evalstore.exchange.importers.chat_messages import read_message, read_messages
from evalstore.exchange.importers.coerce import as_list, parse_json, positive_int
from evalstore.exchange.importers.json_lines import (
    JsonLinesRow,
    messages_field,
    turns_of,
    write_rows,
)
from evalstore.exchange.importers.openai_evals.registry_files import (
    Eval,
    EvalSources,
    WrittenEval,
    generation,
    unknown_arguments,
)
from evalstore.exchange.importers.template_writer import literal, write_prompt, write_test
from evalstore.files.fields import suggest

if TYPE_CHECKING:
    from evalstore.core.values import Json
    from evalstore.exchange.importers.base import ImportOptions

IDEAL = "{{ item.ideal }}"
_KNOWN = ("samples_jsonl", "num_few_shot", "few_shot_jsonl", "max_tokens")

Writer = Callable[[Eval, EvalSources, "ImportOptions"], WrittenEval]


def find_class(eval_spec: Eval) -> Writer:
    """Return the function that imports evals of this class; raises `NotTakenError`."""
    from evalstore.exchange.importers.openai_evals.model_graded import write_graded

    known: dict[str, Writer] = {
        **dict.fromkeys(CHECKS, _write_comparison),
        "ModelBasedClassify": write_graded,
    }
    if eval_spec.kind not in known:
        hint = suggest(eval_spec.kind, known, "classes that can be imported")
        raise NotTakenError(f"its class '{eval_spec.kind}' has its own code ({hint})")
    return known[eval_spec.kind]


CHECKS: Mapping[str, Json] = {
    "Match": {"startsWith": IDEAL},
    "MatchWithSolvers": {"startsWith": [IDEAL, "{{ item.ideal | capitalize }}"]},
    "Includes": {"containsAny": IDEAL},
    "FuzzyMatch": {"fuzzy": IDEAL},
    "JsonMatch": {"jsonEquals": "{{ item.ideal_json }}", "anyOf": True},
    "JsonValidator": "json",
    "Translate": {"bleu": IDEAL, "pass": "> 0.3"},
}
"""The checks of the classes."""
_FEW_SHOT = ("Match", "Translate")
_OWN: Mapping[str, tuple[str, ...]] = {
    "Includes": ("ignore_case",),
    "MatchWithSolvers": ("task_description",),
}


def _write_comparison(eval_spec: Eval, sources: EvalSources, options: ImportOptions) -> WrittenEval:
    written = WrittenEval()
    examples = _few_shot(eval_spec, sources, written)
    rows = []
    samples = sources.rows(eval_spec.args.get("samples_jsonl"), written.left)
    place = sources.path_of(str(eval_spec.args.get("samples_jsonl")))
    for row in samples:
        try:
            rows.append(_read(row, eval_spec, examples))
        except (NotTakenError, ValueError) as problem:
            written.left.append(SkippedItem(place, str(problem), row.line))
    check = CHECKS[eval_spec.kind]
    if eval_spec.kind == "Includes" and eval_spec.args.get("ignore_case"):
        check = {**check, "ignoreCase": True}
    if eval_spec.kind != "JsonValidator" and any(_is_empty(row.values) for row in rows):
        check = {**check, "allowEmpty": True}
    prompts, written.files = _system_prompt(eval_spec, sources, options)
    front = {**prompts, **generation(eval_spec), **messages_field(rows)}
    written.rows = len(rows)
    written.data = write_rows(rows)
    if all(row.raw is not None for row in rows):
        written.data_name = str(eval_spec.args["samples_jsonl"])
    turns = turns_of(rows)
    written.render = lambda first_fields: write_test(
        {**first_fields, **front}, turns, checks=[check]
    )
    written.warnings += unknown_arguments(eval_spec, (*_KNOWN, *_OWN.get(eval_spec.kind, ())))
    return written


def _is_empty(values: dict[str, Any]) -> bool:
    """Return whether a row has no ideal answer, or an empty one."""
    ideal = values.get("ideal_json", values["ideal"])
    return ideal in ("", []) or (isinstance(ideal, list) and "" in ideal)


def _read(row: JsonLinesRow, eval_spec: Eval, examples: list[dict[str, Json]]) -> JsonLinesRow:
    """Convert a row for the test; raises `ValueError` or `NotTakenError` for invalid rows."""
    if "input" not in row.values:
        raise ValueError("the row has no 'input'")
    value = row.values["input"]
    messages = read_messages(value)
    if examples:
        if isinstance(value, str):
            raise ValueError("few-shot examples need messages as 'input', not a text")
        messages = [*messages[:-1], *examples, *messages[-1:]]
    if not isinstance(value, str):
        row = row.with_values(input=messages)
    if eval_spec.kind == "JsonValidator":
        return row
    if "ideal" not in row.values:
        raise ValueError("the row has no 'ideal'")
    ideal = row.values["ideal"]
    ideals = ideal if isinstance(ideal, list) else [ideal]
    if not all(isinstance(item, str) for item in ideals):
        raise ValueError("'ideal' must be a text or a list of texts")
    if eval_spec.kind == "MatchWithSolvers":
        if not ideals:
            raise ValueError("'ideal' is an empty list")
        return row.with_values(ideal=ideals[0])
    if eval_spec.kind == "JsonMatch":
        row = row.with_values(
            ideal_json=[item for item in map(_parse, ideals) if not _has_null(item)]
        )
    return row


def _parse(text: str) -> Json:
    try:
        return parse_json(text)
    except ValueError:
        raise ValueError(f"the ideal {text[:60]!r} is not JSON") from None


def _has_null(value: Json) -> bool:
    """Return whether a value contains null or NaN, which never match."""
    if isinstance(value, dict | list):
        return any(map(_has_null, value.values() if isinstance(value, dict) else value))
    return value is None or value != value


def _few_shot(eval_spec: Eval, sources: EvalSources, written: WrittenEval) -> list[dict[str, Json]]:
    """Return the few-shot messages, which are inserted before the last message."""
    count = positive_int(eval_spec.args.get("num_few_shot"))
    if not count or eval_spec.kind not in _FEW_SHOT:
        return []
    name = eval_spec.args.get("few_shot_jsonl")
    messages: list[dict[str, Json]] = []
    rows = sources.rows(name, written.left)
    if written.left:
        raise NotTakenError(f"its examples '{name}' cannot be read: {written.left[0].reason}")
    for row in rows[:count]:
        for message in as_list(row.values.get("sample")):
            try:
                messages.append(read_message(len(messages) + 1, message))
            except NotTakenError as problem:
                place = sources.path_of(str(name))
                written.left.append(SkippedItem(place, str(problem), row.line))
    return messages


def _system_prompt(
    eval_spec: Eval, sources: EvalSources, options: ImportOptions
) -> tuple[dict[str, Json], dict[str, bytes]]:
    """Return the fields and files for the task description, which solvers show first."""
    text = eval_spec.args.get("task_description")
    if eval_spec.kind != "MatchWithSolvers" or not isinstance(text, str) or not text.strip():
        return {}, {}
    if text.endswith(".txt"):
        text = sources.text(text) or text
    id = "/".join(part for part in (options.name, eval_spec.path) if part)
    content = write_prompt({"id": id}, [("system", literal(text))])
    return {"systemPrompts": [id]}, {f"prompts/{eval_spec.path}.md": content}
