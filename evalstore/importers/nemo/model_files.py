"""Model and provider files for the candidates and judges of a job."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from evalstore.importers.base import Imported, SkippedItem
from evalstore.importers.coerce import as_mapping
from evalstore.importers.template_writer import safe_file_name
from evalstore.importers.yaml_writer import block

if TYPE_CHECKING:
    from evalstore.values import Json

_PATHS = re.compile(r"/(?:chat/)?completions/?$")


def add_participants(
    document: Mapping[str, Any],
    config: Mapping[str, Any],
    file: str,
    prefix: str,
    imported: Imported,
) -> None:
    """Add model and provider files for the models of a job, and the settings that list them.

    `prefix` is the folder of the import; provider codes begin with it.
    """
    target = document.get("target")
    candidate = target.get("model") if isinstance(target, dict) else config.get("model")
    for field, models in (("candidates", [candidate]), ("evaluators", list(_judges(config)))):
        for model in models:
            id = _model(model, file, prefix, imported)
            ids: list[Json] = imported.settings.setdefault(field, [])
            if id and id not in ids:
                ids.append(id)
    for field in ("candidates", "evaluators"):
        if not imported.settings.get(field):
            imported.settings.pop(field, None)


def _judges(config: Mapping[str, Any]) -> Iterator[Any]:
    for task in config["tasks"].values():
        for metric in as_mapping(as_mapping(task).get("metrics")).values():
            if as_mapping(metric).get("type") == "llm-judge":
                yield as_mapping(metric.get("params") or metric).get("model")


def _model(model_spec: Any, file: str, prefix: str, imported: Imported) -> str | None:
    """Add the files of a model and return its id; API keys are never imported."""
    if isinstance(model_spec, str):
        model_spec = {"name": model_spec}
    endpoint = as_mapping(as_mapping(model_spec).get("api_endpoint", model_spec))
    code, url = endpoint.get("model_id") or endpoint.get("name"), endpoint.get("url")
    if not isinstance(code, str) or not code or code.startswith("<"):
        return None
    if not isinstance(url, str) or not re.match(r"https?://", url):
        reason = f"nothing says where the model '{code}' is: write a model file for it"
        imported.warnings.append(SkippedItem(file, reason))
        return None
    name = safe_file_name(code)
    address = _PATHS.sub("", url)
    provider = {
        "code": f"{prefix}/{name}".lstrip("/"),
        "type": "openai-compatible",
        "baseURL": address,
    }
    key = f"{re.sub(r'[^A-Z0-9]+', '_', name.upper())}_API_KEY"
    if endpoint.get("api_key") or endpoint.get("api_key_secret"):
        provider["apiKeyEnvVar"] = key
        imported.warnings.append(
            SkippedItem(file, f"the key of '{code}' is not imported: set {key}")
        )
    model = {"id": code, "provider": provider["code"], "providerModelCode": code}
    imported.files[f"providers/{name}.yaml"] = block(provider).encode()
    imported.files[f"models/{name}.yaml"] = block(model).encode()
    return code
