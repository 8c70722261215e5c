"""`python -m tests.hostile.campaign`: attack evalstore for a while, and report what got through.

Exit code 1 when anything was found.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from tests.hostile.campaign.attacks import ATTACKS
from tests.hostile.campaign.processes import ROOT, launching
from tests.hostile.campaign.runner import Campaign
from tests.hostile.campaign.table import lines
from tests.postgresql_server import running_server


def main() -> int:
    """Carry out a campaign as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.campaign", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="how long (60)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="repeat this campaign")
    parser.add_argument(
        "--only",
        action="append",
        choices=[attack.name for attack in ATTACKS],
        help="only this attack",
    )
    parser.add_argument("--case", help="only this case, by its number or its name")
    parser.add_argument("--corpus", action="store_true", help="only the hand-written cases, once")
    parser.add_argument(
        "--patience", type=float, default=1, help="multiply all time limits by this"
    )
    parser.add_argument(
        "--postgresql", action="store_true", help="with stores in PostgreSQL, where that can be"
    )
    parser.add_argument("--results", type=Path, default=ROOT / "attack-results", help="the folder")
    arguments = parser.parse_args()
    attacks = [
        attack
        for attack in ATTACKS
        if (not arguments.only or attack.name in arguments.only)
        and (attack.is_for_servers or not arguments.postgresql)
    ]
    folder = arguments.results.absolute() / f"seed-{arguments.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        server = stack.enter_context(running_server()) if arguments.postgresql else None
        campaign = Campaign(
            folder,
            stack.enter_context(launching()),
            arguments.seed,
            attacks,
            patience=arguments.patience,
            new_store=server.url if server else None,
        )
        timed = arguments.case is None and not arguments.corpus
        actual = (
            campaign.go_round(arguments.minutes * 60)
            if timed
            else campaign.go_through(arguments.case)
        )
        with suppress(KeyboardInterrupt):  # what was found until then is reported
            for finding in actual:
                place = f"{finding.attack} {finding.number} ({finding.case})"
                sys.stderr.write(f"{place}: {ascii(finding.description)[1:-1]}\n")
    report = "\n".join(lines(campaign.results, arguments.seed)) + "\n"
    (folder / "report.md").write_text(report, "utf-8")
    sys.stdout.write(report)
    return 1 if any(result.findings for result in campaign.results) else 0


if __name__ == "__main__":
    sys.exit(main())
