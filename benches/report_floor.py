"""`python -m benches.report_floor STORE PAGE`: a minimal program that writes all answers to a page.

It reads the texts of the answers and feedback of the newest run's models, and writes them as JSON
in one HTML file. It has no rates, comparison, history, Markdown or cases.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path


def main(store: str, page: str) -> None:
    """Write the page."""
    connection = sqlite3.connect(store)
    answers = [
        json.loads(content)["turns"][0]["text"]
        for (content,) in connection.execute("SELECT content FROM sessions")
    ]
    feedback = [
        json.loads(content).get("feedback", "")
        for (content,) in connection.execute("SELECT content FROM evaluations")
    ]
    connection.close()
    data = json.dumps([answers, feedback], ensure_ascii=False).replace("<", "\\u003c")
    Path(page).write_text(
        f'<!doctype html><script type="application/json">{data}</script>', encoding="utf-8"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
