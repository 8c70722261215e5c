"""Importer of LVE repositories."""
