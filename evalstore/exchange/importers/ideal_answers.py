"""The instructions of a judge for rows with ideal answers and a context."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.exchange.importers.json_lines import either

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalstore.core.values import Json
    from evalstore.exchange.importers.json_lines import JsonLinesRow


def instructions_of(rows: Sequence[JsonLinesRow]) -> str:
    """Return instructions with the columns `ideal` and `context`, if the rows have them."""
    parts = []
    ideals = [row.values.get("ideal") for row in rows]
    contexts = [row.values.get("context") for row in rows]
    if any(ideals):
        parts.append(_listing("The answer must agree with one of these:", "ideal", ideals))
    if any(contexts):
        heading = "Facts to judge by, which the candidate has not seen:"
        parts.append(_listing(heading, "context", contexts))
    if not all(ideals):
        alone_sentence = "The answer must answer the last message correctly and completely."
        absent = "{% if not item.ideal | default(none) %}"
        parts.append(f"{absent}{alone_sentence}{{% endif %}}" if any(ideals) else alone_sentence)
    return "\n\n".join(parts)


def _listing(heading: str, column: str, values: list[Json]) -> str:
    if all(isinstance(value, str) and value for value in values):
        single_heading = heading.replace("one of these", "this")
        return f"{single_heading}\n\n{{{{ item.{column} }}}}"
    loop = "{% for one in " + either(column, values) + " %}\n- {{ one }}\n{% endfor %}"
    if all(values):
        return f"{heading}\n{loop}"
    return f"{{% if item.{column} | default(none) %}}{heading}\n{loop}{{% endif %}}"
