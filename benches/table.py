"""The table that `python -m benches` prints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Figure:
    """A line of the table: a measured value with its floor and its target."""

    bench: str
    measure: str
    value: str
    floor: str = ""
    """The value of a minimal program in the same run."""
    ratio: str = ""
    """The value divided by the floor: comparable between machines."""
    target: str = ""
    mark: str = ""
    """`ok`, `over` or `under`; empty without a target."""


def figure(
    bench: str,
    measure: str,
    value: float,
    unit: str,
    *,
    floor: float | None = None,
    most: float | None = None,
    least: float | None = None,
) -> Figure:
    """A line with its figures; the bounds are those of the ratio when there is a floor.

    Without a floor they are those of the value; there is at most one of them.
    """
    compared = value if floor is None else value / floor
    bound = least if most is None else most
    sign = ">=" if most is None else "<="
    holds = bound is None or (compared >= bound if most is None else compared <= bound)
    return Figure(
        bench=bench,
        measure=measure,
        value=_number(value, unit),
        floor="" if floor is None else _number(floor, unit),
        ratio="" if floor is None else f"{compared:.2f} x",
        target="" if bound is None else f"{sign} {_number(bound, unit if floor is None else 'x')}",
        mark="" if bound is None else "ok" if holds else "over" if least is None else "under",
    )


def _number(value: float, unit: str) -> str:
    if value == int(value):
        return f"{int(value):,} {unit}".rstrip()
    return (
        f"{value:,.{0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2}f} {unit}".rstrip()
    )


def lines(figures: Iterable[Figure]) -> list[str]:
    """The lines of the table, its columns aligned; numbers are right-aligned."""
    names = [field.name for field in fields(Figure)]
    rows = [[name.upper() for name in names]]
    rows += [[getattr(line, name) for name in names] for line in figures]
    widths = [max(len(row[column]) for row in rows) for column in range(len(names))]
    return [
        "  ".join(
            cell.rjust(width)
            if name in ("value", "floor", "ratio", "target")
            else cell.ljust(width)
            for cell, width, name in zip(row, widths, names, strict=True)
        ).rstrip()
        for row in rows
    ]
