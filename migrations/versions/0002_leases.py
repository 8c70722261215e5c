"""Leases, by which runs that share a store do not do the same work twice."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables of runners and of their leases."""
    op.create_table(
        "runners",
        sa.Column("id", sa.LargeBinary(16), nullable=False),
        sa.Column("place", sa.Text, nullable=False),
        sa.Column("pid", sa.BigInteger, nullable=False),
        sa.Column("born", sa.Text, nullable=False),
        sa.Column("beat", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "leases",
        sa.Column("id", sa.LargeBinary(16), nullable=False),
        sa.Column("runner", sa.LargeBinary(16), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_leases_runner", "leases", ["runner"])
