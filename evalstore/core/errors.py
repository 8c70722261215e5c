"""The errors that a user can cause or fix, with their exit codes.

Anything else that escapes is a bug and shows its traceback. A subclass exists where
a caller reacts differently or the exit code differs, not for each message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from evalstore.core.display import safe

OK = 0
NO = 1
USAGE = 2
INCOMPLETE = 3
STOPPED = 4
NOTHING_SELECTED = 5
STORE_UNUSABLE = 6
BUG = 70
INTERRUPTED = 130

_PASSWORDS = re.compile(
    # That of a database may have a '/', which has to be escaped; a number may be the port.
    r"""(\bpostgres(?:ql)?(?::/{0,3}|//)[^\s'"/@:]*:)([^\s'"]+(?=@)|(?!\d{1,5}\b)[^\s'"/]+)"""
    r"""|(\b[a-z][a-z0-9+.-]*://[^\s'"/@:]*:)([^\s'"/]+)(?=@)"""
    r"""|(pas{1,2}w(?:or)?d\s*=\s*|scram_\w+_key=|client_secret=)([^\s&'"]+)""",
    re.IGNORECASE,
)
_MOST_SCHEMAS = 5
"""The most schemas that a hint names."""
_LONGEST_EXCERPT = 1_000
"""Characters of a line of source that is shown."""


def hide_passwords(text: str) -> str:
    """Return a text with asterisks in the place of the passwords in its URLs, well-formed or not.

    Whatever a user or a file names may be a URL at the wrong place, and messages repeat it.
    """

    def hide(match: re.Match[str]) -> str:
        before = next(group for group in match.groups() if group is not None)
        return f"{before}***"  # whatever its length, which would help to guess it

    return _PASSWORDS.sub(hide, text)


def describe_bug(error: BaseException) -> str:
    """Return the traceback of an exception that is a bug, without the passwords of addresses."""
    from traceback import format_exception  # most commands need none

    return hide_passwords("".join(format_exception(error)))


class EvalstoreError(Exception):
    """What went wrong, in words for the user, and a hint what to do about it."""

    exit_code = USAGE

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(hide_passwords(message))
        self.hint = hint and hide_passwords(hint)


class UnsuitedError(EvalstoreError):
    """The option that the message names first has no meaning beside the other options."""


class RevisionError(EvalstoreError):
    """A revision matches nothing in the store, or more than one object."""


class NotARevisionError(RevisionError):
    """A text cannot be a revision."""

    def __init__(self, text: str, hint: str) -> None:
        super().__init__(f"'{text}' is not a revision", hint=hint)
        self.text = text


class OutsideError(EvalstoreError):
    """The workspace uses a path outside itself that its user has not allowed."""


class NoWorkspaceError(EvalstoreError):
    """Neither a folder nor one above it is a workspace."""


class NothingSelectedError(EvalstoreError):
    """No case is selected."""

    exit_code = NOTHING_SELECTED


class NoTestFileError(EvalstoreError):
    """A path has no test files."""


class StoreError(EvalstoreError):
    """The store is damaged, locked, read-only, or newer than this program."""

    exit_code = STORE_UNUSABLE


class ExcessiveError(StoreError):
    """Something in the store describes so much that it cannot be read."""


class NewerError(StoreError):
    """A newer program has written something that this one cannot read, which is not damaged."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(
            f"{place} was written by a newer evalstore: {problem}", hint="upgrade evalstore"
        )
        self.problem = problem
        """Which row it is, and what of it is not known."""


class StoreMissingError(StoreError):
    """A database has no tables of a store in the schema of an address."""

    def __init__(self, address: str, schemas: Sequence[str], *, may_make: bool) -> None:
        """`schemas` have stores in this database; `may_make` is whether a hint names `init`."""
        self.others = stores_text(schemas)
        hint = self.others or "this database has no store that this user can see"
        if may_make:
            new = "'evalstore init' makes a new one"
            hint = f"{hint}; {new}" if self.others else "run 'evalstore init' first"
        super().__init__(f"no store at '{address}'", hint=hint)


def stores_text(schemas: Sequence[str]) -> str:
    """Return in which schemas of a database there are stores; empty if in none."""
    if not schemas:
        return ""
    listed = ", ".join(f"'{safe(name)}'" for name in schemas[:_MOST_SCHEMAS])
    more = f" and {len(schemas) - _MOST_SCHEMAS:,} more" * (len(schemas) > _MOST_SCHEMAS)
    which = "the schema" if len(schemas) == 1 else "the schemas"
    return (
        f"this database has a store in {which} {listed}{more}: '?schema=NAME' at the end of the "
        "address names one"
    )


class StoreLockedError(StoreError):
    """The store is locked by another program for longer than the timeout."""


class StoreUnreachableError(StoreError):
    """The server of the store does not answer, or the connection to it was lost."""


class RemoteError(EvalstoreError):
    """A remote cannot be reached, is damaged, or is newer than this program."""

    exit_code = STORE_UNUSABLE


class NotRunError(Exception):
    """A check could not be run for a reason outside it.

    There is no verdict, and the next run judges the answer again.
    """


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a file of the workspace."""

    JSON_FIELDS = ("file", "line", "column", "severity", "message", "hint")

    file: str
    """Relative to the workspace, with forward slashes."""
    message: str
    line: int | None = None
    """Counted from 1."""
    column: int | None = None
    """Counted from 1."""
    severity: str = "error"
    """`error` or `warning`."""
    hint: str | None = None
    excerpt: str | None = None
    """The line of source the problem is in."""
    fragment: str | None = None
    """The text at the place, from which the column can be found."""

    def __post_init__(self) -> None:
        for name in ("message", "hint", "excerpt"):
            text = getattr(self, name)
            if text and (hidden := hide_passwords(text)) != text:
                object.__setattr__(self, name, hidden)

    @property
    def place(self) -> str:
        """Return `file`, `file:line` or `file:line:column`."""
        parts = (self.file, self.line, self.column)
        return ":".join(str(part) for part in parts if part is not None)

    @property
    def sentence(self) -> str:
        """Return the place, what is wrong and the hint as one line."""
        return "; ".join(filter(None, [f"{self.place}: {self.message}", self.hint]))

    def located(self, lines: Sequence[str]) -> Problem:
        """Return the problem with the column of its fragment, when its line of the file has it."""
        if self.column or not self.fragment or not self.line or self.line > len(lines):
            return self
        line = lines[self.line - 1]
        column = _column_of(self.fragment.partition("\n")[0], line)
        return replace(self, column=column, excerpt=line if column else None)


def _column_of(fragment: str, line: str) -> int | None:
    """Find the column of a fragment, counted from 1; one inside braces is preferred."""
    if len(line) > _LONGEST_EXCERPT:
        return None
    inside = re.search(r"\{[{%][^{}]*?" + f"({re.escape(fragment)})", line)
    start = inside.start(1) if inside else line.find(fragment)
    return start + 1 if start >= 0 else None


class WorkspaceError(EvalstoreError):
    """The workspace has problems; contains those of all files."""

    looked_for: Mapping[str, tuple[str, int, int, int, int]]
    """The paths of files that tests mention, also of missing ones, and what was seen there."""

    def __init__(
        self,
        problems: Iterable[Problem],
        *,
        hint: str | None = None,
        looked_for: Mapping[str, tuple[str, int, int, int, int]] | None = None,
    ) -> None:
        self.looked_for = looked_for or {}
        self.problems = sorted(problems, key=lambda problem: (problem.file, problem.line or 0))
        text = "\n".join(f"{problem.place}: {problem.message}" for problem in self.problems)
        super().__init__(text, hint=hint)


class FileProblem(Exception):  # noqa: N818 - it is collected, not shown as an error by itself
    """A problem that ends the reading of one file; collected with those of all others."""

    def __init__(
        self,
        message: str,
        line: int | None = None,
        *,
        column: int | None = None,
        hint: str | None = None,
        severity: str = "error",
        fragment: str | None = None,
    ) -> None:
        """`fragment` is the text at the place, from which the column is found."""
        super().__init__(message)
        self.message = message
        self.severity = severity
        self.fragment = fragment
        self.line = line
        self.column = column
        self.hint = hint
        self.others: tuple[FileProblem, ...] = ()
        """Further problems of the same file."""

    def all_at(self, file: str, lines: list[str] | None = None) -> list[Problem]:
        """Return this problem and the others of its file, each with its place."""
        return [problem.at(file, lines) for problem in (self, *self.others)]

    def at(self, file: str, lines: list[str] | None = None) -> Problem:
        """Return the problem with its file, and with the line of source when that is known."""
        excerpt = lines[self.line - 1] if lines and self.line and self.line <= len(lines) else None
        return Problem(
            file=file,
            message=self.message,
            line=self.line,
            column=self.column,
            severity=self.severity,
            hint=self.hint,
            excerpt=excerpt if self.column else None,
            fragment=self.fragment,
        )


def raise_all(problems: Sequence[FileProblem]) -> None:
    """Raise the first of these problems of a file with the others, if there are any."""
    if problems:
        first, *rest = problems
        others = (each for problem in rest for each in (problem, *problem.others))
        first.others = (*first.others, *others)
        raise first


class LimitProblem(FileProblem):
    """A limit of time or memory was reached; the rest of the file is not read."""
