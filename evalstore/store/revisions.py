"""Resolves revisions: `@~1`, `@{monday}`, a name, the first digits of an id, or `origin/@`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from evalstore.core import hashing
from evalstore.core.clock import MOMENTS, iso, local_minute, read_moment
from evalstore.core.display import kind_word, plural, short
from evalstore.core.errors import NotARevisionError, RevisionError
from evalstore.core.hashing import canonical_json
from evalstore.core.runs import Run
from evalstore.core.values import FileVersion
from evalstore.store.contents import as_bytes
from evalstore.store.store import Store

MIN_PREFIX = 4
_WHOLE_ENOUGH = 8
"""The digits of the id of a run in progress that is looked for among the recorded runs."""
WORK = "@work"
"""The revision for the workspace as it is now, which is not a run."""
_LATEST = re.compile(r"@(?:~([0-9]{1,9}))?\Z")
_EARLIER = re.compile(r"(.+)~([0-9]{0,9})\Z")
"""Matches a revision and how many runs before it are meant; as in git, one without a number."""
_PREFIX = re.compile(r"[0-9a-f]{1,32}\Z")
_OF_REMOTE = re.compile(r"([^/:]+)/((?:@|[0-9a-fA-F]{4,32})(?:~[0-9]{0,9})?)\Z")


_AT_DATE = re.compile(r"@\{([^{}]+)\}\Z")
"""Matches a date: the newest run before it is meant."""
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){1,79}")
TAG = "application/vnd.evalstore.tag+json"
"""The type of the small files that give names to runs; they are copied as other files are."""


@dataclass(frozen=True, slots=True)
class RunTag:
    """A name that a run was given, or lost."""

    name: str
    run: str
    """The id of the run."""
    at: int = field(metadata={"json_as": iso})
    """Microseconds since 1970, UTC."""
    by: str
    is_removed: bool = field(metadata={"json_name": "removed"})


def read_tag(data: bytes) -> RunTag | None:
    """Return the fact in a file; None for a file of a test that has the same type."""
    try:
        fact = json.loads(data)
        tag = RunTag(*(fact[name] for name in ("name", "run", "at", "by", "removed")))
        return tag if as_bytes(tag.run) and isinstance(tag.at, int) else None
    except (ValueError, KeyError, TypeError):
        return None


def read_tags(store: Store) -> dict[str, RunTag]:
    """Return the names of runs, by name; of several facts about a name the newest counts."""
    facts = [tag for tag in map(read_tag, store.load_files_of(TAG).values()) if tag]
    newest = {tag.name: tag for tag in sorted(facts, key=lambda tag: (tag.at, tag.run))}
    return {name: tag for name, tag in sorted(newest.items()) if not tag.is_removed}


def names_of_runs(store: Store) -> dict[str, tuple[str, ...]]:
    """Return the names that each run has."""
    names: dict[str, tuple[str, ...]] = {}
    for name, tag in read_tags(store).items():
        names[tag.run] = (*names.get(tag.run, ()), name)
    return names


def add_tag(store: Store, tag: RunTag) -> None:
    """Append a fact about the name of a run."""
    fact = {"name": tag.name, "run": tag.run, "at": tag.at, "by": tag.by, "removed": tag.is_removed}
    file = FileVersion(TAG, canonical_json(fact).encode())
    store.ensure_versions({}, {hashing.identify(hashing.describe_file(file))[0]: file})


def require_name(name: str) -> None:
    """Raise `RevisionError` for a text that cannot be the name of a run."""
    if not _NAME.fullmatch(name) or name.endswith((".", ".md")):
        hint = "use 2 to 80 letters, digits, '-', '_' and '.', and no '.md' at the end"
        raise RevisionError(f"'{name}' cannot be the name of a run", hint=hint)
    if _PREFIX.match(name.lower()):
        raise RevisionError(
            f"'{name}' could be the start of an id", hint="add a word: 'v-" + name + "'"
        )
    if read_moment(name) is not None:
        raise RevisionError(f"'{name}' is a date", hint="add a word: 'v-" + name + "'")


def split_path(text: str) -> tuple[str, str, str]:
    """Return a revision, `:` and the path behind it; a date in braces may have colons, too."""
    end = text.find("}") + 1 if text.startswith("@{") else 0
    first, colon, path = text[end:].partition(":")
    return text[:end] + first, colon, path


def as_revision(text: str) -> str:
    """Return a date in braces, as a revision has it; another text is a revision already.

    Raises `RevisionError` for several words that are not a date.
    """
    is_dated = " " in text and not text.startswith("@{")
    return f"@{{{text}}}" if is_dated or read_moment(text) is not None else text


class RunInProgressError(RevisionError):
    """A revision names a run that programs carry out at this moment; it is not recorded yet."""

    def __init__(self, id: str) -> None:
        super().__init__(
            f"run {short(id)} is in progress: it has no results until it is recorded",
            hint=f"'evalstore show {short(id)}' and 'evalstore status' show its progress, and "
            f"'evalstore run --join {short(id)}' takes part",
        )
        self.id = id


def _range_hint(store: Store) -> str:
    """Return which runs there are."""
    count = store.count_runs()
    if not count:
        if running := store.find_shared_runs():
            name = short(running[0].id)
            return f"run {name} is in progress: 'evalstore show {name}' shows its progress"
        return "no runs yet: 'evalstore run' makes one"
    if count == 1:
        return "there is only one run, @"
    return f"there are {count} runs, the oldest is @~{count - 1}"


def _first_hint(store: Store) -> str:
    """Return which run is the first."""
    first = store.find_runs(limit=1, offset=max(0, store.count_runs() - 1))
    if not first:
        return _range_hint(store)
    id = short(first[0].id)
    return f"the first run is {id} of {local_minute(first[0].started)}: write '{id}'"


def resolve_run(store: Store, text: str) -> Run:
    """Return the run that a revision names: `@`, `@~2`, the start of its id, or `7f3c~2`.

    `REMOTE/REV` is one of the runs that a remote has. Raises `RevisionError`.
    """
    of_remote = _OF_REMOTE.match(text)
    if of_remote and store.find_remote_runs:
        id = resolve_remote_run(store.find_remote_runs(of_remote[1]), *of_remote.groups())
        if not store.find_present("runs", {as_bytes(id) or b""}):
            raise RevisionError(
                f"the run {short(id)} of '{of_remote[1]}' is not in the store",
                hint=f"'evalstore pull {of_remote[1]}' copies it",
            )
        return store.load_run(id)
    latest = _LATEST.match(text)
    if latest:
        back = int(latest[1] or 0)
        runs = store.find_runs(limit=1, offset=back)
        if not runs:
            raise RevisionError(f"unknown run '{text}'", hint=_range_hint(store))
        return runs[0]
    earlier = _EARLIER.match(text)
    if earlier:
        return _find_earlier(store, resolve_run(store, earlier[1]), int(earlier[2] or 1), text)
    if dated := _AT_DATE.match(text):
        moment = read_moment(dated[1])
        if moment is None:
            raise RevisionError(f"'{dated[1]}' is not a date", hint=f"write {MOMENTS}")
        runs = store.find_runs(limit=1, before=moment)
        if not runs:
            raise RevisionError(f"no run before '{dated[1]}'", hint=_first_hint(store))
        return runs[0]
    kind, id = resolve(store, text)
    if kind != "run":
        raise RevisionError(
            f"'{text}' is not a run ({kind_word(kind)})", hint="'evalstore log' lists the runs"
        )
    return store.load_run(id)


def _find_earlier(store: Store, run: Run, back: int, text: str) -> Run:
    """Return the run that is so many runs before another one; raises `RevisionError`."""
    if not back:
        return run
    earlier = list(store.find_recent_runs(before=run, limit=back))
    if len(earlier) < back:
        raise RevisionError(
            f"unknown run '{text}'",
            hint=f"{plural(len(earlier), 'run')} came before {short(run.id)}",
        )
    return earlier[-1]


def resolve(store: Store, text: str) -> tuple[str, str]:
    """Return the kind and the full id of what a revision names; raises `RevisionError`."""
    is_remote = _OF_REMOTE.match(text) and store.find_remote_runs
    if _LATEST.match(text) or _EARLIER.match(text) or _AT_DATE.match(text) or is_remote:
        return "run", resolve_run(store, text).id
    if text == WORK:
        raise RevisionError(
            f"'{WORK}' is the workspace, not a run",
            hint="'stats', 'show', 'diff', 'view' and 'report' in HTML take it; "
            "write @ for the latest run",
        )
    prefix = text.lower()
    if not _PREFIX.match(prefix):
        if tag := _NAME.fullmatch(text) and read_tags(store).get(text):
            if not store.find_present("runs", {as_bytes(tag.run) or b""}):
                missing = f"the run {short(tag.run)} named '{text}' is not in the store"
                raise RevisionError(missing, hint="'evalstore pull' copies it from a remote")
            return "run", tag.run
        if read_moment(text) is not None:
            raise NotARevisionError(text, f"write @{{{text}}} for the newest run before that date")
        raise NotARevisionError(
            text,
            "write @, @~1, @{monday}, @work, a name set with 'evalstore tag', or the first digits "
            "of an id as 'evalstore log' shows them",
        )
    if len(prefix) < MIN_PREFIX:
        raise RevisionError(f"'{text}' is too short", hint=f"write at least {MIN_PREFIX} digits")
    matches = store.find_prefix(prefix)
    if not matches:
        questions = store.find_questions(prefix)
        matches = [("question", id) for id in questions]
    if not matches:
        raise _explain_missing(store, prefix, text)
    if len(matches) > 1:
        listed = ", ".join(f"{id[:12]} ({kind_word(kind)})" for kind, id in matches[:8])
        raise RevisionError(f"'{text}' is ambiguous", hint=f"it could be {listed}")
    return matches[0]


def _explain_missing(store: Store, prefix: str, text: str) -> RevisionError:
    """Return the error for a text that is the beginning of no id of something stored."""
    for run in store.find_shared_runs():
        if run.id.startswith(prefix):
            return RunInProgressError(run.id)
    if recorded := find_recorded(store, prefix):
        return RevisionError(
            f"run {short(prefix)} is over: it is recorded as {short(recorded.id)}, "
            f"{recorded.status}",
            hint=f"use '{short(recorded.id)}'",
        )
    return RevisionError(
        f"nothing in the store starts with '{text}'", hint="'evalstore log' lists the runs"
    )


def find_recorded(store: Store, name: str) -> Run | None:
    """Return the record of a run that was in progress under the id that starts with `name`."""
    for run in store.find_recent_runs():
        known = min(len(name), len(run.nonce))  # a run of somewhere else may have none
        if known >= _WHOLE_ENOUGH and name[:known] == run.nonce[:known]:
            return run
    return None


def resolve_remote_run(ids: Sequence[str], remote: str, text: str) -> str:
    """Return one of the runs of a remote, of which the newest is the first.

    `text` is what follows the name of the remote. Raises `RevisionError`.
    """
    if latest := _LATEST.match(text):
        matches = ids[int(latest[1] or 0) :][:1]
    elif earlier := _EARLIER.match(text):
        newer = ids.index(resolve_remote_run(ids, remote, earlier[1]))
        matches = ids[newer + int(earlier[2] or 1) :][:1]
    else:
        matches = [id for id in ids if id.startswith(text.lower())]
    if len(matches) > 1:
        listed = ", ".join(id[:12] for id in matches[:8])
        raise RevisionError(f"'{remote}/{text}' is ambiguous", hint=f"it could be {listed}")
    if not matches:
        raise RevisionError(
            f"unknown run '{remote}/{text}'",
            hint=f"'{remote}' had {plural(len(ids), 'run')} when it was last read; "
            f"'evalstore pull -n {remote}' reads them again",
        )
    return matches[0]
