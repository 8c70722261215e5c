"""`python -m benches [NAME…] [--quick]`: measure, and print one table.

Benchmarks are not tests: a missed target is marked `over`, and the exit code is 0.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
from pathlib import Path

from benches.benches import BENCHES, LONG, Setting
from benches.table import Figure, lines


def main() -> int:
    """Measure what is named, or everything."""
    parser = argparse.ArgumentParser(prog="python -m benches", description="Measure evalstore.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHES)}")
    parser.add_argument("--quick", action="store_true", help="small workspaces, few runs")
    parser.add_argument("--rows", type=int, help="rows of the bench 'million'")
    parser.add_argument("--attempts", type=int, help="answers to each of these rows")
    parser.add_argument(
        "--server", action="store_true", help="the store of 'million' is in PostgreSQL"
    )
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in BENCHES:
            parser.error(f"there is no bench '{name}', only {', '.join(BENCHES)}")
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="evalstore-bench-") as folder:
        setting = Setting(Path(folder))
        if arguments.quick:
            setting = Setting(
                Path(folder),
                sizes=(100, 500),
                times=3,
                first_times=1,
                loads=(500, 1_000),
                largest_load=None,
                rows=10_000,
                asked_rows=2_000,
                browsed=(1_000, 10_000),
                reported=1_000,
                draws=1_000,
                many_rows=10_000,
                simulated=(20, 800),
                team=2_000,
                known_sessions=200_000,
            )
        setting.many_rows = arguments.rows or setting.many_rows
        setting.many_attempts = arguments.attempts or setting.many_attempts
        setting.on_server = arguments.server
        for name in arguments.names or [name for name in BENCHES if name not in LONG]:
            print(f"measuring {name} ...", file=sys.stderr)
            figures += BENCHES[name](setting)
    small, large = setting.sizes
    print(
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}; "
        f"workspaces of {small:,} and {large:,} test files; "
        "CPU and memory of whole processes, medians"
    )
    print()
    print(*lines(figures), sep="\n")
    for note in setting.notes:
        print(note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
