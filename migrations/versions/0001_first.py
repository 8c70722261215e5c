"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create every table of the first version."""

    def table(name: str, *columns: sa.Column[object], index: str | None = None) -> None:
        op.create_table(
            name,
            sa.Column("id", sa.LargeBinary(16), nullable=False),
            sa.Column("content", sa.Text, nullable=False),
            *columns,
            sa.PrimaryKeyConstraint("id"),
        )
        if index:
            op.create_index(f"ix_{name}_{index}", name, [index])

    def digest(name: str, *, nullable: bool = False) -> sa.Column[object]:
        return sa.Column(name, sa.LargeBinary(16), nullable=nullable)

    def number(name: str, *, nullable: bool = False) -> sa.Column[object]:
        return sa.Column(name, sa.BigInteger, nullable=nullable)

    for name in (
        "tools",
        "schemas",
        "prompts",
        "tests",
        "evaluation_versions",
        "models",
        "evaluators",
        "nodes",
    ):
        table(name)
    table("files", sa.Column("data", sa.LargeBinary, nullable=False))
    table(
        "sessions",
        digest("question"),
        number("started"),
        number("token_limit", nullable=True),
        index="question",
    )
    table(
        "evaluations",
        digest("subject"),
        digest("evaluation"),
        digest("evaluator"),
        number("started"),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("score", sa.Float),
        index="subject",
    )
    table("failures", digest("question", nullable=True), number("at"), index="question")
    table("runs", number("started"), index="started")
