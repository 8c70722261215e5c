"""Prompts and oracles of LangBiTe."""
