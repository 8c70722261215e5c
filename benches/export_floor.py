"""`python -m benches.export_floor STORE FILE`: a minimal program that exports answers.

It decodes every stored answer and judgement once, and writes a line for each answer. It checks
nothing, and knows neither runs nor cases, costs or names.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path


def main(store: str, target: str) -> None:
    """Export a store to a file of JSON Lines."""
    connection = sqlite3.connect(store)
    judged: dict[str, list[str]] = {}
    for id, content in connection.execute("SELECT id, content FROM evaluations"):
        judgement = json.loads(content)
        for session in judgement["sessions"]:
            judged.setdefault(session, []).append(id.hex())
    with Path(target).open("w", encoding="utf-8") as file:
        for id, content in connection.execute("SELECT id, content FROM sessions"):
            session = json.loads(content)
            row = {
                "session": id.hex(),
                "test": session["test"],
                "answer": session["turns"][-1].get("text"),
                "evaluations": judged.get(id.hex(), []),
            }
            file.write(json.dumps(row) + "\n")
    connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
