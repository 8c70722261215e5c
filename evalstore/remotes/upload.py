"""Copies rows of a store to a remote that does not have them: packs, and then their index.

The index comes last: what it lists is there when a reader sees it. A pack that is there already is
used, so that an interrupted push is completed; but not an old one, which a clean-up of the remote
may be deleting. Then the rows are written to a pack with another name.

`find_reached` says which rows runs reach: what is needed to show them, and the judgements of their
answers.

Keys in rows are found before they leave this machine.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from struct import iter_unpack
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from evalstore.core.batches import in_batches, in_weighed_batches
from evalstore.core.clock import now
from evalstore.core.errors import RemoteError, StoreError
from evalstore.core.hashing import ValueSet, canonical_json
from evalstore.providers.base_urls import is_secret_parameter
from evalstore.providers.errors import names_secret
from evalstore.remotes.acceptance import LARGEST_SIGNATURE
from evalstore.remotes.index_cache import IndexCache
from evalstore.remotes.layout import (
    LONGEST_PUSH,
    SIGNATURE,
    RemoteFiles,
    index_name,
    pack_name,
    sha256,
)
from evalstore.remotes.packs import (
    MOST_PACKS,
    MOST_RECORDS,
    NO_KEY,
    IndexedPack,
    IndexedRecord,
    IndexHeader,
    PackWriter,
    write_index,
)
from evalstore.store import Store
from evalstore.store.contents import ID_BYTES, decode_content
from evalstore.store.records import (
    COPIED_TABLES,
    CheckedRecord,
    CopyListener,
    MissingIds,
    StoredRecord,
    check_record,
    count_ids,
    iterate_joint_subjects,
    iterate_references,
    split_ids,
)
from evalstore.store.schema.table_definitions import SESSIONS

_SHAPES: tuple[tuple[str, str, str], ...] = (
    # What it is, a text that it always has, its pattern.
    ("an API key", "sk-", r"\bsk-[A-Za-z0-9_-]{20,}"),
    ("a Google API key", "AIza", r"\bAIza[A-Za-z0-9_-]{35}"),
    ("a Groq API key", "gsk_", r"\bgsk_[A-Za-z0-9]{40,}"),
    ("an xAI API key", "xai-", r"\bxai-[A-Za-z0-9]{40,}"),
    ("a Perplexity API key", "pplx-", r"\bpplx-[A-Za-z0-9]{40,}"),
    ("a Cerebras API key", "csk-", r"\bcsk-[a-z0-9]{40,}"),
    ("an NVIDIA API key", "nvapi-", r"\bnvapi-[A-Za-z0-9_-]{40,}"),
    ("a Replicate token", "r8_", r"\br8_[A-Za-z0-9]{36,}"),
    ("a Hugging Face token", "hf_", r"\bhf_[A-Za-z0-9]{30,}"),
    ("a GitHub token", "gh", r"\bgh[pousr]_[A-Za-z0-9]{36}"),
    ("a GitHub token", "github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{60,}"),
    ("a GitLab token", "glpat-", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("an AWS access key", "AKIA", r"\bAKIA[A-Z0-9]{16}\b"),
    ("an AWS access key", "ASIA", r"\bASIA[A-Z0-9]{16}\b"),
    ("a Slack token", "xox", r"\bxox[abprs]-[A-Za-z0-9-]{20,}"),
    ("a private key", "PRIVATE KEY-----", r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----"),
)
_START = r"(?:(?<=\\[bfnrt])|\b)"
"""The start of a word, also after a line break or a tab, which JSON writes with a letter."""
_PATTERNS = tuple(
    (name, text, re.compile(pattern.replace(r"\b", _START, 1))) for name, text, pattern in _SHAPES
)
_BETWEEN = re.compile(r"[/:.,_@+~-]+")
_PLAIN = re.compile(
    r"[A-Z]?[a-z]{0,14}(?:[A-Z][a-z]{2,14}){0,2}|[A-Z]{1,14}|\d{1,10}"
    r"|(?:[A-Z]?[a-z]{0,14}|[A-Z]{1,14})\d{1,3}[a-zA-Z]{0,2}"
    r"|v\d+(?:alpha|beta|rc|p)\d*|\d+x\d+b"
)
"""A word, a number or a version, as in the names of models, hosts and files."""
_URL = re.compile(r"[A-Za-z][\w+.-]*://(?:(?![,;][\w+.-]+://)\S)+")
_PAIR = re.compile(r"([\w.-]+)=(\"[^\"]*\"|[^\s;&#,\"]+)")
_SHORTEST = 8
"""Characters of a value that is looked for; shorter ones may be words."""


class FoundSecret(NamedTuple):
    """A key in a row."""

    table: str
    id: str
    name: str
    """What it is, such as `an AWS access key`; never the key itself."""


class SecretScan:
    """Looks for keys by their shape, and for the values of this machine's variables."""

    def __init__(self, environment: Mapping[str, str], own: Iterable[tuple[str, str]] = ()) -> None:
        """`own` are the names and values in `.env` of the workspace."""
        secrets = [(name, each) for name, value in environment.items() for each in _of(name, value)]
        secrets += [(name, each) for name, value in own for each in _of(name, value, is_own=True)]
        self._values = tuple(
            (name, form)
            for name, value in dict.fromkeys(secrets)
            for text in dict.fromkeys((value, unquote(value)))
            for form in dict.fromkeys((text, canonical_json(text)[1:-1]))
            if len(text) >= _SHORTEST
        )

    def find(self, record: StoredRecord) -> FoundSecret | None:
        """Return the first key in a record; None when there is none."""
        text = record.content
        if record.data:
            text += record.data.decode("latin-1")
        for name, value in self._values:
            if value in text or value.encode(errors="replace") in (record.data or b""):
                return FoundSecret(record.table, record.id, f"the value of {name}")
        for name, part, pattern in _PATTERNS:
            if part in text and pattern.search(text):
                return FoundSecret(record.table, record.id, name)
        return None


