"""Repositories of LVE."""
