"""A workspace whose judge is a server on loopback, and the votes in its store."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from evalstore.interfaces.cli.main import main
from evalstore.store import Store
from tests.builders import Files, tree
from tests.endpoint import Endpoint
from tests.stored_rows import locate

SETTINGS = "candidates: [scripted/one]\nevaluators: [judge]\n"
ONE = "id: scripted/one\nprovider: scripted\nresponses: [{answer: Green.}]\n"
PROMPT = """\
---
tags: [_evaluator]
---

Compare.

# 👤

{{_actualResponse}}
"""
TEST = """\
---
replacements: {what: ROWS}
---

# 👤

What colour is {{what}}?

---

INSTRUCTIONS

~~~checks
- judge: JUDGE
~~~
"""


def judged_by(
    server: Endpoint,
    folder: Path,
    judge: Any,
    instructions: str = "",
    rows: Sequence[str] = ("grass",),
    files: Files | None = None,
) -> Path:
    """Write a workspace in which the server judges `tests/t.md` by the check `judge`."""
    provider = f"code: here\nname: here\ntype: openai-compatible\nbaseURL: {server.url}\n"
    test = TEST.replace("INSTRUCTIONS\n\n", f"{instructions}\n\n" if instructions else "")
    test = test.replace("ROWS", json.dumps(rows))
    content: Files = {
        "evalstore.yaml": SETTINGS,
        "providers/here.yaml": provider,
        "models/one.yaml": ONE,
        "models/judge.yaml": "id: judge\nprovider: here\n",
        "prompts/compare.md": PROMPT,
        "tests/t.md": test.replace("JUDGE", json.dumps(judge)),
        **(files or {}),
    }
    return tree(folder, content)


def run(folder: Path) -> list[dict[str, Any]]:
    """Run everything; the votes of models in the store, oldest first."""
    main(["-C", str(folder), "run", "-q"])
    with closing(Store.open(locate(folder, os.environ.get("EVALSTORE_STORE")))) as store:
        contents = [json.loads(row["content"]) for _, row in store.iterate() if row.get("content")]
    votes = [
        content
        for content in contents
        if content["kind"] == "judgement" and "checks" not in content
    ]
    return sorted(votes, key=lambda vote: int(vote["started"]))
