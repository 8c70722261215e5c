"""Importer of OpenAI Evals: samples, eval files and registries.

Answers get the same verdicts as from the classes in `evals.elsuite`. Differences are listed in
`docs/coming-from/openai-evals.md`.
"""
