"""A PostgreSQL server of its own for tests, in a folder that is removed with it.

The process that has started a server holds a lock in its folder. Where no process holds it, as
after a kill, the next one that starts a server ends what is left and removes the folder.
"""

from __future__ import annotations

import fcntl
import getpass
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from select import select
from threading import Lock
from unittest import mock
from urllib.parse import quote

_ROOT_RUNS_AS = "postgres"
"""PostgreSQL refuses to run as root; Debian's package has this user."""
_SETTINGS = (
    "listen_addresses=",
    "max_connections=100",
    "shared_buffers=32MB",
    "dynamic_shared_memory_type=mmap",
    "timezone=UTC",
    # The catalog has the tables of thousands of stores, and nothing lives long enough to be tended.
    "autovacuum=off",
    "full_page_writes=off",
    "checkpoint_timeout=1h",
)
_PREFIX = "evalstore-pg-"
"""How the names of folders begin."""
_MEMORY = Path("/dev/shm")
_OWNER = "owner"
"""The file in a folder that its process has locked."""
_own: set[Path] = set()
"""The folders of this process, which would not see its own locks."""


def find_programs() -> Path | None:
    """Return the folder with the programs of a server; None when there is none."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


def why_not() -> str | None:
    """Return why no server can be started here; None when one can."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed"
    if find_programs() is None:
        return "no PostgreSQL server is installed"
    if os.getuid() == 0:
        try:
            pwd.getpwnam(_ROOT_RUNS_AS)
        except KeyError:
            return f"there is no user '{_ROOT_RUNS_AS}' for a server that root starts"
    return None


@dataclass
class PostgreSQLServer:
    """A running server."""

    folder: Path
    """Where its socket is."""
    programs: Path
    user: str
    fsync: bool = False
    _schemas: Iterator[int] = field(default_factory=count)

    @property
    def host(self) -> str:
        """Where its socket is, as libpq takes it."""
        return str(self.folder)

    def url(self, schema: str | None = None) -> str:
        """Return the address of a store; of a new one unless `schema` is given."""
        name = schema or f"store_{next(self._schemas)}"
        return f"postgresql://{self.user}@/postgres?host={quote(self.host)}&schema={name}"

    def drop_schema(self, name: str) -> None:
        """Remove a store that a test has made, with all that is in it."""
        import psycopg
        from psycopg import sql

        with psycopg.connect(f"host={self.host} user={self.user} dbname=postgres") as admin:
            admin.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))

    @contextmanager
    def needing_password(self, user: str, password: str) -> Iterator[str]:
        """Let a new user in who has to give this password; returns the address of a new store."""
        import psycopg

        rules = self.folder / "data/pg_hba.conf"
        before = rules.read_text()
        with psycopg.connect(f"host={self.host} user={self.user} dbname=postgres") as admin:
            admin.execute(f"CREATE ROLE {user} SUPERUSER LOGIN PASSWORD '{password}'".encode())
        try:
            rules.write_text(f"local all {user} scram-sha-256\n{before}")
            self._control("reload")
            yield self.url().replace(f"//{self.user}@", f"//{user}:{password}@")
        finally:
            rules.write_text(before)
            self._control("reload")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = [f"-c {setting}" for setting in (*_SETTINGS, f"fsync={_word(self.fsync)}")]
        settings += [f"-c unix_socket_directories={self.folder}"]
        self._control("start", "-l", str(self.folder / "log"), "-o", " ".join(settings))

    def stop(self, mode: str = "immediate") -> None:
        """Stop it; its connections are cut."""
        self._control("stop", "-m", mode)

    def make_folder(self, folder: Path) -> None:
        """Make a folder that is the server's own."""
        folder.mkdir(mode=0o700)
        if os.getuid() == 0:
            shutil.chown(folder, self.user)

    @contextmanager
    def standby(self) -> Iterator[PostgreSQLServer]:
        """Run a standby of it, which has all that is committed now."""
        with _own_folder(self.folder.parent, self.user) as folder:
            standby = PostgreSQLServer(folder, self.programs, self.user)
            try:
                _run(
                    self.user,
                    self.programs / "pg_basebackup",
                    *("-h", self.host, "-U", self.user, "-D", str(folder / "data")),
                    *("--write-recovery-conf", "--checkpoint=fast", "--no-sync"),
                )
                standby.start()
                yield standby
            finally:
                with suppress(RuntimeError):
                    standby.stop()

    def _control(self, *arguments: str) -> None:
        data = str(self.folder / "data")
        _run(self.user, self.programs / "pg_ctl", "-D", data, "-w", "-t", "60", *arguments)


def _word(value: bool) -> str:
    return "on" if value else "off"


