"""Functions that read what others wrote, fuzzed by Hypothesis in a process of its own.

`main([NAME, SEED, EXAMPLES])` ends with 0, or raises what the shortest input raises that no
caller of the function expects.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from evalstore.checks.judge_replies import Unreadable, Verdicts
from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.core.values import Reply
from evalstore.exchange.importers.base import ImportOptions, find_importer
from evalstore.files.access import normalise
from evalstore.files.datasets import DatasetSpec, read_dataset
from evalstore.files.yaml12 import read_json, read_yaml
from evalstore.providers.base import ProviderError
from evalstore.providers.chat_completions import decode_reply
from evalstore.providers.errors import find_retry_after, status_error
from evalstore.workspace.model_files import read_currency, read_model, read_provider
from evalstore.workspace.settings.settings import read_settings
from tests.builders import expanded, library, tree
from tests.hostile.campaign.generate import CHECKS, FIELDS, NUMBERS, PATTERNS, TEXTS
from tests.hostile.campaign.import_sources import SOURCES

EXPECTED = (EvalstoreError, FileProblem, ProviderError, Unreadable)
PUNCTUATION = ("\n", "\n\n", ": ", "- ", "{", "}", "[", "]", '"', "'", ", ", "*", "&a", "\t", "|")
MARKS = (
    "# 👤\n",
    "# 🤖\n",
    "# 🤖 @a\n",
    "# ▶ n ×3\n",
    "---\n",
    "~~~checks\n",
    "~~~\n",
    "\n{{a}}\n",
)
WIRE = (
    *("choices", "message", "content", "finish_reason", "usage", "prompt_tokens"),
    *("tool_calls", "function", "arguments", "refusal"),
)
PLAIN = [text for text in TEXTS if "{%" not in text]
TOKENS = st.sampled_from([*PLAIN, *PATTERNS, *FIELDS, *CHECKS, *PUNCTUATION])
TEXT = st.lists(TOKENS | st.sampled_from(MARKS) | st.text(max_size=8), max_size=25).map("".join)
TEST = TEXT.map(lambda text: f"# 👤\n\nHi\n\n---\n\n~~~checks\n{text}\n~~~\n") | TEXT
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.sampled_from(NUMBERS) | st.sampled_from(PLAIN) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*FIELDS, *CHECKS, *WIRE]), inner, max_size=3)
    ),
    max_leaves=8,
)
MAPPING = st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=4).map(json.dumps) | TEXT
CHECK_LIST = st.lists(st.dictionaries(st.sampled_from(CHECKS), JSON, min_size=1, max_size=2))
CHECKED = CHECK_LIST.map(lambda item: f"# 👤\n\nHi\n\n---\n\n~~~checks\n{json.dumps(item)}\n~~~\n")
DATA = st.binary(max_size=60) | TEXT.map(str.encode) | MAPPING.map(str.encode)
CHOICE = st.fixed_dictionaries({"message": st.dictionaries(st.sampled_from(WIRE), JSON)})
REPLY = st.fixed_dictionaries({"choices": st.lists(CHOICE, max_size=2), "usage": JSON}) | JSON
VERDICT = st.dictionaries(st.sampled_from(["pass", "score", "label", "feedback"]), JSON)
OPINION = st.lists(VERDICT.map(json.dumps) | TEXT, max_size=3).map("".join)
HEADERS = st.dictionaries(
    st.sampled_from(["retry-after", "retry-after-ms"]),
    st.from_regex(r"(\w{3}, )?\d{1,2} Oct \d{1,20} 0\d:00:00( GMT| [+-]\d{2,9})?", fullmatch=True)
    | st.text(max_size=9),
)


def _dataset(format: str, data: bytes) -> None:
    for _ in read_dataset(DatasetSpec("d", format=format), lambda: BytesIO(data)):
        pass


def _import(format: str, content: str) -> None:
    path, files = SOURCES[format]
    with tempfile.TemporaryDirectory() as folder:
        root = tree(Path(folder), files)
        name = next(iter(files))
        (root / name).write_bytes(content.encode())
        find_importer(format)([root / path], ImportOptions("from"))


TARGETS: Mapping[str, tuple[st.SearchStrategy[Any], Callable[[Any], object]]] = {
    "test": (TEST, lambda text: expanded(text, library())),
    "checks": (CHECKED, lambda text: expanded(text, library())),
    "bytes": (DATA, normalise),
    "yaml": (TEXT, read_yaml),
    "json": (TEXT | JSON.map(json.dumps), read_json),
    "settings": (MAPPING, read_settings),
    "provider": (MAPPING, read_provider),
    "currency": (MAPPING, read_currency),
    "model": (MAPPING, lambda text: read_model(text, {}, "m")),
    "reply": (REPLY, lambda document: decode_reply(document, latency=0)),
    "status": (JSON, lambda body: status_error(400, body)),
    "headers": (HEADERS, find_retry_after),
    "opinion": (OPINION, lambda text: Verdicts().read(Reply(text))),
    **{f"data-{item}": (DATA, partial(_dataset, item)) for item in ("jsonl", "json", "csv", "tsv")},
    **{f"import-{item}": (MAPPING, partial(_import, item)) for item in SOURCES},
}


def main(argv: list[str]) -> int:
    """Fuzz one target."""
    name, start, examples = argv
    strategy, function = TARGETS[name]

    @seed(int(start))
    @settings(
        max_examples=int(examples),
        database=None,
        deadline=None,
        derandomize=False,
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def attack(given_: Any) -> None:
        with suppress(*EXPECTED):
            function(given_)

    attack()
    return 0
