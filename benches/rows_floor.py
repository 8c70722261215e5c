"""`python -m benches.rows_floor FILE`: the least that turns rows of data into versions.

Every row is parsed, and written down and hashed twice: once for what a model is shown, and
once for what is checked. It knows neither templates nor checks, names nor problems.
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
