"""Formats the name of a case."""

from __future__ import annotations


def case_name(file: str, row: str = "", prompt: str | None = None) -> str:
    """Return a name such as `tests/weather.md [city=Oslo] (brief)`; `prompt` is a prompt's name."""
    name = f"{file} [{row}]" if row else file
    return f"{name} ({prompt})" if prompt else name
