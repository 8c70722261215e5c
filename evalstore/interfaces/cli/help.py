"""The help of commands: their options in named sections."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand
from typer.exceptions import TyperException

from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.option_values import ignore_unsuited, read_plain_values
from evalstore.interfaces.cli.usage_errors import explain_usage
from evalstore.providers.kinds import EXAMPLE, EXAMPLE_JUDGE

SELECTION = "Selection"
MODELS = "Models"
REUSE = "Stored results"
LIMITS = "Limits"
GATE = "Gate"
EXECUTION = "Execution"
OUTPUT = "Output"
_UNLIMITED = 1_000
"""Characters of a summary, so that it is never cut."""
_MANY = 12
"""More options than these are shown in sections; fewer are one list."""
_ADVANCED = (
    *("--sample", "--seed", "--shard", "--keep-going", "--max-age", "--remote", "--offline"),
    *("--timeout", "--retries", "--max-time", "--threshold", "--baseline", "--executor"),
    *("--workers", "--scheduler", "--join", "--message"),
)
"""The options that such a help only names; `-v` describes them, as docs/cli.md does."""

_TYPE = re.compile(r" <[^<>]*>$")
"""The type that typer adds to the name of an argument."""


class SectionedCommand(TyperCommand):
    """A command whose help has a section for each group of options, and examples."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; raises `EvalstoreError` for a wrong one."""
        read_plain_values(self.get_params(ctx))
        try:
            left = super().parse_args(ctx, args)
        except TyperException as error:
            raise explain_usage(error, ctx) from None
        ignore_unsuited(ctx)
        return left

    def make_parser(self, ctx: Any) -> Any:
        """Return what reads the arguments; it refuses a second expression for names."""
        parser: Any = super().make_parser(ctx)
        if option := parser._short_opt.get("-k"):
            process = option.process

            def process_once(value: Any, state: Any) -> None:
                if option.dest in state.opts:
                    hint = f"write one expression: -k '{state.opts[option.dest]} or {value}'"
                    raise EvalstoreError("'--name' is given twice", hint=hint)
                process(value, state)

            option.process = process_once
        return parser

    def get_short_help_str(self, _limit: int = 0) -> str:
        """Return the summary, which is never cut, neither in the help nor by a shell."""
        return super().get_short_help_str(_UNLIMITED)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Collect the parts of the line of usage; a required argument is written without braces.

        Arguments that say themselves which of their parts are optional are written as they are.
        """
        own = {f"[{param.metavar}]...": str(param.metavar) for param in self.get_params(ctx)}
        return [
            own[piece]
            if piece.startswith("[[") and piece in own
            else piece.removeprefix("{").removesuffix("}")
            for piece in super().collect_usage_pieces(ctx)
        ]

    def format_epilog(self, _ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        if examples := EXAMPLES.get(self.name or ""):
            with formatter.section("Examples"):
                for example in examples:
                    formatter.write(f"  evalstore {self.name} {example}".rstrip() + "\n")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the options."""
        write_options(self.get_params(ctx), ctx, formatter)


def write_options(parameters: list[Any], ctx: Any, formatter: Any) -> None:
    """Write a section for each group; environment variables are left to docs/cli.md."""
    has_sections = len(parameters) > _MANY
    sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
    others: list[tuple[str, str]] = []
    advanced: list[str] = []
    for parameter in parameters:
        parameter.show_envvar = False
        record = parameter.get_help_record(ctx)
        if record is None:
            continue
        if parameter.param_type_name == "argument":
            name, text = record
            sections["Arguments"].append((_TYPE.sub("", name), text))
        elif has_sections and parameter.opts[-1] in _ADVANCED and not output.verbose:
            advanced.append(parameter.opts[-1])
        elif has_sections and parameter.rich_help_panel:
            sections.setdefault(parameter.rich_help_panel, []).append(record)
        else:
            others.append(record)
    for title, records in sections.items():
        if records:
            with formatter.section(title):
                formatter.write_dl(records)
    if advanced:
        with formatter.section("Advanced (described with -v)"):
            for line in output.wrap(", ".join(advanced), formatter.width - 2):
                formatter.write(f"  {line}\n")
    with formatter.section("Options"):
        formatter.write_dl(others)


# --- two examples of each command, which its help shows: what follows its name


EXAMPLES: dict[str, tuple[str, ...]] = {
    "init": ("bikes --example", "tests/refund.md"),
    "import": ("promptfoo promptfooconfig.yaml --dry-run", "otel traces.json"),
    "check": ("tests/late.md", "--format sarif > check.sarif"),
    "doctor": ("", "--no-ping"),
    "trust": ("tests/price.py", "env DESK_KEY localhost:8000"),
    "status": ("", "tests/late.md --explain"),
    "run": (f"tests/late.md --model {EXAMPLE}", "--tag policy --max-cost 2 --watch"),
    "label": ("'tests/price.md::bike=tandem' fail -m 'wrong price'", "tests/late.md --remove"),
    "view": ("", "@~1"),
    "remote": ("add origin /mnt/team/results", "gc --dry-run"),
    "push": ("", "results.bundle --since @~5"),
    "pull": ("", "../laptop/.evalstore/store.db"),
    "clone": ("/mnt/team/results", "/mnt/team/results bikes-results"),
    "sql": (
        "\"SELECT file, feedback FROM results_v WHERE verdict = 'fail'\"",
        "'SELECT * FROM costs_v' -o csv",
    ),
    "log": ("--oneline --graph", "tests/late.md"),
    "show": ("7f3c", "tests/weather.md::city=Oslo"),
    "diff": ("--since monday", f"--model {EXAMPLE_JUDGE} --vs {EXAMPLE}"),
    "tag": ("v1", "before-the-edit @~1"),
    "stats": ("--by model,tag", "@~1 --by file --wide"),
    "report": ("@ --compare @~5 -o report.html", "--markdown -o comment.md"),
    "serve": ("", "--mcp --allow-run --max-cost 1.00"),
    "grep": ("'late fee'", "tandem --in answers"),
    "ls": ("results -m hasty --verdict fail", "checks contains"),
    "export": ("-o results.csv", "@~1 -o evals.junit.xml"),
    "fsck": ("", "--remote origin"),
}
