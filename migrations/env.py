"""Runs the migrations on the connection that `table_definitions` hands over."""

from __future__ import annotations

from alembic import context

from evalstore.store.schema.alembic_metadata import METADATA

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=METADATA, render_as_batch=True)
context.run_migrations()