def _of(name: str, value: str, *, is_own: bool = False) -> Iterator[str]:
    """Yield the secrets in a variable: by its name, in URLs, and in pairs such as `api_key=...`.

    In `.env` of the workspace, which `is_own`, so is what does not look like words and numbers.
    """
    urls = _URL.findall(value)
    is_plain = not is_own or _is_plain(value) or urls == [value]
    if names_secret(name, value) or not is_plain:
        yield value
    for url in urls:
        try:
            parts = urlsplit(url)
            users = [parts.password, None if _is_plain(parts.username or "") else parts.username]
        except ValueError:
            continue
        steps = [step for step in parts.path.split("/") if is_own and not _is_plain(step)]
        secrets = [secret for secret in (*users, *steps) if secret]
        yield from [url, *secrets] if secrets else []
    for member, text in _PAIR.findall(value):
        if is_secret_parameter(member) or names_secret(member.replace("-", "_"), text):
            yield text.strip('"')


def _is_plain(text: str) -> bool:
    return all(_PLAIN.fullmatch(piece) for piece in _BETWEEN.split(text))


Announce = Callable[[str], None]
"""Is told the name with which a push will be shown."""
Sign = Callable[[bytes], bytes]
"""Returns the signature of bytes; raises `EvalstoreError`."""


@dataclass(slots=True)
class Written:
    """What was written to a remote."""

    records: int = 0
    bytes_sent: int = 0
    """Of the packs, indexes and signatures that the remote did not have."""
    packs: int = 0
    indexes: list[str] = field(default_factory=list)
    """Their names."""


