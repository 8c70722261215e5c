"""A workspace that runs offline: two questions, one of them answered as it should be."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstore import Workspace, init


@pytest.fixture
def workspace(folder: Path) -> Workspace:
    return init(folder)
