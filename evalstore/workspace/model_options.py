"""The options of a model file that decide what a model answers, with their shape checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalstore.errors import FileProblem
from evalstore.files.fields import is_json
from evalstore.providers.base_urls import is_secret_option

if TYPE_CHECKING:
    from evalstore.files.fields import Fields

OPTIONS = ("thinking", "providerOptions", "providerTools", "uniqueProperties", "extraIdentifier")
"""Fields that are part of a model version; `uniqueProperties` only if it is a mapping."""
_NAMED = (*OPTIONS, "candidateOverrides", "evaluatorOverrides")
"""Fields that a path in `uniqueProperties` may begin with."""


def check_options(found: Fields) -> None:
    """Raise `FileProblem` for options of another shape, and for secrets in them."""
    tools = found.value("providerTools")
    if tools is not None and not _is_mappings(tools):
        raise FileProblem(
            "'providerTools' must be a list of mappings",
            found.line("providerTools"),
            hint="write each tool as its provider wants it, as in '- {type: web_search}'",
        )
    for name in ("providerOptions", "uniqueProperties"):
        if name == "uniqueProperties" and isinstance(found.value(name), list):
            continue
        given = found.mapping(name)
        headers = [given.get(one) for one in ("extra_headers", "headers")]
        named = [
            *given,
            *(field for header in headers if isinstance(header, dict) for field in header),
        ]
        if secret := next((one for one in named if is_secret_option(str(one))), None):
            raise FileProblem(
                f"'{name}' holds a secret in '{secret}', and options are stored",
                found.line(name),
                hint="name the variable that holds the key in 'apiKeyEnvVar' of the provider file",
            )
    for name in ("thinking", "providerTools"):
        if not is_json(found.value(name)):
            raise FileProblem(f"'{name}' holds a number that is not finite", found.line(name))


def check_unique_properties(found: Fields, model: Fields) -> None:
    """Raise `FileProblem` if `uniqueProperties` is a list with a path to no setting of `model`."""
    if not isinstance(found.value("uniqueProperties"), list):
        return
    for number, path in enumerate(found.names("uniqueProperties")):
        steps = path.split(".")
        value: Any = model.values
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        if value is None or steps[0] not in _NAMED:
            raise FileProblem(
                f"'uniqueProperties' names '{path}', which is not set",
                found.line("uniqueProperties", number),
                hint="name a setting of this file, such as 'thinking.effort'",
            )


def _is_mappings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)