class IndexWriter:
    """Writes records to a remote. Every method raises `RemoteError`."""

    def __init__(
        self,
        files: RemoteFiles,
        cache: IndexCache,
        header: IndexHeader,
        listener: CopyListener,
        sign: Sign | None = None,
        announce: Announce | None = None,
    ) -> None:
        """`header` names the writer and the time; with `sign`, each index gets a signature.

        `announce` is called with the name that the push will be shown with, before each index.
        """
        self._files = files
        self._cache = cache
        self._header = header
        self.listener = listener
        self._sign = sign
        self._announce = announce
        self.written = Written()
        self._pack = PackWriter()
        self._added: list[tuple[bytes, int | None]] = []
        """The lookup keys of the records in the pack, and the times of their pushes."""
        self._packs: list[IndexedPack] = []
        self._records: list[IndexedRecord] = []

    @property
    def is_full(self) -> bool:
        """Return whether the next record belongs into another index."""
        records = len(self._records) + len(self._added)
        return records >= MOST_RECORDS or len(self._packs) >= MOST_PACKS

    def add(self, record: StoredRecord, key: bytes) -> None:
        """Append a record with its lookup key."""
        self._pack.add(record)
        self._append(key, None)

    def copy(self, table: int, id: bytes, data: bytes, key: bytes, pushed: int) -> None:
        """Append a record as another pack has it, with the time of its first push."""
        self._pack.copy(table, id, data)
        self._append(key, pushed)

    def _append(self, key: bytes, pushed: int | None) -> None:
        self._added.append((key, pushed))
        if self._pack.is_full:
            self.finish_pack()

    def list_pack(self, pack: IndexedPack, records: Iterable[IndexedRecord]) -> None:
        """List records of a pack that the remote has."""
        number = len(self._packs)
        self._packs.append(pack)
        self._records += [record._replace(pack=number) for record in records]

    def finish_pack(self) -> None:
        """Write the records that were added as a pack."""
        entries, added = self._pack.entries, self._added
        if not entries:
            return
        digest, size, sent = self._write_pack()
        self.list_pack(
            IndexedPack(digest, size),
            (IndexedRecord(0, entry, *of) for entry, of in zip(entries, added, strict=True)),
        )
        self._pack, self._added = PackWriter(), []
        self.written.packs += 1
        self.written.bytes_sent += sent
        self.listener.advance(len(entries), sent)

    def _write_pack(self) -> tuple[str, int, int]:
        """Return the SHA-256 and the size of the pack, and how many bytes were sent."""
        variant = 0
        while True:
            digest, data = self._pack.finish(variant)
            name = pack_name(digest)
            if self._files.create(name, data):
                return digest, len(data), len(data)
            found = self._files.iterate(name.rpartition("/")[0])
            there = next((file for file in found if file.name == name), None)
            if there is None:
                continue  # a clean-up has just deleted it
            if there.size != len(data):
                raise RemoteError(
                    f"the remote '{self._files.address}' is damaged: '{name}' is not whole",
                    hint="remove this file from the remote, and push again",
                )
            if there.modified is None or abs(now() - there.modified) < LONGEST_PUSH * 1_000_000:
                return digest, len(data), 0
            variant += 1

    def finish_index(self) -> None:
        """Write the index of all records until now, which makes them visible."""
        self.finish_pack()
        if not self._records:
            return
        header = replace(self._header, packs=self._packs)
        data = write_index(header, self._records)
        name = index_name(header.created, sha256(data), is_merged=bool(header.replaces))
        signature = self._sign(data) if self._sign else None
        writer = self._cache.require_accepted(data, signature)
        if self._announce:
            self._announce(writer)
        if signature is not None:
            self._write_signature(name + SIGNATURE, signature, data, header)
        if self._files.create(name, data):
            self.written.bytes_sent += len(data)
        self.written.indexes.append(name)
        self.written.records += len(self._records)
        self._cache.add(name, data, writer)
        self._packs, self._records = [], []

    def _write_signature(
        self, name: str, signature: bytes, data: bytes, header: IndexHeader
    ) -> None:
        """Write a signature; one that is there already must be as good."""
        if self._files.create(name, signature):
            self.written.bytes_sent += len(signature)
            return
        found = self._files.read(name, LARGEST_SIGNATURE)
        rules = self._cache.rules
        if found != signature and not (
            rules.requires_signatures
            and rules.decide(data, header, found) == rules.decide(data, header, signature)
        ):
            raise RemoteError(
                f"the remote '{self._files.address}' has another signature in '{name}'",
                hint="remove this file from the remote, and try again",
            )


# --- rows of a store


_BYTES = 16 * 2**20
"""Roughly the most bytes that are loaded at once."""
_CHECKED = 500
"""Rows whose references are looked up at once."""


def push_records(
    store: Store, writer: IndexWriter, missing: MissingIds, scan: SecretScan | None = None
) -> Written:
    """Write these rows to a remote: packs first, then the indexes that make them visible.

    Raises `SecretsError` when `scan` finds keys, which are never written, `RemoteError`, also for
    a push that would not count here, and `StoreError` for a row of the store that is damaged or
    refers to a row that is missing. What was written until then is used by the next push.
    """
    writer.listener.start(count_ids(missing))
    if scan:  # before anything is written
        refuse_secrets(store, missing, scan)
    for checked in _iterate_whole(store, missing):
        writer.add(checked.record, bytes.fromhex(checked.key) if checked.key else NO_KEY)
        if writer.is_full:
            writer.finish_index()
    writer.finish_index()
    return writer.written


def _iterate_whole(store: Store, ids: MissingIds) -> Iterator[CheckedRecord]:
    """Yield these rows checked; raises `StoreError` for one that refers to a missing row."""
    records = map(check_record, iterate_records(store, ids))
    while batch := list(islice(records, _CHECKED)):
        references = {bytes.fromhex(id) for checked in batch for id in checked.references}
        if absent := {id.hex() for id in find_absent(store, references)}:
            kind, id, target = next(
                (checked.kind, checked.record.id, target)
                for checked in batch
                for target in checked.references
                if target in absent
            )
            raise StoreError(
                f"the store is damaged, so its rows are not copied: {kind} {id} refers to "
                f"{target}, which is not there",
                hint="pull what 'evalstore fsck' lists, or run 'evalstore fsck --repair'",
            )
        yield from batch


