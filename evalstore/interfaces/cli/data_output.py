"""Prints the result of a command as data, when an option asks for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evalstore.interfaces.cli import output

if TYPE_CHECKING:
    from evalstore.interfaces.cli.render.list_formats import Format


def print_data(
    content: Any, names: Sequence[str], format: Format, *, kind: str, json: bool = False
) -> bool:
    """Print a result as the options say; False if it is to be printed for people.

    `names` are the lists whose rows are printed as JSON Lines, CSV or Markdown, and `kind` says
    which columns they have without a row.
    """
    if json:
        output.document(content)
    elif format == "table":
        return False
    else:
        from evalstore.interfaces.cli.render.list_formats import print_as

        print_as(format, content, names, kind)
    return True
