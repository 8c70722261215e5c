"""Version-controlled evaluation of language models: run only what changed, and see why.

Tests are Markdown files. What a model is shown and what a judge is told become
versions, named by their content, in one store: a run asks and judges only what is new.
Read `values` first.

As a library it is `Workspace`, whose methods are the commands; what is named here is loaded
when it is first used, so that `import evalstore` takes no time. `evalstore.plugins` has the
names for packages that add checks, providers and importers.
"""

TYPE_CHECKING = False
"""As that of `typing`, which takes longer to load than all of this."""

if TYPE_CHECKING:
    from evalstore.comparison.statistics import Rate
    from evalstore.core.errors import (
        EvalstoreError,
        NothingSelectedError,
        Problem,
        RevisionError,
        StoreError,
        WorkspaceError,
    )
    from evalstore.core.values import Result, Verdict
    from evalstore.interfaces.api import (
        Answer,
        Run,
        Workspace,
        check,
        import_tests,
        init,
        to_json,
    )
    from evalstore.planning.plan import PlanItem
    from evalstore.planning.status_report import Status
    from evalstore.results.answer.judgements import Judgement
    from evalstore.results.compare.diff_result import Diff
    from evalstore.runs.judge_text import JudgedText
    from evalstore.runs.run_report import RunReport

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Diff",
    "EvalstoreError",
    "JudgedText",
    "Judgement",
    "NothingSelectedError",
    "PlanItem",
    "Problem",
    "Rate",
    "Result",
    "RevisionError",
    "Run",
    "RunReport",
    "Status",
    "StoreError",
    "Verdict",
    "Workspace",
    "WorkspaceError",
    "__version__",
    "check",
    "import_tests",
    "init",
    "to_json",
]

_MODULES = {
    "evalstore.interfaces.api": (
        *("Answer", "Run", "Workspace"),
        *("check", "import_tests", "init", "to_json"),
    ),
    "evalstore.core.errors": (
        *("EvalstoreError", "NothingSelectedError", "Problem", "RevisionError", "StoreError"),
        "WorkspaceError",
    ),
    "evalstore.results.answer.judgements": ("Judgement",),
    "evalstore.results.compare.diff_result": ("Diff",),
    "evalstore.runs.judge_text": ("JudgedText",),
    "evalstore.runs.run_report": ("RunReport",),
    "evalstore.planning.status_report": ("Status",),
    "evalstore.planning.plan": ("PlanItem",),
    "evalstore.comparison.statistics": ("Rate",),
    "evalstore.core.values": ("Result", "Verdict"),
}
"""Where the names of `__all__` are."""


if not TYPE_CHECKING:  # a type checker would believe in any name

    def __getattr__(name: str) -> object:
        """Load the module of a name of `__all__`, and return the name's value."""
        for module, names in _MODULES.items():
            if name in names:
                from importlib import import_module

                value: object = getattr(import_module(module), name)
                globals()[name] = value
                return value
        raise AttributeError(f"module 'evalstore' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
