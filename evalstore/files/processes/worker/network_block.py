"""Disables the network of a process: in the kernel if possible, and in Python.

In a network namespace of its own, a process and its children cannot reach the network. Where the
system refuses one, only Python's sockets are disabled, which native code can circumvent. The
namespace needs a user namespace, in which the process cannot read the environment of its parent.
"""

from __future__ import annotations

import ctypes
import socket
from typing import Any

_NEW_USER = 0x10000000
_NEW_NET = 0x40000000
_REFUSED = "this check has no network: it needs 'network: true'"


def shut_out_network() -> None:
    """Disable the network permanently."""
    own_namespace()
    _shut_sockets()


def own_namespace() -> bool:
    """Enter namespaces without a network; returns whether the system allows it."""
    try:
        return bool(ctypes.CDLL(None).unshare(_NEW_USER | _NEW_NET) == 0)
    except (OSError, AttributeError):  # not Linux
        return False


class _NoSocket(socket.socket):
    """A socket for this machine only."""

    def __init__(
        self, family: int = -1, type: int = -1, proto: int = -1, fileno: int | None = None
    ) -> None:
        if fileno is None and family != getattr(socket, "AF_UNIX", None):
            raise PermissionError(_REFUSED)
        super().__init__(family, type, proto, fileno)


def _refuse(*_arguments: Any, **_named: Any) -> Any:
    raise PermissionError(_REFUSED)


def _shut_sockets() -> None:
    setattr(socket, "socket", _NoSocket)  # noqa: B010 - a type is not a plain attribute to mypy
    for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr"):
        setattr(socket, name, _refuse)
