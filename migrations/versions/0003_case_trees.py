"""Long test files are trees of nodes: programs that do not know them refuse the store.

No table changes, and the nodes that are there stay as they are.
"""

from __future__ import annotations

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change nothing: the number alone tells older programs."""
