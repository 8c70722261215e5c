"""Options that several commands share, spelled once."""

from __future__ import annotations

from typing import Annotated

import typer

from evalstore.operations.orders import Wanted

Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATH[::ROW]", help="Test files, folders, or one row of a file."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, in a shape that stays stable.")]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "-m",
        "--model",
        metavar="ID",
        help="Only this candidate; again for more. Any model will do.",
    ),
]
Evaluators = Annotated[
    list[str] | None,
    typer.Option("-J", "--evaluator", metavar="ID", help="Only this evaluator; again for more."),
]
Tags = Annotated[
    list[str] | None,
    typer.Option("-t", "--tag", metavar="T", help="Only tests with this tag; again for another."),
]
ExcludeTags = Annotated[
    list[str] | None, typer.Option("--exclude-tag", metavar="T", help="No tests with this tag.")
]
Name = Annotated[
    str | None,
    typer.Option(
        "-k",
        "--name",
        metavar="EXPR",
        help="Only cases whose file::row has these words (and, or, not).",
    ),
]
Attempts = Annotated[
    int | None,
    typer.Option(
        "-r",
        "--attempts",
        metavar="N",
        min=1,
        max=10_000,
        help="How many answers to each question.",
    ),
]


def wanted(
    paths: list[str] | None = None,
    models: list[str] | None = None,
    evaluators: list[str] | None = None,
    tags: list[str] | None = None,
    exclude_tags: list[str] | None = None,
    name: str | None = None,
    attempts: int | None = None,
) -> Wanted:
    """The selection that these options make."""
    return Wanted(
        paths=tuple(paths or ()),
        tags=tuple(tags or ()),
        exclude_tags=tuple(exclude_tags or ()),
        name=name,
        models=tuple(models or ()),
        evaluators=tuple(evaluators or ()),
        attempts=attempts,
    )
