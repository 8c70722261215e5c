"""The environment variables of providers, and those that a `.env` file may set.

litellm reads the environment of the process by itself. Variables of a `.env` file are passed to it
as parameters of a call instead, and only those on a list: other variables have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from evalstore.providers.base import litellm_name

KNOWN_HOSTS = {
    "api.openai.com": {"OPENAI_API_KEY"},
    "openrouter.ai": {"OPENROUTER_API_KEY"},
    "api.anthropic.com": {"ANTHROPIC_API_KEY"},
    "generativelanguage.googleapis.com": {"GEMINI_API_KEY", "GOOGLE_API_KEY"},
    "api.mistral.ai": {"MISTRAL_API_KEY"},
    "api.groq.com": {"GROQ_API_KEY"},
    "api.deepseek.com": {"DEEPSEEK_API_KEY"},
    "api.perplexity.ai": {"PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"},
    "api.cohere.com": {"COHERE_API_KEY", "CO_API_KEY"},
    "api.x.ai": {"XAI_API_KEY"},
    "api.together.xyz": {"TOGETHERAI_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHER_API_KEY"},
    "api.fireworks.ai": {"FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY"},
    "api.cerebras.ai": {"CEREBRAS_API_KEY"},
    "api.deepinfra.com": {"DEEPINFRA_API_KEY"},
    "integrate.api.nvidia.com": {"NVIDIA_NIM_API_KEY", "NVIDIA_API_KEY"},
    "router.huggingface.co": {"HF_TOKEN", "HUGGINGFACE_API_KEY"},
}
"""Hosts of services that answer no call without a key, and the variables that hold their keys."""

SERVICE_HOSTS = {
    "anthropic": "api.anthropic.com",
    "gemini": "generativelanguage.googleapis.com",
    "mistral": "api.mistral.ai",
    "groq": "api.groq.com",
    "deepseek": "api.deepseek.com",
    "perplexity": "api.perplexity.ai",
    "cohere": "api.cohere.com",
    "cohere_chat": "api.cohere.com",
    "xai": "api.x.ai",
    "together_ai": "api.together.xyz",
    "fireworks_ai": "api.fireworks.ai",
    "cerebras": "api.cerebras.ai",
    "deepinfra": "api.deepinfra.com",
    "nvidia_nim": "integrate.api.nvidia.com",
}
"""The hosts that litellm calls for kinds of providers, unless there is a base URL."""

_ALIASES = {
    "gemini": ("GOOGLE_API_KEY",),
    "huggingface": ("HF_TOKEN", "HUGGINGFACE_API_KEY"),
    "cohere": ("CO_API_KEY",),
    "cohere_chat": ("COHERE_API_KEY", "CO_API_KEY"),
    "bedrock": ("AWS_BEARER_TOKEN_BEDROCK",),
    "together_ai": ("TOGETHER_API_KEY",),
    "azure_ai": ("AZURE_AI_API_KEY",),
    "azure": ("AZURE_API_KEY", "AZURE_OPENAI_API_KEY"),
}
_KEY_ENDS = ("_KEY", "_APIKEY", "_TOKEN")
_BASE_ENDS = ("_API_BASE", "_BASE_URL")

AMBIENT = {
    "anthropic_aws": "AWS_SECRET_ACCESS_KEY",
    "aws": "AWS_SECRET_ACCESS_KEY",
    "bedrock": "AWS_SECRET_ACCESS_KEY",
    "sagemaker": "AWS_SECRET_ACCESS_KEY",
    "amazon": "AWS_SECRET_ACCESS_KEY",
    "chatgpt": "CHATGPT_AUTH_FILE",
    "databricks": "DATABRICKS_API_KEY",
    "gigachat": "GIGACHAT_CREDENTIALS",
    "github_copilot": "GITHUB_COPILOT_TOKEN_DIR",
    "litellm_proxy": "LITELLM_PROXY_API_KEY",
    "oci": "OCI_KEY_FILE",
    "sap": "AICORE_CLIENT_SECRET",
    "snowflake": "SNOWFLAKE_JWT",
    "vertex_ai": "GOOGLE_APPLICATION_CREDENTIALS",
    "watsonx": "WATSONX_API_KEY",
}
"""Prefixes of litellm's providers that also use credentials other than a key, such as a login of
this machine; each with the variable for which the user gives consent."""
_AZURE_LOGINS = ("AZURE_AD_TOKEN", "AZURE_CLIENT_SECRET", "AZURE_PASSWORD")
"""Variables of Azure logins, which litellm uses even when there is a key."""

_PLAIN = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_AWS = {
    "AWS_ACCESS_KEY_ID": "aws_access_key_id",
    "AWS_SECRET_ACCESS_KEY": "aws_secret_access_key",
    "AWS_SESSION_TOKEN": "aws_session_token",
    "AWS_DEFAULT_REGION": "aws_region_name",
    "AWS_REGION": "aws_region_name",
    "AWS_REGION_NAME": "aws_region_name",
}
_AZURE = {
    "AZURE_API_VERSION": "api_version",
    "AZURE_AD_TOKEN": "azure_ad_token",
    "AZURE_TENANT_ID": "tenant_id",
    "AZURE_CLIENT_ID": "client_id",
    "AZURE_CLIENT_SECRET": "client_secret",
}
_VERTEX = {
    "VERTEX_PROJECT": "vertex_project",
    "VERTEXAI_PROJECT": "vertex_project",
    "VERTEX_LOCATION": "vertex_location",
    "VERTEXAI_LOCATION": "vertex_location",
}
_WATSONX = {"WATSONX_PROJECT_ID": "project_id", "WX_PROJECT_ID": "project_id"}
_PARAMETERS = {
    "bedrock": _AWS,
    "sagemaker": _AWS,
    "azure": _AZURE,
    "vertex_ai": _VERTEX,
    "watsonx": _WATSONX,
}
"""Parameters of a call by variable. Files of credentials are not among them: they can name other
files and other hosts. A later name wins over an earlier one."""
_HIDDEN = ("_key", "_token", "_secret")
_IN_ADDRESS = frozenset({"aws_region_name", "vertex_location", "vertex_project", "tenant_id"})
"""Parameters that become part of an address."""

_CREDENTIAL_NAME = re.compile(r"(^|_)(KEY|APIKEY|KEY_ID|TOKEN|SECRET|PASSWORD)$")


def is_provider_variable(name: str) -> bool:
    """Return whether a `.env` file may set this variable: a key, or what belongs to a provider."""
    return (
        _CREDENTIAL_NAME.search(name) is not None
        or name.endswith(_BASE_ENDS)
        or any(name in known for known in _PARAMETERS.values())
    )


def usual_variables(kind: str, names: Iterable[str]) -> list[str]:
    """Return those of `names` in which litellm looks for the key of a kind, the likeliest first."""
    name = litellm_name(kind)
    start = re.sub(r"[_-]", "", name).upper()
    known = _ALIASES.get(name, ())

    def rank(variable: str) -> tuple[bool, bool, bool, str]:
        plain = variable.replace("_", "")
        return (
            plain != f"{start}APIKEY",
            variable not in known,
            not variable.endswith("_API_KEY"),
            variable,
        )

    return sorted(
        (
            variable
            for variable in names
            if variable in known
            or (variable.endswith(_KEY_ENDS) and variable.replace("_", "").startswith(start))
        ),
        key=rank,
    )


def find_base(kind: str, values: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the variable with the base URL of a kind of provider, and its value."""
    start = re.sub(r"[_-]", "", litellm_name(kind)).upper()
    for name in sorted(values):
        if name.endswith(_BASE_ENDS) and values[name].strip():
            stem = name.removesuffix("_API_BASE").removesuffix("_BASE_URL")
            if stem.replace("_", "") == start:
                return name, values[name].strip()
    return None


def find_parameters(kind: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return litellm's parameters for a kind of provider, apart from its key and its address."""
    parameters = {
        parameter: values[variable].strip()
        for start, known in _PARAMETERS.items()
        if litellm_name(kind).startswith(start)
        for variable, parameter in known.items()
        if values.get(variable, "").strip()
    }
    return {
        name: value
        for name, value in parameters.items()
        if name not in _IN_ADDRESS or _PLAIN.fullmatch(value)
    }


def find_ambient(kind: str, user: Mapping[str, str]) -> str | None:
    """Return the variable for credentials of a kind that are not a key; None if it has none.

    `user` are the variables of the process.
    """
    name = litellm_name(kind)
    if name.startswith("azure"):
        return next((login for login in _AZURE_LOGINS if user.get(login)), None)
    return next((variable for start, variable in AMBIENT.items() if name.startswith(start)), None)


def secret_values(parameters: Mapping[str, str]) -> list[str]:
    """Return the values of parameters that no message may contain."""
    return [value for name, value in parameters.items() if name.endswith(_HIDDEN)]
