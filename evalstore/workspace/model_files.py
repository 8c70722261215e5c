"""The model, provider and currency files of a workspace.

A model file is optional: a litellm name such as `openai/gpt-5.4-mini` needs none. Settings that
affect the answer are part of the model version; prices, capabilities and the display id are not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from evalstore.core.errors import FileProblem
from evalstore.core.values import RECORDED, Json, ModelVersion
from evalstore.files.fields import Fields, is_json, suggest
from evalstore.files.processes.application import APPLICATIONS, Application
from evalstore.files.yaml12 import read_yaml
from evalstore.providers.base_urls import is_secret_option
from evalstore.providers.price_table import is_known_provider
from evalstore.providers.script import is_list_of_mappings
from evalstore.workspace.settings.application_fields import (
    FIELDS,
    SERVICES,
    USUAL_KEYS,
    Programs,
    check_base_url,
    read_application,
    read_key_variable,
)

Part = Literal["candidate", "evaluator"]

MODEL_FIELDS = (
    "id",
    "code",
    "name",
    "description",
    "provider",
    "providerModelCode",
    "active",
    "thinking",
    "keepThoughts",
    "providerOptions",
    "providerTools",
    "capabilities",
    "candidateOverrides",
    "evaluatorOverrides",
    "extraIdentifier",
    "uniqueProperties",
    "costs",
    "responses",
    "tags",
    *FIELDS,
)
COST_FIELDS = (
    "costPerCall",
    "costPerPromptToken",
    "costPerCachedPromptToken",
    "costPerCompletionToken",
    "costPerHour",
    "currency",
    "validFrom",
)
OVERRIDE_FIELDS = (
    "temperature",
    "thinking",
    "providerOptions",
    "providerTools",
    "providerModelCode",
    "uniqueProperties",
)
CAPABILITIES = {
    "input": ("text", "image", "file", "pdf", "audio", "video"),
    "output": ("text", "structured", "tools", "reasoning", "image", "audio"),
}
"""What a model file may declare, for what a model takes and for what it gives."""
PROVIDER_FIELDS = (
    "code",
    "name",
    "description",
    "type",
    "baseURL",
    "service",
    "apiKeyEnvVar",
    "supportsStructuredOutputs",
    "concurrency",
    "requestsPerMinute",
    "tokensPerMinute",
)
PRICE_EXAMPLE = "costs: [{costPerCall: 0}]"
"""How a model file says that a model is free."""
CURRENCY_FIELDS = ("code", "name", "symbol", "rates")
RATE_FIELDS = ("rateInUSD", "validFrom")
_MOST = 1e9
"""The largest valid price or rate."""
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """The prices of a model from a day on, in their currency."""

    currency: str
    valid_from: str
    per_call: float = 0.0
    per_prompt_token: float = 0.0
    per_completion_token: float = 0.0
    per_hour: float = 0.0
    per_cached_prompt_token: float | None = None
    """The price of prompt tokens from the provider's cache; None: as other prompt tokens."""
    line: int = field(default=0, compare=False)
    """The line in the model file."""


@dataclass(frozen=True, slots=True)
class ProviderFile:
    """The settings of a provider file."""

    code: str
    type: str
    base_url: str | None = None
    key_variable: str | None = None
    structured: bool = True
    concurrency: int | None = None
    """The most concurrent calls; the settings may set a lower limit."""
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    service: str | None = None
    """Replaces the base URL in model versions, so that all addresses of a service share answers."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model that can be a candidate or an evaluator."""

    id: str
    provider: ProviderFile
    code: str
    active: bool = True
    options: Mapping[str, Json] = field(default_factory=dict)
    candidate_overrides: Mapping[str, Json] = field(default_factory=dict)
    evaluator_overrides: Mapping[str, Json] = field(default_factory=dict)
    capabilities: Mapping[str, bool] = field(default_factory=dict)
    """Declared capabilities: `text`, `image`, `file`, `pdf`, `audio`, `structured`, `tools` …"""
    costs: tuple[ModelPrice, ...] = ()
    responses: tuple[Json, ...] = ()
    """The answers of a scripted model."""
    application: Application | None = None
    """What runs for a model that is an application."""

    def _overrides(self, part: Part) -> Mapping[str, Json]:
        return self.candidate_overrides if part == "candidate" else self.evaluator_overrides

    def _effective(self, part: Part) -> dict[str, Json]:
        overrides = self._overrides(part)
        merged = {**self.options, **overrides}
        for name in ("providerOptions", "uniqueProperties"):
            # A list of 'uniqueProperties' only names settings, which are in the version anyway.
            both = {**_mapping(self.options.get(name)), **_mapping(overrides.get(name))}
            merged[name] = both or None
        base, own = self.options.get("thinking"), overrides.get("thinking")
        if isinstance(base, dict) and isinstance(own, dict):
            merged["thinking"] = {**base, **own}
        # 0 equals False, but is a value.
        return {
            name: value
            for name, value in merged.items()
            if value is not None and value is not False and value not in ([], {})
        }

    def version(self, part: Part) -> ModelVersion:
        """Return the model version for this part: all settings that affect the answer."""
        options = self._effective(part)
        code = options.pop("providerModelCode", self.code)
        options.pop("temperature", None)
        if not self.provider.structured:
            options["structured"] = False  # a schema is then not shown, so answers differ
        if self.application:
            options["files"] = dict(self.application.hashes)
            options["env"] = list(self.application.variables) or None
            options = {name: value for name, value in options.items() if value is not None}
        provider = self.provider
        base_url = None if provider.service else provider.base_url
        return ModelVersion(provider.type, code, base_url, options or None, provider.service)

    def temperature(self, part: Part, default: float | None) -> float | None:
        """Return the temperature for this part; an override of the model file takes precedence.

        None: it is not sent. An override of `null` says so.
        """
        value = self._overrides(part).get("temperature", default)
        return None if value is None else float(value)

    def lacks(self, needs: tuple[str, ...]) -> list[str]:
        """Return the needed capabilities that the model file declares as missing."""
        return [need for need in needs if self.capabilities.get(need) is False]


