"""Importer of NeMo Evaluator: custom evaluation jobs and configurations.

It follows NeMo's documentation and the metrics of its SDK. Differences are listed in
`docs/coming-from/nemo.md`.
"""
