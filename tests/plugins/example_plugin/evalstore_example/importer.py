"""The format `quiz-csv`: a CSV file with the columns `question` and `answer`.

Each line becomes a case whose answer must contain that of the file.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

from evalstore.plugins import Imported, ImportOptions, SkippedItem

_TEST = """\
---
dataset: {name}.jsonl
---

# 👤

{{{{ item.question }}}}

---

~~~checks
- contains: "{{{{ item.answer }}}}"
  ignoreCase: true
~~~
"""
"""What others wrote stays in the dataset, where it is data and never a template."""


def read(paths: list[Path], options: ImportOptions) -> Imported:
    """A test file and its dataset for each CSV file; lines without an answer are left, and told."""
    imported = Imported()
    for path in paths:
        rows = []
        with path.open(encoding="utf-8", newline="") as lines:
            for number, line in enumerate(csv.DictReader(lines), 2):
                if line.get("answer"):
                    rows.append({name: line[name] for name in ("question", "answer")})
                else:
                    imported.left.append(SkippedItem(str(path), "it has no answer", number))
        data = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
        imported.files[f"tests/{path.stem}.jsonl"] = data.encode()
        imported.files[f"tests/{path.stem}.md"] = _TEST.format(name=path.stem).encode()
        imported.rows += len(rows)
    return imported