def _mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def provider_options(version: ModelVersion) -> dict[str, Json]:
    """Return the fields that a model version adds to the body of a request."""
    options = dict(version.options or {})
    body: dict[str, Json] = dict(options.get("providerOptions") or {})
    thinking = options.get("thinking")
    if isinstance(thinking, dict) and thinking.keys() == {"effort"}:
        thinking = thinking["effort"]
    if isinstance(thinking, dict):
        body.setdefault("thinking", thinking)
    elif isinstance(thinking, str):
        body.setdefault("reasoning_effort", thinking)
    if options.get("providerTools"):
        body["tools"] = [*body.get("tools", ()), *options["providerTools"]]
    return body


@dataclass(frozen=True, slots=True)
class Currency:
    """A currency with its rates in USD, each valid from a day on."""

    code: str
    rates: tuple[tuple[str, float], ...]

    def rate(self, day: str) -> float | None:
        """Return the rate in force on a day (`YYYY-MM-DD`)."""
        return next((rate for start, rate in reversed(self.rates) if start <= day), None)


def read_provider(text: str) -> ProviderFile:
    """Read a provider file; raises `FileProblem`."""
    fields = _fields(text, PROVIDER_FIELDS, "a provider file")
    code = fields.text("code")
    if code is None:
        raise FileProblem("the provider has no 'code'", 1)
    base_url = fields.text("baseURL")
    if base_url is not None:
        check_base_url(base_url, fields.line("baseURL"))
    kind = fields.text("type") or code
    key_variable = read_key_variable(fields)
    if base_url is None and key_variable is None and kind in USUAL_KEYS:
        key_variable = SERVICES[kind]  # never for another address
    return ProviderFile(
        code=code,
        type=kind,
        base_url=base_url.rstrip("/") if base_url else None,
        service=fields.text("service"),
        key_variable=key_variable,
        structured=fields.flag("supportsStructuredOutputs", default=True),
        concurrency=fields.whole("concurrency", least=1, most=1024),
        requests_per_minute=fields.number("requestsPerMinute", 0.001, _MOST),
        tokens_per_minute=fields.number("tokensPerMinute", 1, _MOST),
    )


def read_currency(text: str) -> Currency:
    """Read a currency file; raises `FileProblem`."""
    fields = _fields(text, CURRENCY_FIELDS, "a currency file")
    code = fields.text("code")
    if code is None:
        raise FileProblem("the currency has no 'code'", 1)
    rates = []
    for entry in fields.entries("rates", RATE_FIELDS):
        rate = entry.number("rateInUSD", 0, _MOST)
        if rate is None:
            raise FileProblem("a rate has no 'rateInUSD'", entry.line())
        rates.append((_day(entry), rate))
    return Currency(code, tuple(sorted(rates)))


