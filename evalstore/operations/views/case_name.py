"""The name of a case as people read it."""

from __future__ import annotations


def case_name(file: str, row: str = "", prompt: str | None = None) -> str:
    """`tests/weather.md [city=Oslo] (brief)`; `prompt` is the name of one of several prompts."""
    name = f"{file} [{row}]" if row else file
    return f"{name} ({prompt})" if prompt else name
