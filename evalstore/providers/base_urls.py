"""Validates base URLs, and finds their hosts.

Base URLs are stored, so they must not hold a password or a key. A host is compared as text
with the hosts that keys may be sent to, so it must be unambiguous.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from urllib.parse import SplitResult, parse_qsl, urlsplit, urlunsplit

_HOST = re.compile(r"[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?\.?|[0-9a-f:.]+")
_SECRET_PARAMETER = re.compile(
    r"(^|[_-])(api|auth)?[_-]?(keys?|token|secret|password|passwd|pwd|sig|signature|auth|code|jwt"
    r"|authorization|credentials?|bearer)$",
    re.IGNORECASE,
)
_SECRET_OPTION = re.compile(
    r"(^|[_-])(api[_-]?key|secret|secret_key|secret_access_key|password|authorization|bearer"
    r"|(access|auth|session)_token|credentials?|cookie)$",
    re.IGNORECASE,
)
_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")
_PORTS = {"http": 80, "https": 443}


def is_secret_option(name: str) -> bool:
    """Return whether an option or a header of this name holds a key or a password."""
    return _SECRET_OPTION.search(name) is not None


def is_secret_parameter(name: str) -> bool:
    """Return whether a parameter of this name in a URL holds a key or a password."""
    return _SECRET_PARAMETER.search(name) is not None


def find_secret(url: str) -> str | None:
    """Describe a secret in a base URL without repeating it; None if there is none."""
    if "@" in url:
        return "a user name or a password"
    _, _, rest = url.partition("?")
    query, _, fragment = rest.partition("#")
    pairs = parse_qsl(f"{query}&{fragment or url.partition('#')[2]}", keep_blank_values=True)
    name = next((name for name, _ in pairs if is_secret_parameter(name)), None)
    return f"a secret in its parameter '{name}'" if name else None


def split_base_url(url: str) -> SplitResult | None:
    """Return the parts of an absolute HTTP URL with a plain host; None if it is not one."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not host or port == 0 or not _HOST.fullmatch(host):
        return None
    return parts


def edit_path(base_url: str, edit: Callable[[str], str]) -> str:
    """Return a base URL with its path edited, but not its query; a fragment is never sent."""
    parts = urlsplit(base_url)
    return urlunsplit(parts._replace(path=edit(parts.path.rstrip("/")), fragment=""))


def host_of(url: str) -> str:
    """Return the host of a base URL, with the port unless it is the usual one: `localhost:8000`.

    Raises `ValueError` for a text that is not a base URL.
    """
    parts = split_base_url(url)
    if parts is None or parts.hostname is None:
        raise ValueError("not a base URL")
    host = parts.hostname.rstrip(".")
    host = f"[{host}]" if ":" in host else host
    return host if parts.port in (None, _PORTS[parts.scheme]) else f"{host}:{parts.port}"


def normalise_host(text: str) -> str | None:
    """Return a host as `host_of` writes it, with or without a port; None if it is not one."""
    try:
        parts = urlsplit(f"//{text.strip().lower()}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    plain = not (parts.path or parts.query or parts.fragment or "@" in parts.netloc)
    if not plain or not host or port == 0 or not _HOST.fullmatch(host):
        return None
    host = host.rstrip(".")
    host = f"[{host}]" if ":" in host else host
    return host if port is None else f"{host}:{port}"


def covers(allowed: str, host: str) -> bool:
    """Return whether a host is the allowed one; without a port, every port of it is allowed."""
    return host == allowed or re.fullmatch(re.escape(allowed) + r":\d+", host) is not None


def is_local(url: str) -> bool:
    """Return whether a base URL leads to this machine, or to one of a private network.

    Its host is then a loopback, private or link-local address, or a name without a public domain.
    """
    parts = split_base_url(url)
    if parts is None or parts.hostname is None:
        return False
    host = parts.hostname.rstrip(".")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".local", ".internal"))
    return address.is_private or address.is_link_local


def is_loopback(host: str) -> bool:
    """Return whether a host, with or without a port, is this machine by its name or address."""
    match = re.fullmatch(r"\[?(.*?)\]?(:\d+)?", host)
    return match is not None and _LOOPBACK.fullmatch(match[1]) is not None
