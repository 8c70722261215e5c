"""The stores of the laws, in both databases."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import settings

from tests.postgresql_server import PostgreSQLServer

NewUrl = Callable[[], str | None]
"""Returns the URL of a new store; None for a file in the workspace."""


def examples_of(new_url: NewUrl) -> int:
    """How many random histories have stores there: what decides is the same in both databases."""
    return settings().max_examples // (1 if new_url() is None else 5)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.extended)])
def new_url(request: pytest.FixtureRequest) -> NewUrl:
    """Return where each of many stores is made."""
    if request.param == "sqlite":
        return lambda: None
    server: PostgreSQLServer = request.getfixturevalue("postgresql_server")
    return server.url
