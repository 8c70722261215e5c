"""A remote in a bucket: S3 and servers with its protocol, Google Cloud Storage, Azure.

obstore reads the credentials from the environment. What it reports may contain parts of requests,
so its texts are not shown; errors are told apart by their kind, status and code.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from evalstore.core.errors import RemoteError
from evalstore.remotes.layout import ListedFile, MissingFileError, UnreadableFileError

if TYPE_CHECKING:
    from obstore import ListStream, ObjectMeta
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

    from evalstore.workspace.settings.remotes import RemoteUrl


PATIENCE = 60.0
"""Seconds without a byte from a server."""
_CONNECTING = "5s"
_LONGEST_REQUEST = "10min"
_RETRIES: RetryConfig = {"max_retries": 2, "retry_timeout": timedelta(seconds=30)}
_LISTED = 1_000
_CHUNK = 2**20
_LARGE = 2**16
"""Bytes from which on it is worth to ask whether a file exists before it is sent."""
_VARIABLES = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
"""The variables that are named in hints; obstore knows more."""
_NO_BUCKET = re.compile(r"\b(NoSuchBucket|ContainerNotFound)\b")
_METADATA = re.compile(r"https?://(169\.254\.|metadata\.google)")
"""The servers that give credentials to machines of a cloud; asked when there are no others."""
_STATUS = re.compile(r"status(?: code)?: ([0-9]{3})\b")
_KIND = re.compile(r"\bkind: (Connect|Timeout)\b|\b(BadScheme|MissingAccount)\b")


class BucketFiles:
    """The files of a remote in an object store; implements `RemoteFiles`."""

    def __init__(self, store: ObjectStore, address: str, scheme: str = "") -> None:
        self._store = store
        self._scheme = scheme
        self.address = address

    def exists(self) -> bool:
        """Return whether there is any file below the address."""
        return next(self.iterate(""), None) is not None

    def iterate(self, folder: str) -> Iterator[ListedFile]:
        """Yield the files below a folder of the remote; temporary files are left out."""
        import obstore

        with self._explained(folder):
            stream = obstore.list(self._store, folder or None, chunk_size=_LISTED)
        while True:
            with self._explained(folder):
                chunk = wait_for(_next(stream))
            if chunk is None:
                return
            for entry in chunk:
                name = entry["path"]
                if not any(part.startswith(".") for part in name.split("/")):
                    version = entry["e_tag"] or entry["last_modified"].isoformat()
                    modified = int(entry["last_modified"].timestamp() * 1_000_000)
                    yield ListedFile(name, entry["size"], version, modified)

    def read(self, name: str, most: int) -> bytes:
        """Return a whole file of at most `most` bytes."""
        with self._explained(name):
            return wait_for(self._read(name, most))

    async def _read(self, name: str, most: int) -> bytes:
        import obstore

        result = await obstore.get_async(self._store, name)
        data, size = bytearray(), result.meta["size"]
        if size <= most:
            async for chunk in result.stream(min_chunk_size=_CHUNK):
                data += chunk
                if len(data) > most:  # a server may send more than it has said
                    break
        if max(size, len(data)) > most:
            raise UnreadableFileError(
                f"'{name}' of the remote '{self.address}' has more than {most:,} bytes"
            )
        return bytes(data)

    def create(self, name: str, data: bytes) -> bool:
        """Write a file in one step, unless it exists."""
        with self._explained(name):
            return wait_for(self._create(name, data))

    async def _create(self, name: str, data: bytes) -> bool:
        import obstore
        from obstore.exceptions import AlreadyExistsError

        if len(data) >= _LARGE:
            with suppress(FileNotFoundError):
                await obstore.head_async(self._store, name)
                return False
        try:
            await obstore.put_async(self._store, name, data, mode="create", use_multipart=False)
        except AlreadyExistsError:
            return False
        return True

    def delete(self, name: str) -> None:
        """Remove a file, unless it is missing already."""
        with suppress(MissingFileError), self._explained(name):
            wait_for(self._delete(name))

    async def _delete(self, name: str) -> None:
        import obstore

        await obstore.delete_async(self._store, name)

    @contextmanager
    def _explained(self, name: str) -> Iterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except FileNotFoundError as error:
            if _NO_BUCKET.search(str(error)):
                raise explain(error, self.address, self._scheme) from None
            raise MissingFileError(f"the remote '{self.address}' has no file '{name}'") from None
        except (BaseError, OSError, ValueError) as error:
            raise explain(error, self.address, self._scheme) from None


async def _next(stream: ListStream[Sequence[ObjectMeta]]) -> Sequence[ObjectMeta] | None:
    """Return the next part of a listing; None at its end."""
    return await anext(stream, None)


def open_bucket(
    url: RemoteUrl, variables: Mapping[str, str], patience: float = PATIENCE
) -> BucketFiles:
    """Return the files of a remote in a bucket; nothing is read or written yet.

    `variables` are those of the environment. Raises `RemoteError`, also when obstore is missing.
    """
    try:
        from obstore.exceptions import BaseError
        from obstore.store import AzureStore, GCSStore, S3Store
    except ModuleNotFoundError:
        raise RemoteError(
            f"the remote '{url.address}' needs obstore, which is not installed",
            hint="install the extra: pip install 'evalstore[cloud]'",
        ) from None
    client: ClientConfig = {
        "connect_timeout": _CONNECTING,
        "read_timeout": timedelta(seconds=patience),
        "timeout": _LONGEST_REQUEST,
        # These options replace those of the environment.
        "allow_http": variables.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true", "yes"),
    }
    options: dict[str, Any] = {
        "prefix": url.path.strip("/") or None,
        "client_options": client,
        "retry_config": _RETRIES,
    }
    stores = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}
    try:
        store: ObjectStore = stores[url.scheme](url.host, **options)
    except (BaseError, OSError, ValueError) as error:
        if _KIND.search(str(error)):
            raise explain(error, url.address, url.scheme) from None
        raise RemoteError(
            f"the remote '{url.address}' cannot be used: invalid credentials or settings",
            hint=f"check {_VARIABLES[url.scheme]}",
        ) from None
    return BucketFiles(store, url.address, url.scheme)


def explain(error: Exception, address: str, scheme: str) -> RemoteError:
    """Return the error for one of obstore, without its text."""
    from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

    text = str(error)
    status = _STATUS.search(text)
    kind = _KIND.search(text)
    place = f"the remote '{address}'"
    variables = _VARIABLES.get(scheme, "the credentials")
    if _NO_BUCKET.search(text):
        return RemoteError(
            f"{place} cannot be used: no such bucket",
            hint="make the bucket first, or correct the address of the remote",
        )
    if kind and kind[2] == "BadScheme":
        return RemoteError(
            f"{place} cannot be used: its server does not use TLS",
            hint="set AWS_ALLOW_HTTP=true if that is intended",
        )
    if _METADATA.search(text) or (kind and kind[2]):
        return RemoteError(
            f"{place} cannot be used: the environment has no credentials for it",
            hint=f"set {variables}",
        )
    if isinstance(error, PermissionDeniedError | UnauthenticatedError) or (
        status and status[1] in ("401", "403")
    ):
        return RemoteError(
            f"access to {place} was denied",
            hint=f"check {variables}; they need the rights to list, read and write objects, and "
            "'evalstore remote gc' also to delete them",
        )
    if kind:
        reason = "cannot be reached" if kind[1] == "Connect" else "did not answer in time"
        endpoint = ", and AWS_ENDPOINT_URL if it is set" if scheme == "s3" else ""
        return RemoteError(f"{place} {reason}", hint=f"check the network{endpoint}")
    if "redirect" in text or (status and status[1].startswith("3")):
        return RemoteError(
            f"{place} is in another region",
            hint="set AWS_REGION to the region of the bucket" if scheme == "s3" else None,
        )
    if status:
        return RemoteError(f"{place} cannot be used: its server answered with {status[1]}")
    return RemoteError(
        f"{place} cannot be used: {type(error).__name__} of obstore",
        hint=f"check {variables}" if scheme else None,
    )


# --- an event loop in a thread, so that a call that waits for a server can be interrupted


T = TypeVar("T")


def wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine; when this is interrupted, the coroutine is cancelled."""
    future = asyncio.run_coroutine_threadsafe(coroutine, _running_loop(os.getpid()))
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


@lru_cache(maxsize=1)
def _running_loop(_process: int) -> asyncio.AbstractEventLoop:
    """Return the loop of this process; a forked one has no thread of its parent."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="evalstore-remote", daemon=True).start()
    return loop
