"""Describes the models of candidates as Every Eval Ever does: who serves them, and from where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.providers.base_urls import host_of, is_loopback
from evalstore.providers.credentials import SERVICE_HOSTS
from evalstore.providers.kinds import OLLAMA, OPENAI_COMPATIBLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalstore.values import Json

UNKNOWN = "unknown"
_ENGINES = {**dict.fromkeys(OLLAMA, "Ollama"), "lm_studio": "LM Studio", "hosted_vllm": "vLLM"}
"""Maps kinds of providers to the programs that serve their models."""
_HOSTS = {
    **{host: kind for kind, host in SERVICE_HOSTS.items()},
    "api.openai.com": "openai",
    "openrouter.ai": "openrouter",
}
"""Maps the hosts of services to their names."""


def describe_eval_model(id: str, content: Mapping[str, Json]) -> dict[str, Json]:
    """Return the description of a candidate, from that of its model version.

    An address of this machine is a model that is deployed by oneself, and the host of a known
    service is one that is not; of other addresses nothing is known.
    """
    kind = str(content.get("provider"))
    address = content.get("baseURL") or OPENAI_COMPATIBLE.get(kind)
    host = _host(address) if isinstance(address, str) else SERVICE_HOSTS.get(kind)
    service = _HOSTS.get(host or "")
    deployment = UNKNOWN
    if host and is_loopback(host):
        deployment = "self_deployed"
    elif service:
        deployment = "externally_managed"
    return {
        "name": str(content.get("code") or id),
        "id": id,
        **({"inference_platform": service} if service else {}),
        **({"inference_engine": {"name": _ENGINES[kind]}} if kind in _ENGINES else {}),
        "additional_details": {
            "deployment_type": deployment,
            "model_availability": UNKNOWN,
            **({"provider": kind} if content else {}),
        },
    }


def _host(address: str) -> str | None:
    try:
        return host_of(address)
    except ValueError:
        return None
