"""The options of a model file that affect the answers, and the checks of their types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalstore.core.errors import FileProblem
from evalstore.files.fields import is_json
from evalstore.providers.base_urls import is_secret_option
from evalstore.providers.script import is_list_of_mappings

if TYPE_CHECKING:
    from evalstore.files.fields import Fields

OPTIONS = (
    *("thinking", "keepThoughts", "providerOptions", "providerTools", "uniqueProperties"),
    "extraIdentifier",
)
"""Fields that are part of a model version; `uniqueProperties` only if it is a mapping."""
_NAMED = (*OPTIONS, "candidateOverrides", "evaluatorOverrides")
"""Fields that a path in `uniqueProperties` may begin with."""


def check_options(fields: Fields) -> None:
    """Raise `FileProblem` for options of a wrong type, and for secrets in them."""
    fields.flag("keepThoughts", default=False)
    tools = fields.value("providerTools")
    if tools is not None and not is_list_of_mappings(tools):
        raise FileProblem(
            "'providerTools' must be a list of mappings",
            fields.line("providerTools"),
            hint="write each tool as its provider wants it, as in '- {type: web_search}'",
        )
    for name in ("providerOptions", "uniqueProperties"):
        if name == "uniqueProperties" and isinstance(fields.value(name), list):
            continue
        options = fields.mapping(name)
        headers = [options.get(key) for key in ("extra_headers", "headers")]
        named = [
            *options,
            *(field for header in headers if isinstance(header, dict) for field in header),
        ]
        if secret := next((key for key in named if is_secret_option(str(key))), None):
            raise FileProblem(
                f"'{name}' holds a secret in '{secret}', and options are stored",
                fields.line(name),
                hint="name the variable that holds the key in 'apiKeyEnvVar' of the provider file",
            )
    for name in ("thinking", "providerTools"):
        if not is_json(fields.value(name)):
            raise FileProblem(f"'{name}' holds a number that is not finite", fields.line(name))


def check_unique_properties(fields: Fields, model: Fields) -> None:
    """Raise `FileProblem` if a path in the list `uniqueProperties` names no setting of `model`."""
    if not isinstance(fields.value("uniqueProperties"), list):
        return
    for number, path in enumerate(fields.names("uniqueProperties")):
        steps = path.split(".")
        value: Any = model.values
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        if value is None or steps[0] not in _NAMED:
            raise FileProblem(
                f"'uniqueProperties' names '{path}', which is not set",
                fields.line("uniqueProperties", number),
                hint="name a setting of this file, such as 'thinking.effort'",
            )
