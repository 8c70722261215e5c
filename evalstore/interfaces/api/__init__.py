"""evalstore as a library: one facade, `Workspace`, over the operations that the commands call.

Nothing here prints, asks on a terminal or needs one, and what can go wrong is an
`EvalstoreError`. `import evalstore` offers all of it by name, loaded when it is first used.
"""

from evalstore.core.runs import Run, RunCandidate, RunEvaluator
from evalstore.interfaces.api.result_reader import Answer
from evalstore.interfaces.api.workspace import (
    Progress,
    Workspace,
    check,
    import_tests,
    init,
    to_json,
)

__all__ = [
    "Answer",
    "Progress",
    "Run",
    "RunCandidate",
    "RunEvaluator",
    "Workspace",
    "check",
    "import_tests",
    "init",
    "to_json",
]
