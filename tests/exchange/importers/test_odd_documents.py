"""Whatever stands in a document, an importer ends with what it could take, or with an error."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Json
from evalstore.exchange.importers.base import ImportOptions, find_importer
from tests.builders import tree
from tests.exchange.importers.inspect_ai.test_inspect import EVALUATION
from tests.exchange.importers.inspect_ai.test_inspect import SAMPLE as SAMPLED
from tests.exchange.importers.nemo.test_nemo import CONTAINS, ROW, TOOL, job, judge
from tests.exchange.importers.otel.test_otel import request, span
from tests.exchange.importers.otel.test_other_programs import GENERATION, PHOENIX
from tests.exchange.importers.promptfoo.test_promptfoo_results import RESULT
from tests.hostile.campaign.import_sources import INSTANCE, LVE, REQUIREMENT

pytestmark = pytest.mark.extended

ODD: tuple[Json, ...] = (
    *(None, 7, "x", "{{ a", [], {}, [None], {"a": [1]}, True),
    *("a\ud83d", 10**400, float("inf")),
)
TOOLS = {"type": "tool-calling", "params": {"tool_calls_ground_truth": "{{ item.calls }}"}}
PROMPTFOO = {
    "prompts": ["{{a}}", {"id": "file://p.txt", "label": "l"}],
    "providers": ["openai:gpt-4o", {"id": "openai:x", "config": {"temperature": 1}}],
    "defaultTest": {"vars": {"b": "y"}, "assert": [{"type": "cost", "threshold": 1}]},
    "tests": [
        {
            "vars": {"a": ["x", "file://p.txt"]},
            "description": "d",
            "threshold": 0.5,
            "options": {"prefix": "p"},
            "assert": [
                {"type": "bleu", "value": "{{b}}", "weight": 2},
                {"type": "word-count", "value": 3},
            ],
        }
    ],
}
NEMO = job(
    {
        "a": CONTAINS,
        "t": TOOLS,
        "j": judge("1 to 5: {{item.prompt}}", rubric=[{"label": "a", "value": 1}]),
    },
    {"messages": [{"role": "user", "content": "x"}], "tools": [TOOL], "temperature": 1},
)
EVAL = {
    "e": {"id": "e.v0", "description": "d"},
    "e.v0": {
        "class": "c:ModelBasedClassify",
        "args": {
            "samples_jsonl": "s.jsonl",
            "modelgraded_spec": "s",
            "modelgraded_spec_args": {"w": "x"},
            "samples_renamings": {"a": "b"},
        },
    },
    "m.v0": {
        "class": "c:Match",
        "args": {"samples_jsonl": "s.jsonl", "num_few_shot": 1, "few_shot_jsonl": "s.jsonl"},
    },
}
SPEC = {
    "s": {
        "prompt": [{"role": "user", "content": "{input} {ideal} {w}"}],
        "choice_strings": ["A", "B"],
        "choice_scores": {"A": 1, "B": 0},
        "eval_type": "classify",
        "input_outputs": {"input": "completion"},
    }
}
SAMPLE = {
    "input": [{"role": "user", "content": "x"}],
    "ideal": ["y"],
    "completion": "z",
    "context": ["c"],
    "sample": [{"role": "user", "content": "x"}],
}
CALL = span(
    input__messages=[{"role": "user", "parts": [{"type": "text", "content": "x"}]}],
    output__messages=[{"role": "assistant", "content": "y", "tool_calls": [{"function": "f"}]}],
    usage__input_tokens=1,
    response__finish_reasons=["stop"],
)
EVENTS = span(
    events=[
        ("gen_ai.user.message", {"content": "x"}),
        ("gen_ai.choice", {"message": {"content": "y", "tool_calls": []}}),
    ]
)
LANGBITE = {
    "language": "en_us",
    "prompts": [
        {
            "prompt_id": "1",
            "concern": "pets",
            "input_type": "constrained",
            "reflection_type": "observational",
            "task_prefix": "t",
            "prompt": "Are {PET} nice?",
            "output_formatting": "o",
            "oracle": "expected value",
            "oracle_prediction": {"operation": "equal", "expected_value": ["Yes"]},
        }
    ],
}
INSPECTED = {**SAMPLED, "attachments": {"k": "v"}}
DOCUMENTS: list[tuple[str, str, Any, dict[str, Any]]] = [
    ("promptfoo", "promptfooconfig.yaml", PROMPTFOO, {"p.txt": "p"}),
    ("nemo", "job.json", NEMO, {"d.jsonl": {**ROW, "calls": [{"name": "f", "arguments": {}}]}}),
    ("nemo", "d.jsonl", {**ROW, "calls": [{"name": "f", "arguments": {}}]}, {"job.json": NEMO}),
    ("openai-evals", "evals/e.yaml", EVAL, {"modelgraded/s.yaml": SPEC, "data/s.jsonl": SAMPLE}),
    ("openai-evals", "modelgraded/s.yaml", SPEC, {"evals/e.yaml": EVAL, "data/s.jsonl": SAMPLE}),
    ("openai-evals", "data/s.jsonl", SAMPLE, {"evals/e.yaml": EVAL, "modelgraded/s.yaml": SPEC}),
    ("evalsone", "s.jsonl", SAMPLE, {}),
    ("otel", "t.json", request(CALL, EVENTS), {}),
    ("otel", "t.json", [PHOENIX, GENERATION], {}),
    ("inspect", "l.json", {"eval": EVALUATION, "samples": [INSPECTED]}, {}),
    ("promptfoo", "promptfooconfig.json", {"results": {"results": [RESULT]}}, {}),
    ("lve", "t/test.json", LVE, {"t/instances/all.jsonl": INSTANCE}),
    ("lve", "t/instances/all.jsonl", INSTANCE, {"t/test.json": LVE}),
    ("langbite", "prompts.json", LANGBITE, {"requirements.json": REQUIREMENT}),
    ("langbite", "requirements.json", REQUIREMENT, {"prompts.json": LANGBITE}),
]


def places(value: Json) -> Iterator[tuple[str | int, ...]]:
    """The places of all values inside a value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in pairs:
        yield (key,)
        if isinstance(inner, dict | list):
            yield from ((key, *place) for place in places(inner))


@pytest.mark.parametrize(
    ("format", "name", "document", "others"),
    DOCUMENTS,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_odd_value_is_reported_or_ignored(
    tmp_path: Path, format: str, name: str, document: Any, others: dict[str, Any]
) -> None:
    folder = tree(tmp_path, {path: json.dumps(value) + "\n" for path, value in others.items()})
    read = find_importer(format)
    for place in places(document):
        for odd in ODD:
            changed = copy.deepcopy(document)
            inner = changed
            for step in place[:-1]:
                inner = inner[step]
            inner[place[-1]] = odd
            tree(folder, {name: json.dumps(changed) + "\n"})
            with suppress(EvalstoreError):
                read([folder], ImportOptions("from", sessions=True))


@pytest.mark.parametrize("format", ["lve", "langbite", "nemo"])
def test_a_test_with_half_of_a_surrogate_pair_is_reported(tmp_path: Path, format: str) -> None:
    name, document, others = next(each[1:] for each in DOCUMENTS if each[0] == format)
    files = {path: json.dumps(value) for path, value in {**others, name: document}.items()}
    files[name] = re.sub('"(content|prompt)": "', r'"\1": "\\ud83d', files[name])
    result = find_importer(format)([tree(tmp_path, files)], ImportOptions("from"))
    assert not [path for path in result.files if path.endswith(".md")]
    assert "a text holds half of a surrogate pair" in "".join(it.reason for it in result.left)
