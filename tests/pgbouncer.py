"""A pgbouncer for tests, in front of a server of tests."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from tests.postgresql_server import PostgreSQLServer
from tests.runs.execution.loopback.team import wait_until

_PORT = 6432
"""Only the name of a socket: it listens to no network."""


def why_not() -> str | None:
    """Return why no pooler can be started here; None when one can."""
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    return None if found else "pgbouncer is not installed"


@contextmanager
def pooling(server: PostgreSQLServer, mode: str, size: int = 20) -> Iterator[str]:
    """Pool the connections to a server; yields the address of a new store through the pooler."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    assert program, why_not()
    folder = server.folder / f"pooler-{mode}-{size}"
    server.make_folder(folder)
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n* = host={server.host}\n[pgbouncer]\npool_mode = {mode}\n"
        f"default_pool_size = {size}\nauth_type = trust\nauth_file = {folder}/users\n"
        f"unix_socket_dir = {folder}\nlisten_port = {_PORT}\nlisten_addr =\n"
    )
    (folder / "users").write_text(f'"{server.user}" ""\n')
    is_root = os.getuid() == 0
    as_user = {"user": server.user, "group": pwd.getpwnam(server.user).pw_gid} if is_root else {}
    pooler = subprocess.Popen(  # type: ignore[call-overload]
        [program, "--quiet", settings],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        **as_user,
    )
    try:
        wait_until(lambda: (folder / f".s.PGSQL.{_PORT}").exists() or pooler.poll() is not None)
        assert pooler.poll() is None, "pgbouncer has ended"
        yield server.url().replace(quote(server.host), quote(str(folder))) + f"&port={_PORT}"
    finally:
        pooler.terminate()
        pooler.wait(60)
        shutil.rmtree(folder, ignore_errors=True)
