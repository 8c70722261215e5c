"""Importer of LangBiTe's prompt templates and oracles."""
