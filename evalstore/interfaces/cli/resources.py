"""Errors for resources that the system refuses, such as memory, disk space or open files."""

from __future__ import annotations

import errno

from evalstore.core.errors import INCOMPLETE, EvalstoreError

_THREAD = "can't start new thread"
_REASONS = {
    errno.EMFILE: ("too many open files", "raise the limit with 'ulimit -n', or lower '-j'"),
    errno.ENFILE: ("too many open files in the whole system", "end some programs and run again"),
    errno.ENOMEM: ("there is not enough memory", "end some programs, or raise 'ulimit -v'"),
    errno.EAGAIN: ("no process or thread can be started", "raise the limit with 'ulimit -u'"),
}


class ResourcesError(EvalstoreError):
    """A resource that a command needs is exhausted; finished work is stored."""

    exit_code = INCOMPLETE


def explain_resources(error: Exception) -> ResourcesError | None:
    """Explain an error if the system lacks something; None when it is something else."""
    if isinstance(error, MemoryError):
        number: int | None = errno.ENOMEM
    elif isinstance(error, RuntimeError) and str(error) == _THREAD:
        number = errno.EAGAIN
    else:
        number = error.errno if isinstance(error, OSError) else None
    if number not in _REASONS:
        return None
    message, hint = _REASONS[number]
    return ResourcesError(message, hint=hint)