def _run(user: str, *command: str | Path) -> None:
    as_user = {"user": user, "group": pwd.getpwnam(user).pw_gid} if os.getuid() == 0 else {}
    environment = {name: value for name, value in os.environ.items() if name != "PGDATA"}
    done = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        cwd="/",
        env={**environment, "LC_ALL": "C"},
        check=False,
        **as_user,  # type: ignore[call-overload]
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stdout.decode(errors='replace')}")


@contextmanager
def running_server(*, fsync: bool = False) -> Iterator[PostgreSQLServer]:
    """Run a server in a folder with a short path: that of a socket has 107 bytes at most."""
    programs = find_programs()
    assert programs is not None, why_not()
    user = _ROOT_RUNS_AS if os.getuid() == 0 else getpass.getuser()
    usual = Path(tempfile.gettempdir())
    is_in_memory = not fsync and os.access(_MEMORY, os.W_OK)
    for place in {_MEMORY, usual}:
        remove_abandoned(place, programs, user)
    with _own_folder(_MEMORY if is_in_memory else usual, user) as folder:
        server = PostgreSQLServer(folder, programs, user, fsync)
        try:
            _run(
                user,
                programs / "initdb",
                *("-D", str(folder / "data"), "-U", user, "-A", "trust", "-E", "UTF8"),
                *("--locale=C", "--no-sync", "--no-instructions"),
            )
            server.start()
            yield server
        finally:
            with suppress(RuntimeError):  # a test may have stopped it
                server.stop()


@contextmanager
def _own_folder(place: Path, user: str) -> Iterator[Path]:
    """Make a folder that is removed at the end of the block; other processes see it is in use."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
    _own.add(folder)
    try:
        if os.getuid() == 0:
            shutil.chown(folder, user)
        with (folder / f"{_OWNER}.new").open("wb") as owner:
            # A lock of this process alone: one that is forked from it does not have it.
            fcntl.lockf(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (folder / f"{_OWNER}.new").rename(folder / _OWNER)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _own.discard(folder)


def remove_abandoned(place: Path, programs: Path, user: str) -> list[Path]:
    """Remove the folders in a place whose process was killed, with their servers; returns them."""
    removed = []
    for owner in sorted(place.glob(f"{_PREFIX}*/{_OWNER}")):
        folder = owner.parent
        if folder in _own:
            continue
        with suppress(OSError), owner.open("r+b") as file:  # of another user, or in use
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            server = PostgreSQLServer(folder, programs, user)
            # What answers at a socket in this folder is no other server.
            with suppress(RuntimeError):
                _run(user, programs / "pg_isready", "-q", "-h", server.host)
                server.stop()
            shutil.rmtree(folder, ignore_errors=True)
            removed.append(folder)
    return removed


_KEPT = 4
"""How many connections are kept open; a command has seldom more."""


@contextmanager
def kept_connections(server: PostgreSQLServer) -> Iterator[None]:
    """Give the connections of closed stores to the next ones in this process.

    A new connection is a new process of the server, which reads the catalog of all stores again.
    """
    from psycopg import Error
    from psycopg.pq import TransactionStatus

    from evalstore.store.driver import while_wanted
    from evalstore.store.location import DatabaseAddress, read_address
    from evalstore.store.postgresql import connection as connections
    from evalstore.store.postgresql.driver import PostgreSQLDriver

    options = read_address(server.url("any")).options
    process = os.getpid()
    kept: list[connections.RawConnection] = []
    lock = Lock()
    open_new, close = connections._open, PostgreSQLDriver.close

    def open_kept(address: DatabaseAddress) -> connections.RawConnection:
        has_others = any(name.startswith("PG") for name in os.environ)  # settings of libpq
        if address.options == options and os.getpid() == process and not has_others:
            while True:
                with lock:
                    raw = kept.pop() if kept else None
                if raw is None:
                    break
                if not select([raw], [], [], 0)[0]:  # else it was ended by the server
                    return raw
                raw.close()
        return open_new(address)

    def keep(driver: PostgreSQLDriver) -> None:
        if driver._address.options == options and os.getpid() == process:
            driver._closed.set()
            with driver._lock:
                idle, driver._idle = driver._idle, []
            for connection in idle:
                raw = connection.raw
                with while_wanted(None), suppress(Error):
                    if raw.info.transaction_status == TransactionStatus.IDLE:
                        raw.execute("DISCARD ALL")
                        with lock:
                            if len(kept) < _KEPT:
                                kept.append(raw)
                                continue
                raw.close()
        close(driver)

    with (
        mock.patch.object(connections, "_open", open_kept),
        mock.patch.object(PostgreSQLDriver, "close", keep),
    ):
        try:
            yield
        finally:
            for raw in kept:
                raw.close()
