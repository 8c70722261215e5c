"""A server with the protocol of Azure's blob storage: Azurite, where it is installed with npm."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account that every Azurite has, as its documentation says."""
_VERSION = "2021-08-06"
_LISTENS = re.compile(r"listens on (http://127\.0\.0\.1:[0-9]+)")


@contextmanager
def azure_server(patch: pytest.MonkeyPatch, folder: Path) -> Iterator[None]:
    """Start a server with the container `bucket`, and set the variables that obstore reads."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("azurite is not installed")
    options = ("--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck")
    command = [program, *options, "--blobHost", "127.0.0.1", "--blobPort", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, text=True, cwd=folder) as process:
        assert process.stdout is not None
        found = next(match for line in process.stdout if (match := _LISTENS.search(line)))
        endpoint = f"{found[1]}/{ACCOUNT}"
        patch.setenv("AZURE_STORAGE_ENDPOINT", endpoint)
        patch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
        patch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
        patch.setenv("AWS_ALLOW_HTTP", "true")
        _make_container(endpoint)
        yield
        process.kill()


def _make_container(endpoint: str) -> None:
    """Make the container; obstore cannot."""
    headers = {"x-ms-date": "Thu, 01 Jan 2026 00:00:00 GMT", "x-ms-version": _VERSION}
    lines = [f"{name}:{value}" for name, value in headers.items()]
    resource = f"/{ACCOUNT}/{ACCOUNT}/bucket\nrestype:container"
    text = "\n".join(["PUT", *[""] * 11, *lines, resource])
    digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
    url = f"{endpoint}/bucket?restype=container"
    with urlopen(Request(url, method="PUT", headers=headers)) as answer:
        assert answer.status == 201
