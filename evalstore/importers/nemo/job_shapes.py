"""Conversion of jobs of newer versions, which have data and metrics, but no tasks."""

from __future__ import annotations

from typing import Any

from evalstore.importers.coerce import as_list, as_mapping


def as_tasks(job: dict[str, Any]) -> dict[str, Any] | None:
    """Convert a job to one with a single task; None if it has no metrics and data."""
    entries = [job["metric"]] if "metric" in job else as_list(job.get("metrics"))
    if not entries or not isinstance(job.get("dataset"), dict | str):
        return None
    metrics: dict[str, Any] = {}
    for metric in entries:
        name = str(as_mapping(metric).get("name") or as_mapping(metric).get("type") or metric)
        metrics[name if name not in metrics else f"{name}-{len(metrics) + 1}"] = metric
    params = as_mapping(job.get("params"))
    task = {
        "dataset": job["dataset"],
        "params": {
            **as_mapping(params.get("inference")),
            "template": job.get("prompt_template"),
            "limit_samples": params.get("limit_samples"),
        },
        "metrics": metrics,
    }
    return {"tasks": {next(iter(metrics)): task}, "model": job.get("model")}
