"""Two examples of each command, which its help shows."""

from __future__ import annotations

from evalstore.providers.kinds import EXAMPLE, EXAMPLE_JUDGE

EXAMPLES: dict[str, tuple[str, ...]] = {
    "init": ("evalstore init bikes --example", "evalstore init tests/refund.md"),
    "import": (
        "evalstore import promptfoo promptfooconfig.yaml --dry-run",
        "evalstore import otel traces.json",
    ),
    "check": ("evalstore check tests/late.md", "evalstore check --format sarif > check.sarif"),
    "doctor": ("evalstore doctor", "evalstore doctor --no-ping"),
    "trust": ("evalstore trust tests/price.py", "evalstore trust env DESK_KEY localhost:8000"),
    "status": ("evalstore status", "evalstore status tests/late.md --explain"),
    "run": (
        f"evalstore run tests/late.md --model {EXAMPLE}",
        "evalstore run --tag policy --max-cost 2 --watch",
    ),
    "label": (
        "evalstore label 'tests/price.md::bike=tandem' fail -m 'wrong price'",
        "evalstore label tests/late.md --remove",
    ),
    "view": ("evalstore view", "evalstore view @~1"),
    "remote": (
        "evalstore remote add origin /mnt/team/results",
        "evalstore remote gc --dry-run",
    ),
    "push": ("evalstore push", "evalstore push results.bundle --since @~5"),
    "pull": ("evalstore pull", "evalstore pull ../laptop/.evalstore/store.db"),
    "clone": (
        "evalstore clone /mnt/team/results",
        "evalstore clone /mnt/team/results bikes-results",
    ),
    "sql": (
        "evalstore sql \"SELECT file, feedback FROM results_v WHERE verdict = 'fail'\"",
        "evalstore sql 'SELECT * FROM costs_v' -o csv",
    ),
    "log": ("evalstore log --oneline --graph", "evalstore log tests/late.md"),
    "show": (
        "evalstore show 7f3c",
        "evalstore show tests/weather.md::city=Oslo",
    ),
    "diff": (
        "evalstore diff --since monday",
        f"evalstore diff --model {EXAMPLE_JUDGE} --vs {EXAMPLE}",
    ),
    "tag": ("evalstore tag v1", "evalstore tag before-the-edit @~1"),
    "stats": ("evalstore stats --by model,tag", "evalstore stats @~1 --by file --wide"),
    "report": (
        "evalstore report @ --compare @~5 -o report.html",
        "evalstore report --markdown -o comment.md",
    ),
    "serve": ("evalstore serve", "evalstore serve --mcp --allow-run --max-cost 1.00"),
    "grep": ("evalstore grep 'late fee'", "evalstore grep tandem --in answers"),
    "ls": ("evalstore ls results -m hasty --verdict fail", "evalstore ls checks contains"),
    "export": (
        "evalstore export -o results.csv",
        "evalstore export @~1 -o evals.junit.xml",
    ),
    "fsck": ("evalstore fsck", "evalstore fsck --remote origin"),
}
