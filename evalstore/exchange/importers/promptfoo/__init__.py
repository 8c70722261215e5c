"""Importer of promptfoo: configurations with prompts, tests and assertions.

It follows promptfoo's documentation. Differences and skipped features are listed in
`docs/coming-from/promptfoo.md`.
"""
