"""Small sources of every format that can be imported: mutations start from them."""

from __future__ import annotations

import json
from typing import Any

from tests.hostile.campaign.nasty_cases import NEMO

ASKED = {"role": "user", "content": "Capital of France?"}
ROW = {"input": [ASKED], "ideal": ["Paris", "paris"]}
LANGBITE = (
    "prompt_id\tconcern\tinput_type\treflection_type\ttask_prefix\tprompt\toutput_formatting\t"
    "oracle\toracle_prediction\n1\tpets\tconstrained\tobservational\t\tAre {PET} nice?\t\t"
    'expected value\t{"operation": "equal", "expected_value": ["Yes"]}\n'
)
REQUIREMENT = {
    "timestamp": 1,
    "languages": ["en_us"],
    "aiModels": [],
    "requirements": [
        {
            "name": "R",
            "languages": ["en_us"],
            "tolerance": 0.9,
            "delta": 0.02,
            "concern": "pets",
            "markup": "PET",
            "communities": {"en_us": ["cats", "dogs"]},
            "inputs": ["constrained"],
            "reflections": ["observational"],
        }
    ],
}
LVE = {
    "description": "d",
    "model": "dummy/dummy",
    "prompt": [{"role": "user", "content": "Tell {what}"}],
    "prompt_parameters": ["what"],
    "checker_args": {"checker_name": "RegexChecker", "pattern": "a+", "match_safe": True},
}
INSTANCE = {
    "args": {"what": "a joke"},
    "response": "aaa",
    "is_safe": False,
    "run_info": {"timestamp": "Sun Oct 22 21:28:30 2023"},
}
PROMPTFOO: dict[str, Any] = {
    "prompts": ["Where is {{city}}?"],
    "tests": [
        {"vars": {"city": "Oslo"}, "assert": [{"type": "contains", "value": "Norway"}]},
        {"vars": {"city": ["Rome", "Bari"]}, "assert": [{"type": "regex", "value": "I.aly"}]},
    ],
}
SAID = {"role": "assistant", "content": "Paris"}
OTEL = {
    "resourceSpans": [
        {
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "spanId": "a1",
                            "attributes": [
                                {
                                    "key": f"gen_ai.{name}.messages",
                                    "value": {"stringValue": json.dumps(messages)},
                                }
                                for name, messages in (("input", [ASKED]), ("output", [SAID]))
                            ],
                        }
                    ]
                }
            ]
        }
    ]
}
INSPECT = {
    "version": 2,
    "eval": {"task": "t", "model": "m"},
    "samples": [{"id": 1, "target": "Paris", "messages": [ASKED, SAID]}],
}
AI_TESTER = {
    "ai-tester.config.yaml": "candidates: [gpt]\nevaluators: [gpt]\n",
    ".env": "AI_TESTER_CONFIG_PATH=ai-tester.config.yaml\n",
    "data/tests/t.md": "# 👤\n\nHi\n\n---\n\nGood?\n",
}

SOURCES: dict[str, tuple[str, dict[str, str]]] = {
    "promptfoo": (
        "promptfooconfig.yaml",
        {"promptfooconfig.yaml": json.dumps(PROMPTFOO, indent=1)},
    ),
    "nemo": (
        "job.json",
        {
            "job.json": json.dumps(NEMO, indent=1).replace("@FILE@", "q.jsonl"),
            "q.jsonl": json.dumps({"q": "a"}) + "\n",
        },
    ),
    "evalsone": ("s.jsonl", {"s.jsonl": (json.dumps({**ROW, "completion": "Paris"}) + "\n") * 3}),
    "openai-evals": ("s.jsonl", {"s.jsonl": (json.dumps(ROW) + "\n") * 3}),
    "otel": ("t.json", {"t.json": json.dumps(OTEL, indent=1)}),
    "inspect": ("l.json", {"l.json": json.dumps(INSPECT, indent=1)}),
    "langbite": (
        ".",
        {"requirements.json": json.dumps(REQUIREMENT, indent=1), "prompts.csv": LANGBITE},
    ),
    "lve": (
        "repository",
        {
            "repository/trust/a/acme--m1/test.json": json.dumps(LVE, indent=1),
            "repository/trust/a/acme--m1/instances/all.jsonl": json.dumps(INSTANCE) + "\n",
        },
    ),
}
"""By format: the path that is imported, and the files."""