def find_absent(store: Store, ids: set[bytes], below: str | None = None) -> set[bytes]:
    """Return those of these ids that a store lacks; with `below`, in the tables before this one."""
    tables = COPIED_TABLES[: COPIED_TABLES.index(below)] if below else COPIED_TABLES
    absent = set(ids)
    for table in reversed(tables):  # most references are to answers and judgements
        absent -= store.find_present(table, absent)
    return absent


class SecretsError(Exception):
    """There are keys in what would have been pushed."""

    def __init__(self, secrets: Sequence[FoundSecret]) -> None:
        super().__init__(f"{len(secrets)} keys")
        self.secrets = secrets


def refuse_secrets(store: Store, missing: MissingIds, scan: SecretScan) -> None:
    """Raise `SecretsError` when there are keys in these rows."""
    secrets = [found for found in map(scan.find, iterate_records(store, missing)) if found]
    if secrets:
        raise SecretsError(secrets)


def iterate_records(store: Store, ids: MissingIds) -> Iterator[StoredRecord]:
    """Yield the records with these ids, table by table in the order in which they are copied."""
    for table in sorted(ids, key=COPIED_TABLES.index):
        for batch in split_ids(ids[table]):
            digits = [id.hex() for id in batch]
            sizes = Counter(store.load_sizes(table, digits))  # 0 for a row that is missing
            for part in in_weighed_batches(digits, sizes.__getitem__, _BYTES):
                yield from store.load_records(table, part)


_WITHOUT_REFERENCES = frozenset({"files", "schemas", "tools", "models"})
_ID = f"{ID_BYTES}s"


class ReachedIds:
    """The ids of rows that were reached, by table; an `IdSource`."""

    def __init__(self, joined: Mapping[str, bytes]) -> None:
        """Take the sorted ids of each table, concatenated; tables without any are left out."""
        self.joined = joined

    def iterate_ids(self, table: str) -> Iterator[tuple[bytes]]:
        """Yield the ids of a table, each in a tuple."""
        return iter_unpack(_ID, self.joined.get(table, b""))


def find_reached(
    store: Store,
    runs: Iterable[bytes],
    *,
    presumed: Iterable[bytes] = (),
    others: Iterable[bytes] = (),
) -> ReachedIds:
    """Return what these runs reach, with the judgements of the answers that are reached.

    What the `presumed` runs reach is left out; the judgements of their answers are not, as they
    may be newer. `others` are further rows, such as failed calls. No row is read twice.
    """
    walk = _Walk(store)
    walk.reach(presumed)
    before = {table: len(ids) for table, ids in walk.reached.items()}
    walk.reach(runs)
    for joined in (bytes(walk.reached[SESSIONS.name]), b"".join(sorted(walk.subjects))):
        for subjects in split_ids(joined):
            walk.reach(store.find_judgement_ids([id.hex() for id in subjects]))
    walk.reach(others)
    return ReachedIds(
        {
            table: b"".join(sorted(each for (each,) in iter_unpack(_ID, ids[before[table] :])))
            for table, ids in walk.reached.items()
            if len(ids) > before[table]
        }
    )


class _Walk:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen = ValueSet()
        self.reached = {table: bytearray() for table in COPIED_TABLES}
        """Ids, concatenated in the order in which they were reached."""
        self.subjects: set[bytes] = set()
        """Of judgements of several answers together."""

    def reach(self, ids: Iterable[bytes]) -> None:
        """Reach these rows and, table by table, all that they refer to.

        What a row refers to is in its own table or an earlier one of `COPIED_TABLES`.
        """
        pending = self._note(set(ids))
        for table in reversed(COPIED_TABLES):
            fresh, pending = pending, bytearray()
            while fresh:
                following = bytearray()
                for batch in split_ids(fresh):
                    found = self._store.find_present(table, batch)
                    pending += b"".join(id for id in batch if id not in found)
                    self.reached[table] += b"".join(found)
                    if table not in _WITHOUT_REFERENCES:
                        following += self._reach_below(table, found)
                fresh = following

    def _reach_below(self, table: str, ids: set[bytes]) -> bytearray:
        """Return what the rows of a table refer to and was not seen yet, concatenated."""
        below = bytearray()
        for batch in in_batches(self._references(table, ids)):
            below += self._note({*batch})
        return below

    def _references(self, table: str, ids: set[bytes]) -> Iterator[bytes]:
        for record in iterate_records(self._store, {table: b"".join(sorted(ids))}):
            content = decode_content(table, record.id, record.content)
            kind = content["kind"]
            self.subjects.update(map(bytes.fromhex, iterate_joint_subjects(kind, content)))
            yield from map(bytes.fromhex, iterate_references(kind, content))

    def _note(self, ids: set[bytes]) -> bytearray:
        """Note that these ids were seen; returns those that were not before, concatenated."""
        return bytearray().join(id for id in sorted(ids) if self._seen.add(id))
