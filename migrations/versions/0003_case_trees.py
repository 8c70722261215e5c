"""Long test files are stored as trees of nodes: older programs refuse the store.

No table changes, and the nodes that are there stay as they are.
"""

from __future__ import annotations

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change nothing: older programs refuse the store because of the number alone."""
