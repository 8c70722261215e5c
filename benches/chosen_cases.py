"""`python -m benches.chosen_cases FOLDER`: pull what the plan of one test file asks for.

It prints how many bytes were received, and how many rows were stored.
"""

from __future__ import annotations

import json
import sys

from evalstore import Workspace


def pull(root: str) -> None:
    """Pull into the store of a workspace that `rows.make_rows` has made."""
    report = Workspace(root).pull_for_plan(paths=["tests/capitals.md"])
    print(json.dumps({"records": report.records, "bytesReceived": report.bytes_received}))


if __name__ == "__main__":
    pull(sys.argv[1])
