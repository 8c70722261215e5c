"""Conversion of the providers of a configuration to settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalstore.importers.base import Imported, SkippedItem
from evalstore.providers.promptfoo_names import litellm_id
from evalstore.values import Json

if TYPE_CHECKING:
    from evalstore.files.yaml12 import Document


def read_providers(document: Document, file: str, imported: Imported) -> None:
    """Add candidates from `providers` or `targets`, evaluators from the default test's options."""
    for field in ("providers", "targets"):
        value = document.value.get(field)
        providers = value if isinstance(value, list) else [value] if value else []
        for number, provider in enumerate(providers):
            line = document.line(field, number) if isinstance(value, list) else document.line(field)
            _add("candidates", provider, file, line, imported)
    default = document.value.get("defaultTest")
    options = default.get("options") if isinstance(default, dict) else None
    if isinstance(options, dict) and options.get("provider"):
        line = document.line("defaultTest", "options", "provider")
        _add("evaluators", options["provider"], file, line, imported)


def _add(field: str, provider: Any, file: str, line: int, imported: Imported) -> None:
    config: Any = None
    if (
        field == "evaluators"
        and isinstance(provider, dict)
        and "id" not in provider
        and "text" in provider
    ):
        provider = provider["text"]  # beside one for embeddings
    name = provider
    if isinstance(provider, dict):
        name = provider.get("id")
        config = provider.get("config")
        if name is None and len(provider) == 1:
            ((name, settings),) = provider.items()
            config = settings.get("config") if isinstance(settings, dict) else None
    id = litellm_id(name) if isinstance(name, str) else None
    if id is None:
        subject = "a provider" if name is None else f"the provider '{name}'"
        reason = f"{subject} names no model that can be imported"
        imported.left.append(SkippedItem(file, reason, line))
        return
    entry: Json = id
    temperature = config.get("temperature") if isinstance(config, dict) else None
    if isinstance(temperature, int | float):
        entry = {"id": id, "temperature": temperature}
    entries: list[Json] = imported.settings.setdefault(field, [])
    if entry not in entries:
        entries.append(entry)
    if isinstance(provider, dict) and provider.get("prompts"):
        reason = f"the provider '{name}' is for some prompts only: here every candidate gets all"
        imported.warnings.append(SkippedItem(file, reason, line))
    unused = set(config) - {"temperature"} if isinstance(config, dict) else set()
    if unused:
        names = ", ".join(sorted(unused))
        reason = f"the provider '{name}': {names} of its 'config' are not imported"
        imported.warnings.append(SkippedItem(file, reason, line))
