"""The help of commands: their options in named sections."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

SELECTION = "Selection"
MODELS = "Models"
REUSE = "Stored results"
LIMITS = "Limits"
GATE = "Gate"
EXECUTION = "Execution"
OUTPUT = "Output"
_MANY = 12
"""More options than these are shown in sections; fewer are one list."""


class SectionedCommand(TyperCommand):
    """A command whose help has a section for each group of options."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the options."""
        write_options(self.get_params(ctx), ctx, formatter)


def write_options(parameters: list[Any], ctx: Any, formatter: Any) -> None:
    """Write a section for each group; environment variables are left to docs/cli.md."""
    has_sections = len(parameters) > _MANY
    sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
    others: list[tuple[str, str]] = []
    for parameter in parameters:
        parameter.show_envvar = False
        record = parameter.get_help_record(ctx)
        if record is None:
            continue
        if parameter.param_type_name == "argument":
            sections["Arguments"].append(record)
        elif has_sections and parameter.rich_help_panel:
            sections.setdefault(parameter.rich_help_panel, []).append(record)
        else:
            others.append(record)
    for title, records in (*sections.items(), ("Options", others)):
        if records:
            with formatter.section(title):
                formatter.write_dl(records)
