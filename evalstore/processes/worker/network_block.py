"""Shuts a process out of the network: by the kernel where it can be, and in Python anyway.

In a network namespace of its own, a process and all it starts have no way out, whatever they
try. Where the system refuses one, the sockets of Python itself are all that is shut, and code
that goes round them is not stopped. A user namespace comes with it: in one, the process cannot
look into the environment of the program that started it.
"""

from __future__ import annotations

import ctypes
import socket
from typing import Any

_NEW_USER = 0x10000000
_NEW_NET = 0x40000000
_REFUSED = "this check has no network: it needs 'network: true'"


def shut_out_network() -> None:
    """Leave the network for good."""
    own_namespace()
    _shut_sockets()


def own_namespace() -> bool:
    """Go into namespaces without a network; whether the system has let us."""
    try:
        return bool(ctypes.CDLL(None).unshare(_NEW_USER | _NEW_NET) == 0)
    except (OSError, AttributeError):  # no Linux
        return False


class _NoSocket(socket.socket):
    """A socket that reaches this machine at most."""

    def __init__(
        self, family: int = -1, type: int = -1, proto: int = -1, fileno: int | None = None
    ) -> None:
        if fileno is None and family != getattr(socket, "AF_UNIX", None):
            raise PermissionError(_REFUSED)
        super().__init__(family, type, proto, fileno)


def _refuse(*_given: Any, **_named: Any) -> Any:
    raise PermissionError(_REFUSED)


def _shut_sockets() -> None:
    setattr(socket, "socket", _NoSocket)  # noqa: B010 - a type is not a plain attribute to mypy
    for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr"):
        setattr(socket, name, _refuse)
