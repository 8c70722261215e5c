"""`python -m benches.rows_floor FILE`: a minimal program that turns rows of data into versions.

Every row is parsed, and serialized and hashed twice: once for the test, and once for the
evaluation. It has no templates, checks, names or error messages.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import xxhash


def main(path: str) -> None:
    """Read a file of JSON Lines."""
    ids: set[str] = set()
    with Path(path).open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            for kind in ("test", "evaluation"):
                text = json.dumps({"kind": kind, "row": row}, sort_keys=True)
                ids.add(xxhash.xxh3_128_hexdigest(text.encode()))


if __name__ == "__main__":
    main(sys.argv[1])
