"""Reads text: YAML 1.2, typed fields, Markdown, templates and data sets, within limits."""
