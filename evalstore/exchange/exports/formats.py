"""The formats of `export`."""

from __future__ import annotations

from typing import Literal, get_args

Format = Literal[
    "jsonl",
    "csv",
    "parquet",
    "json",
    "md",
    "junit",
    "otlp",
    "inspect",
    "langbite",
    "every-eval-ever",
]
FORMATS: tuple[Format, ...] = get_args(Format)