def read_model(
    text: str,
    providers: Mapping[str, ProviderFile],
    default_id: str,
    programs: Programs | None = None,
) -> Model:
    """Read a model file; raises `FileProblem`. `programs` reads the files of applications."""
    fields = _fields(text, MODEL_FIELDS, "a model file")
    name = fields.text("provider")
    provider = providers.get(name or "")
    if provider is None and name in APPLICATIONS:
        provider = ProviderFile(name, name)
    is_application = provider is not None and provider.type in APPLICATIONS
    code = None if is_application else fields.text("code")
    id = fields.text("id") or code or default_id
    if id == RECORDED:
        raise FileProblem(f"the id '{id}' is reserved for recorded answers", fields.line("id"))
    if name is None:
        raise FileProblem(f"model '{id}' has no 'provider'", 1)
    if provider is None and not (name == RECORDED or is_known_provider(name)):
        raise UnknownProviderProblem(
            f"unknown provider '{name}'",
            fields.line("provider"),
            hint=suggest(name, providers, "providers"),
        )
    provider = provider or ProviderFile(name, name, key_variable=SERVICES.get(name))
    responses = fields.value("responses")
    if provider.type == "scripted" and responses is None:
        raise FileProblem(
            f"scripted model '{id}' has no 'responses'", 1, hint="list what it answers"
        )
    if responses is not None and not isinstance(responses, list):
        raise FileProblem("'responses' must be a list", fields.line("responses"))
    check_options(fields)
    for part in ("candidateOverrides", "evaluatorOverrides"):
        inner = fields.inner(part, OVERRIDE_FIELDS)
        inner.number("temperature", 0, 2)
        inner.text("providerModelCode")
        check_options(inner)
        check_unique_properties(inner, fields)
    check_unique_properties(fields, fields)
    fields.text("extraIdentifier")
    application = None
    if provider.type in APPLICATIONS:
        address = provider.base_url or provider.key_variable
        application = read_application(fields, provider.type, address, programs)
    elif unused := next((field for field in FIELDS if fields.value(field) is not None), None):
        raise FileProblem(
            f"'{unused}' is only for applications",
            fields.line(unused),
            hint="that is for models with 'provider: python' or 'provider: command'",
        )
    return Model(
        id=id,
        provider=provider,
        code=application.code if application else fields.text("providerModelCode") or code or id,
        active=fields.flag("active", default=True),
        options={name: value for name in OPTIONS if (value := fields.value(name)) is not None},
        candidate_overrides=fields.mapping("candidateOverrides"),
        evaluator_overrides=fields.mapping("evaluatorOverrides"),
        capabilities=_capabilities(fields),
        costs=_costs(fields),
        responses=tuple(responses or ()),
        application=application,
    )


class UnknownProviderProblem(FileProblem):
    """A model file names a provider that no file describes."""


def bare_model(id: str) -> Model | None:
    """Return the model of a litellm name such as `openai/gpt-5.4-mini`; None for another name."""
    kind, slash, code = id.partition("/")
    if not slash or not code or kind == "scripted" or not is_known_provider(kind):
        return None
    return Model(id, ProviderFile(kind, kind, key_variable=SERVICES.get(kind)), code)


def _capabilities(fields: Fields) -> dict[str, bool]:
    capabilities = fields.inner("capabilities", CAPABILITIES)
    result: dict[str, bool] = {}
    for side, known in CAPABILITIES.items():
        flags = capabilities.inner(side, known)
        for name in flags.values:
            can = flags.flag(name, default=True)
            if side == "input" or name in ("structured", "tools", "reasoning"):
                result[name] = can
    return result


def _costs(fields: Fields) -> tuple[ModelPrice, ...]:
    result = [
        ModelPrice(
            currency=entry.text("currency") or "USD",
            valid_from=_day(entry),
            per_call=entry.number("costPerCall", 0, _MOST) or 0.0,
            per_prompt_token=entry.number("costPerPromptToken", 0, _MOST) or 0.0,
            per_completion_token=entry.number("costPerCompletionToken", 0, _MOST) or 0.0,
            per_hour=entry.number("costPerHour", 0, _MOST) or 0.0,
            per_cached_prompt_token=entry.number("costPerCachedPromptToken", 0, _MOST),
            line=entry.line(),
        )
        for entry in fields.entries("costs", COST_FIELDS, hint=f"as in '{PRICE_EXAMPLE}'")
    ]
    return tuple(sorted(result, key=lambda cost: cost.valid_from))


_ELSEWHERE = {
    "temperature": "write 'candidateOverrides: {temperature: 0.5}'",
    "options": "the options that the service takes are below 'providerOptions'",
}


def _day(fields: Fields) -> str:
    value = fields.text("validFrom") or "0000-00-00"
    if not _DATE.match(value):
        raise FileProblem("'validFrom' must be a day such as 2026-01-31", fields.line("validFrom"))
    return value[:10]


def _fields(text: str, known: Any, subject: str) -> Fields:
    document = read_yaml(text)
    if not isinstance(document.value, dict):
        raise FileProblem(f"{subject} must be a mapping of fields", 1)
    return Fields(document, known, elsewhere=_ELSEWHERE)


# --- the options of a model file that affect the answers, and the checks of their types


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
