"""Translates errors of psycopg and PostgreSQL into `StoreError` with messages for users."""

from __future__ import annotations

import re

from psycopg import Error, InterfaceError, OperationalError, ProgrammingError, errors

from evalstore.core.errors import StoreError, StoreLockedError, StoreUnreachableError

_LONGEST = 300
"""The most characters of a message of the server, which may quote a whole value."""
ROLLED_BACK = (
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.IdleInTransactionSessionTimeout,
)
"""Errors after which a transaction can be made again as it was."""
_GONE = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.IdleSessionTimeout,
    errors.TooManyConnections,
)
_MAY_WRITE_AGAIN = (
    "its role or its database has default_transaction_read_only; ALTER ROLE or ALTER DATABASE with "
    "RESET default_transaction_read_only lets it write"
)
_AGAIN = "run again when it is back: what is in the store stays there"
_NOT_FOUND = f"check the host and the port of the address; if they are right, {_AGAIN}"
_REASONS: tuple[tuple[tuple[type[Error], ...], str, str, str | None], ...] = (
    (
        (errors.LockNotAvailable,),
        "",
        "the store '{name}' is locked by another program",
        "wait until it is done and try again",
    ),
    (
        (errors.InsufficientPrivilege,),
        r"FATAL: .*permission denied",
        "this user may not use the store '{name}': {text}",
        "its owner can GRANT what is missing",
    ),
    (
        (errors.InvalidPassword, errors.InvalidAuthorizationSpecification),
        r"FATAL: .*(authentication failed|no password supplied|pg_hba\.conf|role \")"
        r"|no password supplied",
        "the store '{name}' does not accept this user: {text}",
        "check the user of the address, and its password in PGPASSWORD or ~/.pgpass",
    ),
    (
        (errors.InvalidCatalogName,),
        r'FATAL: .*database "[^"]*" does not exist',
        "no database at '{name}': {text}",
        "create it with 'createdb', or name another one",
    ),
    ((errors.ReadOnlySqlTransaction,), "", "the store '{name}' is read-only: {text}", None),
    (
        (errors.DiskFull, errors.OutOfMemory, errors.ConfigurationLimitExceeded),
        "",
        "no space left for the store '{name}': {text}",
        "free some space on its server and run again: what is in the store stays there",
    ),
    (
        (
            errors.UndefinedTable,
            errors.UndefinedColumn,
            errors.UndefinedFunction,
            errors.WrongObjectType,
        ),
        "",
        "the store '{name}' is damaged: {text}",
        "restore a copy of it; 'evalstore fsck' lists what is wrong",
    ),
    (
        (errors.ProgramLimitExceeded,),
        "",
        "a value is too large for the store '{name}': {text}",
        "a text, and all parameters of a statement together, may have at most 1 GiB",
    ),
    (
        (),
        r"invalid .*(value|number)|definition of service|could not match|certificate|support SSL",
        "the address of the store '{name}' cannot be used: {text}",
        "the documentation of libpq lists the options of connections",
    ),
    (
        # A server that begins, ends, or has no connection left accepts others later.
        (),
        r"FATAL: (?!.*(starting up|shutting down|recovery|accepting conn|too many|slots|terminat))",
        "the store '{name}' cannot be used: {text}",
        None,
    ),
)
"""Errors; the pattern of a connection that is refused, which has no code; a message and a hint."""


def is_lost(error: BaseException) -> bool:
    """Return whether an error means that the connection, or its server, is gone for now."""
    if isinstance(error, _GONE):
        return True
    if not isinstance(error, OperationalError | InterfaceError) or error.sqlstate is not None:
        return False
    # Without a code of the server, the connection itself has failed.
    return _refusal(shorten(error)) is None


def _refusal(text: str) -> tuple[str, str | None] | None:
    """Return the message and the hint for the reason of a server to refuse a connection."""
    refusals = (reason[2:] for reason in _REASONS if reason[1] and re.search(reason[1], text))
    return next(refusals, None)


def explain_database_error(
    error: Exception,
    name: str,
    waited: float = 0.0,
    *,
    was_open: bool = True,
    is_standby: bool = False,
) -> StoreError:
    """Return the `StoreError` for an error of the store with this name.

    `waited` is for how many seconds its server was waited for; `was_open` whether it was there;
    `is_standby` whether it only follows another server.
    """
    text = shorten(error)
    if isinstance(error, OperationalError) and (refusal := _refusal(text)):
        message, hint = refusal
        return StoreError(message.format(name=name, text=text), hint=hint)
    if isinstance(error, ProgrammingError) and error.sqlstate is None:
        return StoreError(f"the address of the store '{name}' cannot be used: {text}")
    if is_lost(error):
        after = f", after waiting for {waited:g} seconds" if waited else ""
        return StoreUnreachableError(
            f"the store '{name}' cannot be reached{after}: {text}",
            hint=_AGAIN if was_open else _NOT_FOUND,
        )
    for kinds, _, message, hint in _REASONS:
        if isinstance(error, kinds):
            if "permission denied for database" in text:
                hint = "its owner can GRANT CREATE ON DATABASE, which creating a store needs"
            if isinstance(error, errors.ReadOnlySqlTransaction):
                hint = hint_where_read_only(is_standby=is_standby)
            kind = StoreLockedError if isinstance(error, errors.LockNotAvailable) else StoreError
            return kind(message.format(name=name, text=text), hint=hint)
    return StoreError(f"the store '{name}' cannot be used: {text}")


def hint_where_read_only(*, is_standby: bool) -> str:
    """Return what lets a user write where all transactions only read."""
    return "name the primary server, not a standby" if is_standby else _MAY_WRITE_AGAIN


def shorten(error: Exception) -> str:
    """Return the first lines of a message as one line, without what only a server's log needs."""
    diagnostics = error.diag.message_primary if isinstance(error, Error) else None
    text = diagnostics or str(error) or type(error).__name__
    text = text.replace("connection failed: ", "", 1).partition("Is the server running")[0]
    return " ".join(text.split())[:_LONGEST]
