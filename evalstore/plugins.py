"""The stable names for packages that add checks, providers and importers.

A package names what it adds in an entry point group: `evalstore.checks` a `CheckType`,
`evalstore.formats` an `Importer`, and `evalstore.providers` a class that is made with the
model's code and is a `Provider`, or has LangBiTe's `execute_prompt`. The name of the entry
point is the name of the check, the format or the provider; those of evalstore itself cannot be
replaced.
"""

from evalstore.checks.base import (
    CheckArguments,
    CheckDescription,
    CheckExample,
    CheckFinding,
    CheckInput,
    CheckSetting,
    CheckType,
    ValueType,
)
from evalstore.core.values import Reply, Request
from evalstore.exchange.importers.base import Imported, Importer, ImportOptions, SkippedItem
from evalstore.providers.base import Provider, ProviderError

__all__ = [
    "CheckArguments",
    "CheckDescription",
    "CheckExample",
    "CheckFinding",
    "CheckInput",
    "CheckSetting",
    "CheckType",
    "ImportOptions",
    "Imported",
    "Importer",
    "Provider",
    "ProviderError",
    "Reply",
    "Request",
    "SkippedItem",
    "ValueType",
]
