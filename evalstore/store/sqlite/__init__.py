"""Stores in SQLite files."""
